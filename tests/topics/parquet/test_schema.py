from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import Schema as DeltaSchema

from statelib.errors.kinds import ConfigurationError
from statelib.topics.parquet.schema import HEADERS, TIMESTAMP, conform, project, topic_schema
from tests.topics.data import SCHEMA, VALUE, topic_records


def test_columns():
    assert SCHEMA.names == ["offset", "timestamp", "key", "value", "headers"]
    assert SCHEMA.types == [pa.int64(), pa.timestamp("ms", "UTC"), pa.string(), VALUE, HEADERS]


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (pa.dictionary(pa.int32(), pa.large_string()), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.binary(16), pa.binary()),
        (pa.timestamp("ms", "Europe/Zurich"), pa.timestamp("us", "UTC")),
        (pa.timestamp("s"), pa.timestamp("us")),
        (pa.large_list(pa.large_binary()), pa.list_(pa.binary())),
        (pa.list_(pa.int8(), 3), pa.list_(pa.int8())),
        (pa.map_(pa.large_string(), pa.date32()), pa.map_(pa.string(), pa.date32())),
        (pa.struct([pa.field("a", pa.int16(), nullable=False)]), pa.struct([("a", pa.int16())])),
        (pa.decimal128(38, 4), pa.decimal128(38, 4)),
    ],
)
def test_types_become_those_of_delta(given, stored):
    schema = topic_schema(given, pa.struct([("inner", given)]))
    assert schema.field("key").type == stored
    assert schema.field("value").type == pa.struct([("inner", stored)])
    delta = pa.schema(DeltaSchema.from_arrow(schema).to_arrow())
    assert delta.field("key").type == stored, "Delta holds the type as it is"
    assert topic_schema(delta.field("key").type, delta.field("value").type) == schema


@pytest.mark.parametrize(
    "type_",
    [
        pa.uint8(), pa.uint64(), pa.float16(), pa.timestamp("ns"), pa.time64("us"), pa.duration("ms"), pa.null(),
        pa.decimal256(50), pa.struct([]), pa.struct([("a", pa.int8()), ("A", pa.int8())]),
    ],
)  # fmt: skip
def test_types_that_would_not_come_back_as_they_were(type_):
    with pytest.raises(ConfigurationError, match=r"field value\.x"):
        topic_schema(pa.string(), pa.struct([("x", type_)]))


def test_conform_orders_casts_and_fills_in_headers():
    records = pa.record_batch({
        "value": pa.array([1, None], pa.int32()),
        "key": pa.array(["a", "a"], pa.large_string()),
        "offset": [5, 9],
        "timestamp": [-1, 1_700_000_000_000],
    })  # fmt: skip
    schema = topic_schema(pa.string(), pa.int64())
    table = conform(records, schema)
    assert table.schema == schema
    assert table["timestamp"].cast(pa.int64()).to_pylist() == [-1, 1_700_000_000_000]
    assert table["headers"].to_pylist() == [None, None]
    assert table["value"].to_pylist() == [1, None]


@pytest.mark.parametrize(
    ("keys", "stay_encoded"),
    [
        (pa.array(["a", None]).dictionary_encode(), True),
        (pa.array([b"a", None]).dictionary_encode(), True),
        (pa.array(["a", None], pa.dictionary(pa.int8(), pa.string())), False),
        (pa.array(["a", None], pa.large_string()).dictionary_encode(), False),
        (pa.array([1, None], pa.int64()).dictionary_encode(), False),
    ],
)
def test_keys_stay_encoded_if_files_can_take_them_over(keys, stay_encoded):
    schema = topic_schema(keys.type, pa.int64())
    table = conform(pa.record_batch({"key": keys, "value": [1, 2], "offset": [5, 9], "timestamp": [1, 2]}), schema)
    assert table["key"].type == (keys.type if stay_encoded else schema.field("key").type)
    assert table["key"].to_pylist() == keys.to_pylist()


def test_conform_casts_whole_values():
    """Fields that may not be null, dictionaries and large strings inside of a struct fit as well."""
    given = pa.struct([
        pa.field("id", pa.dictionary(pa.int8(), pa.large_string()), nullable=False),
        pa.field("amount", pa.float32()),
        pa.field("tags", pa.large_list(pa.int32())),
    ])  # fmt: skip
    value = pa.StructArray.from_arrays(
        [
            pa.array(["x", "y"]).cast(given[0].type),
            pa.array([0.5, 1.5], pa.float32()),
            pa.array([[1], None], given[2].type),
        ],
        fields=list(given),
    )  # fmt: skip
    records = pa.record_batch({"offset": [0, 1], "timestamp": [0, 0], "key": ["a", "b"], "value": value})
    assert conform(records, SCHEMA)["value"].to_pylist() == [
        {"id": "x", "amount": 0.5, "tags": [1]},
        {"id": "y", "amount": 1.5, "tags": None},
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop_columns(["value"]), "missing value"),
        (lambda table: table.append_column("partition", table["offset"]), "unknown partition"),
        (lambda table: table.set_column(2, "key", table["offset"].cast(pa.float64())), None),
        (lambda table: table.set_column(3, "value", table["key"]), "column value does not fit"),
        (
            lambda table: table.set_column(1, "timestamp", pa.array([1_500], pa.timestamp("us", "UTC"))),
            "column timestamp does not fit",
        ),
    ],
)
def test_conform_refuses_what_would_be_lost(change, message):
    records = change(topic_records([0]))
    if message is None:
        assert conform(records, SCHEMA)["key"].to_pylist() == ["0"], "a number has one spelling"
        return
    with pytest.raises(ConfigurationError, match=message):
        conform(records, SCHEMA)


def test_project():
    assert project(SCHEMA, ["timestamp", "offset"]).names == ["offset", "timestamp"]
    part = project(SCHEMA, ["value.amount", "key"])
    assert part.names == ["key", "value"]
    assert part.field("value").type == pa.struct([("amount", pa.float64())])
    assert project(SCHEMA, ["value.id", "value"]).field("value").type == VALUE
    for name in ("partition", "value.no", "key.x", "headers.key"):
        with pytest.raises(ConfigurationError, match=f"no column {name}"):
            project(SCHEMA, [name])


def test_timestamps_are_milliseconds():
    assert pa.timestamp("ms", "UTC") == TIMESTAMP
