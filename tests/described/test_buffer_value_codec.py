"""The bytes of a buffered record are those that Kafka Streams writes; see also `tests.golden.test_changelogs`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from statelib.described.buffer_value_codec import HEADERS_TYPE, BufferValues, decode, encode
from statelib.errors.kinds import CorruptedDataError

HEAD = "00000000000000070000000000000003" + "00000002" + b"in".hex() + "00000001"
NULL, SAME = "ffffffff", "fffffffe"
VALUES = [
    (None, None, None, b"new"),
    (None, b"a", b"a", None),
    ([], b"a", b"b", b""),
    ([("h", b"x"), ("", None)], b"", None, b"new"),
]
GOLDEN = [
    HEAD + "00000000" + NULL + NULL + "00000003" + b"new".hex() + "0000000000000009",
    HEAD + "00000000" + "00000001" + b"a".hex() + SAME + NULL + "0000000000000009",
    HEAD + "ffffffff" + "0000000161" + "0000000162" + "00000000" + "0000000000000009",
    HEAD
    + "00000002"
    + "0000000168"
    + "0000000178"
    + "00000000"
    + NULL
    + "00000000"
    + NULL
    + "00000003"
    + b"new".hex()
    + "0000000000000009",
]


def values() -> BufferValues:
    headers, prior, old, new = (list(column) for column in zip(*VALUES, strict=True))
    count = len(VALUES)
    return BufferValues(
        np.full(count, 7),
        np.full(count, 3),
        pa.array(["in"] * count),
        np.full(count, 1, np.int32),
        pa.array(headers, HEADERS_TYPE),
        pa.array(prior, pa.binary()),
        pa.array(old, pa.binary()),
        pa.array(new, pa.binary()),
        np.full(count, 9),
    )


def test_golden_bytes() -> None:
    assert [raw.hex() for raw in encode(values()).to_pylist()] == GOLDEN


def test_round_trip() -> None:
    again = decode([bytes.fromhex(raw) for raw in GOLDEN], "s")
    for name in ("timestamp", "offset", "partition", "time"):
        assert getattr(again, name).tolist() == getattr(values(), name).tolist()
    for name in ("topic", "headers", "prior", "old", "new"):
        assert getattr(again, name).equals(getattr(values(), name))
    assert len(decode([], "s")) == 0


@pytest.mark.parametrize("raw", GOLDEN)
def test_damage_is_noticed(raw: str) -> None:
    whole = bytes.fromhex(raw)
    for damaged in (*(whole[:length] for length in range(len(whole))), whole + b"\0"):
        with pytest.raises(CorruptedDataError, match="not what was written"):
            decode([damaged], "s")
