from __future__ import annotations

import hashlib
import random
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from statelib.storage import Storage
from statelib.topics.parquet.leaf_columns import leaf_columns
from statelib.topics.parquet.missing_counts import KEY, missing_values
from statelib.topics.parquet.schema import topic_schema
from statelib.topics.parquet.writer import PartitionWriter


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


def column_of(metadata: pq.FileMetaData, leaf: str) -> pq.ColumnChunkMetaData:
    group = metadata.row_group(0)
    (column,) = (c for n in range(metadata.num_columns) if (c := group.column(n)).path_in_schema == leaf)
    return column


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
    ("values", "encoding"),
    [
        (list(range(1_000, 2_000)), "DELTA_BINARY_PACKED"),
        ([7] * 1_000, "DELTA_BINARY_PACKED"),
        ([n * 7_919 % 1_009 for n in range(1_000)] * 3, "DELTA_BINARY_PACKED"),  # they repeat, yet need no more bits
        ([(n * 7_919 % 31) << 40 for n in range(1_000)], "RLE_DICTIONARY"),
        ([0] * 500 + [1 << 62, -(1 << 63)] + [0] * 500, "RLE_DICTIONARY"),
        ([5], "DELTA_BINARY_PACKED"),
        ([None, None], "RLE_DICTIONARY"),
    ],
)
def test_whole_numbers_have_a_dictionary_where_that_is_smaller(values, encoding):
    schema = topic_schema(pa.string(), pa.struct([("n", pa.int64())]))
    metadata, read = written_and_read(schema, key=["k"] * len(values), value=[{"n": n} for n in values])
    assert encoding in column_of(metadata, "value.n").encodings
    assert [value["n"] for value in read["value"].to_pylist()] == values


@pytest.mark.parametrize(("repeats_after", "is_compressed"), [(10_000, False), (64, True)])
def test_differences_are_compressed_where_that_helps(repeats_after, is_compressed):
    chance = random.Random(3)
    delays = [chance.randrange(300) for _ in range(repeats_after)]
    times = [1_700_000_000_000 + n * 60_000 + delays[n % repeats_after] for n in range(10_000)]
    schema = topic_schema(pa.string(), pa.int64())
    few, many = (
        written(schema, key=["k"] * rows, value=[n % 5 for n in range(rows)], timestamp=times[:rows])
        for rows in (1_000, 10_000)
    )
    assert column_of(few, "timestamp").compression == "ZSTD"  # too few to tell
    assert column_of(many, "timestamp").compression == ("ZSTD" if is_compressed else "UNCOMPRESSED")
    assert column_of(many, "key").compression == "ZSTD"


def test_texts_that_are_alike_everywhere_have_no_bounds_but_a_count():
    rows = 300
    ids = [None if n % 3 == 0 else str(uuid.uuid5(uuid.NAMESPACE_URL, str(n))) for n in range(rows)]
    types = [("id", pa.string()), ("time", pa.string()), ("few", pa.binary()), ("n", pa.int64())]
    schema = topic_schema(pa.string(), pa.struct([*types, ("list", pa.list_(pa.string()))]))
    value = [
        None if n % 10 == 0 else {"id": id_, "time": f"{n:05d}", "few": b"x", "n": n, "list": ["y"]}
        for n, id_ in enumerate(ids)
    ]
    metadata = written(schema, key=["k", None, "l"] * (rows // 3), value=value)
    bounds = {
        leaf: column_of(metadata, leaf).statistics is not None
        for leaf in leaf_columns(metadata.schema.to_arrow_schema())
    }
    assert [leaf for leaf, has in bounds.items() if not has] == ["key", "value.id", "value.few"]
    missing = {leaf: missing_values(metadata, leaf) for leaf in bounds}
    without_id = sum(v is None or v["id"] is None for v in value)
    assert missing == dict.fromkeys(bounds) | {"key": 100, "value.id": without_id, "value.few": 30}
    assert metadata.metadata[KEY] == b'{"key": 100, "value.few": 30, "value.id": %d}' % without_id


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
    assert ("DELTA_LENGTH_BYTE_ARRAY" in column_of(metadata, "value.id").encodings) == is_random
    assert [value["id"] for value in read["value"].to_pylist()] == values
