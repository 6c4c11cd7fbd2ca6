"""JSON that is no object, and JSON in a schema registry's wire format; objects are in test_serdes."""

from __future__ import annotations

import datetime as dt
import pickle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors.kinds import ConfigurationError, RetryableError
from statelib.serdes.json import JsonSerde
from statelib.serdes.schema_source import RegisteredSchema
from tests.serdes.registry import Schemas

STRUCT = pa.struct([("x", pa.int64())])
REGISTRY = Schemas(((7, RegisteredSchema("JSON", '{"type":"object"}')),), (("t-value", 7),))


@pytest.mark.parametrize(
    ("kind", "documents", "values"),
    [
        (pa.int64(), [b"1", b" -2\n", b"null", None], [1, -2, None, None]),
        (pa.float64(), [b"1.5", b"2"], [1.5, 2.0]),
        (pa.string(), [b'"a\\u00e9"', '"é"'.encode(), b'""'], ["aé", "é", ""]),
        (pa.bool_(), [b"true", b"false"], [True, False]),
        (pa.list_(pa.int64()), [b"[1, null]", b"[]"], [[1, None], []]),
        (pa.list_(STRUCT), [b'[{"x": 1}, {"y": 2}]'], [[{"x": 1}, {"x": None}]]),
        (pa.date32(), [b'"2020-02-29"', b"null"], [dt.date(2020, 2, 29), None]),
        (pa.time32("ms"), [b'"01:02:03"', b'"23:59:59.500000"'], [dt.time(1, 2, 3), dt.time(23, 59, 59, 500_000)]),
        (pa.time64("us"), [b'"23:59:59.000001"'], [dt.time(23, 59, 59, 1)]),
        (pa.binary(), [b'"/w=="', b'""', b"null"], [b"\xff", b"", None]),
        (pa.map_(pa.string(), pa.int64()), [b'{"a": 1, "": null}', b"{}"], [[("a", 1), ("", None)], []]),
        (pa.map_(pa.int32(), pa.list_(pa.binary())), [b'{"-1": ["/w==", null]}'], [[(-1, [b"\xff", None])]]),
        (
            pa.list_(pa.struct([("m", pa.map_(pa.string(), STRUCT)), ("n", pa.int64())])),
            [b'[{"m": {"a": {"x": 1, "y": {}}}, "n": 2}, null, {"m": null}]', b"[]"],
            [[{"m": [("a", {"x": 1})], "n": 2}, None, {"m": None, "n": None}], []],
        ),
        (pa.timestamp("ms", "UTC"), [b'"2020-01-01T00:00:00Z"'], [dt.datetime(2020, 1, 1, tzinfo=dt.UTC)]),
    ],
    ids=str,
)
def test_values_that_are_no_objects(kind: pa.DataType, documents: list[bytes], values: list[Any]) -> None:
    serde = JsonSerde(kind)
    decoded = serde.deserialize(pa.array(documents, pa.binary()))
    assert decoded.type == kind
    assert decoded.to_pylist() == values
    assert serde.deserialize(serde.serialize(decoded)).to_pylist() == values


@pytest.mark.parametrize(
    "wrong", [b"", b"x", b"1,2", b'1,"x":2', b'1}\n{"value":2', b"1.5", b'"1"', b"[1]", b"{}", b"\xff"]
)
def test_what_is_not_exactly_one_value(wrong: bytes) -> None:
    values, bad, reasons = JsonSerde(pa.int64()).deserialize_lenient(pa.array([b"1", wrong, b"3"]))
    assert bad.tolist() == [False, True, False]
    assert values.to_pylist() == [1, None, 3]
    assert reasons[1].as_py()


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (pa.binary(), b'"/w="'),
        (pa.date32(), b'"2020-02-30"'),
        (pa.struct([("raw", pa.binary())]), b'{"raw": "?"}'),
        (pa.map_(pa.string(), pa.int64()), b"[]"),
        (pa.map_(pa.string(), pa.int64()), b'{"a": "b"}'),
        (pa.map_(pa.int32(), pa.int64()), b'{"a": 1}'),
        (pa.struct([("m", pa.map_(pa.string(), pa.int64()))]), b'{"m": [["a", 1]]}'),
        (pa.struct([("m", pa.map_(pa.string(), pa.int64()))]), b"1"),
        (pa.list_(pa.int64()), b"[" * 100_000),
    ],
    ids=str,
)
def test_bytes_and_maps_that_are_none(kind: pa.DataType, wrong: bytes) -> None:
    values, bad, reasons = JsonSerde(kind).deserialize_lenient(
        pa.array([b"{}" if pa.types.is_struct(kind) else b"null", wrong])
    )
    assert bad.tolist() == [False, True]
    assert values.type == kind
    assert values[1].as_py() is None
    assert reasons[1].as_py()


