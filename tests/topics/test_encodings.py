from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from statelib.storage import Storage
from statelib.topics.encodings import leaf_columns
from statelib.topics.schema import topic_schema
from statelib.topics.writer import PartitionWriter


def written(schema: pa.Schema, **columns: list[object]) -> pq.FileMetaData:
    rows = range(len(columns["key"]))
    columns = {"timestamp": list(rows), "offset": list(rows), **columns}
    storage = Storage("memory://")
    with PartitionWriter(storage, schema, 0, attempt="a") as writer:
        writer.write(pa.table({name: pa.array(column, schema.field(name).type) for name, column in columns.items()}))
    (file,) = writer.close()
    return pq.read_metadata(pa.BufferReader(storage.get(file.path)))


def test_leaf_columns_of_nested_types():
    schema = topic_schema(
        pa.string(), pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.int32()))), ("d", pa.date32())])
    )
    value = {"m": [("a", [1])], "d": None}
    group = written(schema, key=["a"], value=[value], headers=[[("n", b"1")]]).row_group(0)
    assert [group.column(i).path_in_schema for i in range(group.num_columns)] == leaf_columns(schema)


def test_encodings_follow_the_first_values():
    few, many = [f"k{i % 7}" for i in range(100)], [f"id-{i}" for i in range(100)]
    numbers = {"i32": pa.int32(), "i64": pa.int64(), "at": pa.timestamp("us", "UTC"), "day": pa.date32()}
    types = [("id", pa.string()), ("few", pa.string()), ("none", pa.int32()), ("list", pa.list_(pa.string()))]
    types += [("f64", pa.float64()), *numbers.items()]
    schema = topic_schema(pa.string(), pa.struct(types))
    value = [
        {"id": id_, "few": name, "none": None, "list": ["x"], "f64": n / 2, **dict.fromkeys(numbers, n)}
        for n, (id_, name) in enumerate(zip(many, few, strict=True))
    ]
    group = written(schema, key=few, value=value).row_group(0)
    encodings = {group.column(i).path_in_schema: group.column(i).encodings for i in range(group.num_columns)}

    def encoded(as_: str) -> set[str]:
        return {name for name, used in encodings.items() if as_ in used}

    assert encoded("RLE_DICTIONARY") == {"key", "value.few", "value.none", "value.list.list.element"}
    assert encoded("DELTA_BINARY_PACKED") == {"offset", "timestamp", *(f"value.{name}" for name in numbers)}
    assert encoded("PLAIN") - encoded("RLE_DICTIONARY") == {"value.id", "value.f64"}
