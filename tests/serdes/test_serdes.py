"""Serdes: Kafka's bytes, round trips, and what happens to bytes that are wrong."""

from __future__ import annotations

import datetime as dt
import decimal
import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors.kinds import ConfigurationError, CorruptedDataError, InputError
from statelib.serdes import RowSerde, serde_for
from statelib.serdes.json import JsonSerde

KAFKA = [  # type, values, bytes: what Kafka's serialisers write
    (pa.int32(), [1, -1, None], ["00000001", "ffffffff", None]),
    (pa.int64(), [1, -2], ["0000000000000001", "fffffffffffffffe"]),
    (pa.int16(), [258], ["0102"]),
    (pa.int8(), [-1], ["ff"]),
    (pa.float32(), [1.5], ["3fc00000"]),
    (pa.float64(), [1.5, None], ["3ff8000000000000", None]),
    (pa.bool_(), [True, None, False], ["01", None, "00"]),
    (pa.string(), ["aé", "", None], ["61c3a9", "", None]),
    (pa.large_string(), ["a"], ["61"]),
    (pa.binary(), [b"\x00\xff", None], ["00ff", None]),
    (pa.binary(2), [b"\x00\xff", None], ["00ff", None]),
    (pa.dictionary(pa.int8(), pa.string()), ["b", "a", None, "b"], ["62", "61", None, "62"]),
    (pa.date32(), [dt.date(1970, 1, 2)], ["00000001"]),
    (pa.timestamp("ms", "UTC"), [dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)], ["00000000000003e8"]),
    (pa.decimal128(5, 2), [decimal.Decimal("-0.01"), None], ["f" * 32, None]),
]


@pytest.mark.parametrize(("kind", "values", "expected"), KAFKA, ids=[str(kind) for kind, *_ in KAFKA])
def test_bytes(kind: pa.DataType, values: list[Any], expected: list[str | None]) -> None:
    serde = serde_for(kind)
    array = pa.array(values, kind)
    data = serde.serialize(array)
    assert data.type == pa.binary()
    assert data.to_pylist() == [None if text is None else bytes.fromhex(text) for text in expected]
    assert serde.deserialize(data).to_pylist() == values
    assert serde.deserialize(data).type == serde.arrow_type == kind
    padded = pa.concat_arrays([array, array]).slice(1, len(values))
    assert serde.deserialize(serde.serialize(padded)).to_pylist() == padded.to_pylist()
    assert serde.deserialize(serde.serialize(array[:0])).to_pylist() == []


STRUCT = pa.struct([("a", pa.int64()), ("s", pa.string())])


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (STRUCT, [{"a": 1, "s": "x"}, None]),
        (pa.list_(pa.string()), [["a", None], [], None]),
        (pa.map_(pa.string(), pa.int32()), [[("a", None)], None]),
        (pa.null(), [None]),
    ],
    ids=["struct", "list", "map", "null"],
)
def test_rows(kind: pa.DataType, values: list[Any]) -> None:
    serde = serde_for(kind)
    data = serde.serialize(pa.array(values, kind))
    assert data.null_count == 1
    assert serde.deserialize(data).to_pylist() == values


@pytest.mark.parametrize("kind", [kind for kind, *_ in KAFKA] + [STRUCT, pa.null()], ids=str)
def test_a_serde_travels_and_describes_itself(kind: pa.DataType) -> None:
    serde = serde_for(kind)
    assert pickle.loads(pickle.dumps(serde)) == serde
    assert serde.describe()["type"] == str(kind)


def test_a_type_without_serde_is_a_clear_error() -> None:
    with pytest.raises(ConfigurationError, match="no serde for values of type"):
        serde_for(pa.sparse_union([pa.field("a", pa.int64())]))


@given(st.lists(st.none() | st.integers(-(1 << 63), (1 << 63) - 1)), st.integers(0, 5))
def test_longs_sort_as_bytes_do_when_not_negative(values: list[int | None], start: int) -> None:
    array = pa.array(values, pa.int64()).slice(start)
    data = serde_for(pa.int64()).serialize(array)
    assert data.to_pylist() == [
        None if value is None else value.to_bytes(8, "big", signed=True) for value in values[start:]
    ]
    assert serde_for(pa.int64()).deserialize(data).equals(array)