MAPS = pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.binary()))), ("raw", pa.binary())])
raws = st.none() | st.binary(max_size=5)
maps = st.fixed_dictionaries({
    "m": st.none() | st.dictionaries(st.text(max_size=4), st.none() | st.lists(raws, max_size=3)), "raw": raws,
})  # fmt: skip


@given(st.lists(st.none() | maps, max_size=6))
def test_round_trip_of_maps(values: list[Any]) -> None:
    array = pa.array([value and value | {"m": value["m"] and list(value["m"].items())} for value in values], MAPS)
    serde = JsonSerde(MAPS)
    assert serde.deserialize(serde.serialize(array)).to_pylist() == array.to_pylist()


@given(st.lists(st.none() | st.integers(-(1 << 63), (1 << 63) - 1), max_size=6))
def test_round_trip_of_numbers(values: list[int | None]) -> None:
    serde = JsonSerde(pa.int64())
    assert serde.deserialize(serde.serialize(pa.array(values, pa.int64()))).to_pylist() == values


def test_the_wire_format() -> None:
    serde = JsonSerde(STRUCT, registry=REGISTRY, subject="t-value", json_schema='{"type":"object"}')
    data = serde.serialize(pa.array([{"x": 1}, None], STRUCT))
    assert data.to_pylist() == [b'\0\0\0\0\7{"x":1}', None]
    values, bad, reasons = serde.deserialize_lenient(pa.array([*data.to_pylist(), b'{"x":1}', b"\0\0\0\0\7{", b"\0"]))
    assert values.to_pylist() == [{"x": 1}, None, None, None, None]
    assert bad.tolist() == [False, False, True, True, True]
    assert "magic byte is 0x7b" in reasons[2].as_py()
    given_id = JsonSerde(pa.int64(), registry=Schemas(is_down=True), schema_id=258)
    assert given_id.serialize(pa.array([5])).to_pylist() == [b"\0\0\0\1\x025"]
    assert given_id.deserialize(pa.array([b"\0\0\0\0\x095"])).to_pylist() == [5]  # nobody is asked


def test_what_writing_with_an_id_needs() -> None:
    with pytest.raises(ConfigurationError, match="needs the subject"):
        JsonSerde(STRUCT, registry=REGISTRY).serialize(pa.array([{"x": 1}]))
    with pytest.raises(RetryableError):
        JsonSerde(STRUCT, registry=Schemas(is_down=True), subject="s", json_schema="{}").serialize(pa.array([{"x": 1}]))
    for wrong in ({"registry": REGISTRY, "subject": "s"}, {"json_schema": "{}"}, {"schema_id": 1}):
        with pytest.raises(ConfigurationError):
            JsonSerde(STRUCT, **wrong)
    with pytest.raises(ConfigurationError, match="JSON is not read as null"):
        JsonSerde(pa.null())


def test_it_travels_and_describes_itself() -> None:
    serde = JsonSerde(STRUCT, registry=REGISTRY, schema_id=7)
    assert pickle.loads(pickle.dumps(serde)) == serde
    assert serde.describe() == {
        "serde": "json", "type": "struct<x: int64>", "wire_format": "schema-registry", "schema_id": 7,
    }  # fmt: skip
    assert JsonSerde(STRUCT).describe() == {"serde": "json", "type": "struct<x: int64>"}
