"""Kafka's serde of UUIDs."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from statelib.errors.kinds import InputError
from statelib.serdes.uuids import UuidSerde

TEXT = "123e4567-e89b-12d3-a456-426614174000"


def test_it_is_the_text() -> None:
    data = UuidSerde().serialize(pa.array([TEXT.upper(), None]))
    assert data.to_pylist() == [TEXT.encode(), None]
    assert UuidSerde().deserialize(data).to_pylist() == [TEXT, None]
    assert UuidSerde().deserialize(data[:0]).to_pylist() == []


def test_what_is_none() -> None:
    wrong = [b"", b"1-1-1-1-1", TEXT.encode() + b"\n", b"x" + TEXT.encode(), b"\xff", TEXT.replace("e", "g").encode()]
    values, bad, reasons = UuidSerde().deserialize_lenient(pa.array([*wrong, TEXT.upper().encode(), None]))
    assert bad.tolist() == [True] * 6 + [False] * 2
    assert values.to_pylist() == [None] * 6 + [TEXT, None]
    assert reasons.to_pylist() == ["not a UUID"] * 4 + ["not UTF-8 at byte 0", "not a UUID", None, None]
    with pytest.raises(InputError, match="'abc' is no UUID"):
        UuidSerde().serialize(pa.array(["abc"]))


def test_it_travels() -> None:
    assert pickle.loads(pickle.dumps(UuidSerde())) == UuidSerde()
    assert UuidSerde().describe() == {"serde": "uuid", "type": "string"}