@pytest.mark.parametrize(
    ("kind", "good", "wrong", "reason"),
    [
        (pa.int32(), b"\0\0\0\1", b"\0\0", "2 bytes, expected 4 of int32"),
        (pa.bool_(), b"\1", b"\2", "the byte 0x02, expected 0x00 or 0x01"),
        (pa.string(), b"a", b"a\xff", "not UTF-8 at byte 1"),
        (pa.dictionary(pa.int32(), pa.string()), b"a", b"a\xff", "not UTF-8 at byte 1"),
        (
            STRUCT,
            RowSerde(STRUCT).serialize(pa.array([{"a": 1, "s": "x"}]))[0].as_py(),
            b"\x01",
            "its head alone takes 14",
        ),
    ],
    ids=["int32", "bool", "string", "dictionary", "struct"],
)
def test_undecodable_bytes(kind: pa.DataType, good: bytes, wrong: bytes, reason: str) -> None:
    serde = serde_for(kind)
    data = pa.array([good, None, wrong, good])
    values, bad, reasons = serde.deserialize_lenient(data)
    assert bad.tolist() == [False, False, True, False]
    assert values.type == kind
    assert values.is_valid().to_pylist() == [True, False, False, True]
    assert reasons.is_valid().to_pylist() == [False, False, True, False]
    assert reason in reasons[2].as_py()
    with pytest.raises((InputError, CorruptedDataError)) as caught:
        serde.deserialize(data)
    assert caught.value.place["row"] == 2


JSON = pa.struct(
    [
        ("i", pa.int64()),
        ("s", pa.string()),
        ("t", pa.timestamp("ms", "UTC")),
        ("n", pa.struct([("x", pa.float64()), ("l", pa.list_(pa.int32()))])),
    ]
)


def test_json() -> None:
    documents = [
        b'{"i":1,"s":"\xc3\xa9","t":"2013-01-01T10:00:00.250Z","n":{"x":1.5,"l":[1,2]}}',
        None,
        b'{"unknown":[{}],\r\n "i":2}',
        b"{}",
    ]
    values = JsonSerde(JSON).deserialize(pa.array(documents, pa.binary()))
    assert values.type == JSON
    nothing = {"i": None, "s": None, "t": None, "n": None}
    assert values.to_pylist() == [
        {
            "i": 1,
            "s": "é",
            "t": dt.datetime(2013, 1, 1, 10, 0, 0, 250_000, dt.UTC),
            "n": {"x": 1.5, "l": [1, 2]},
        },
        None,
        nothing | {"i": 2},
        nothing,
    ]
    assert JsonSerde(JSON).deserialize(pa.array(["{}"])).to_pylist() == [nothing]
    assert JsonSerde(JSON).deserialize(pa.array([], pa.binary())).to_pylist() == []
    assert JsonSerde(JSON).deserialize(pa.array([None], pa.binary())).to_pylist() == [None]


@pytest.mark.parametrize(
    "wrong",
    [b"", b" ", b"null", b"1", b"[]", b"{", b"{}{}", b'{"i":1}\n{"i":2}', b"{} x", b'{"i":"x"}', b'{"i":1.5}',
     b'{"s":"\xff"}', b'{"t":"yesterday"}', b'{"n":{"l":[1,"x"]}}', b"\xef\xbb\xbf", b'{"i":9223372036854775808}'],
)  # fmt: skip
def test_undecodable_json(wrong: bytes) -> None:
    documents = [b'{"i":0}', wrong, None, b'{"i":3}', wrong, b'{"i":5}']
    values, bad, reasons = JsonSerde(JSON).deserialize_lenient(pa.array(documents, pa.binary()))
    assert np.flatnonzero(bad).tolist() == [1, 4]
    assert [value and value["i"] for value in values.to_pylist()] == [0, None, None, 3, None, 5]
    assert np.flatnonzero(reasons.is_valid()).tolist() == [1, 4]
    with pytest.raises(InputError) as caught:
        JsonSerde(JSON).deserialize(pa.array(documents, pa.binary()))
    assert caught.value.place["row"] == 1


def test_an_empty_document_does_not_hide_two_in_one() -> None:
    values, bad, _ = JsonSerde(JSON).deserialize_lenient(pa.array([b"", b'{"i":1}{"i":2}', b'{"i":3}']))
    assert bad.tolist() == [True, True, False]
    assert values.to_pylist()[2]["i"] == 3


json_structs = st.fixed_dictionaries(
    {
        "i": st.none() | st.integers(-(1 << 63), (1 << 63) - 1),
        "s": st.none() | st.text(st.characters(codec="utf-8"), max_size=5),
        "t": st.none()
        | st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)).map(  # noqa: DTZ001
            lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000, tzinfo=dt.UTC)
        ),
        "n": st.none()
        | st.fixed_dictionaries(
            {
                "x": st.none() | st.floats(allow_nan=False, allow_infinity=False),
                "l": st.none() | st.lists(st.integers(-(1 << 31), (1 << 31) - 1), max_size=3),
            }
        ),
    }
)


@given(st.lists(st.none() | json_structs, max_size=6))
def test_json_round_trip(values: list[Any]) -> None:
    serde = JsonSerde(JSON)
    array = pa.array(values, JSON)
    assert serde.deserialize(serde.serialize(array)).to_pylist() == array.to_pylist()


def test_large_json_documents() -> None:
    documents = [b'{"s":"' + b"x" * size + b'"}' for size in (10, 3_000_000, 10, 1_100_000)]
    values = JsonSerde(JSON).deserialize(pa.array(documents))
    assert [len(value["s"]) for value in values.to_pylist()] == [10, 3_000_000, 10, 1_100_000]
