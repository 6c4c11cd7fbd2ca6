from __future__ import annotations

import hashlib
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from statelib.storage import Storage
from statelib.topics.encodings import leaf_columns
from statelib.topics.schema import topic_schema
from statelib.topics.writer import PartitionWriter


def written(schema: pa.Schema, **columns: list[object]) -> pq.FileMetaData:
    return written_and_read(schema, **columns)[0]


def written_and_read(schema: pa.Schema, **columns: list[object]) -> tuple[pq.FileMetaData, pa.Table]:
    rows = range(len(columns["key"]))
    columns = {"timestamp": list(rows), "offset": list(rows), **columns}
    storage = Storage("memory://")
    with PartitionWriter(storage, schema, 0, attempt="a") as writer:
        writer.write(pa.table({name: pa.array(column, schema.field(name).type) for name, column in columns.items()}))
    (file,) = writer.close()
    content = pa.BufferReader(storage.get(file.path))
    return pq.read_metadata(content), pq.read_table(content)


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


@pytest.mark.parametrize(
    ("values", "is_random"),
    [
        ([str(uuid.uuid5(uuid.NAMESPACE_URL, str(n))) for n in range(1_000)], True),
        ([hashlib.sha256(b"%d" % n).hexdigest()[:16] for n in range(1_000)], True),
        ([None, *(hashlib.md5(b"%d" % n).digest() for n in range(1_000))], True),
        ([f"{n:012d}" for n in range(1_000)], False),  # they count up
        ([f"2024-03-01T00:{n // 60:02d}:{n % 60:02d}Z" for n in range(1_000)], False),
        ([hashlib.sha256(b"%d" % n).hexdigest()[: 10 + n % 7] for n in range(1_000)], False),  # of several lengths
        (["", None], False),
    ],
)
def test_random_ids_have_their_lengths_apart(values, is_random):
    type_ = pa.array(values).type
    schema = topic_schema(pa.string(), pa.struct([("id", type_)]))
    metadata, read = written_and_read(schema, key=["k"] * len(values), value=[{"id": id_} for id_ in values])
    (column,) = (
        c for n in range(metadata.num_columns) if (c := metadata.row_group(0).column(n)).path_in_schema == "value.id"
    )
    assert ("DELTA_LENGTH_BYTE_ARRAY" in column.encodings) == is_random
    assert [value["id"] for value in read["value"].to_pylist()] == values
