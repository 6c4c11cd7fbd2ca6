"""The bytes of a versioned store: a change here breaks every stored state."""

from __future__ import annotations

import pytest

from statelib.errors import ConfigurationError, CorruptedDataError
from statelib.stores.memory import MemoryBackend
from statelib.stores.versioned import VersionedKeyValueStore
from statelib.stores.versioned_codec import (
    HEADER_KEY,
    Header,
    Interval,
    decode_header,
    decode_latest,
    decode_row,
    encode_header,
    encode_latest,
    encode_row,
    encode_segment_key,
)

LATEST = bytes.fromhex("00000000000003e8 01 76 31")
ROW = bytes.fromhex(
    "0000000000000028"  # end
    "00000003"  # count
    "000000000000000a 0000000000000014 000000000000001e"  # valid_from
    "00000002 ffffffff 00000000"  # sizes: a value, a tombstone, an empty value
    "6162"
)
HEADER = bytes.fromhex("01 00000000000007d0 00000000000003e8")


def test_latest() -> None:
    assert encode_latest(1_000, b"v1", remembered=True) == LATEST
    assert decode_latest(LATEST, "s") == (1_000, b"v1", True)
    assert decode_latest(encode_latest(0, b"", remembered=False), "s") == (0, b"", False)


def test_row() -> None:
    versions = [Interval(10, 20, b"ab"), Interval(20, 20, None), Interval(30, 40, b"")]
    assert encode_row(versions) == ROW
    assert decode_row(ROW, "s") == versions


def test_segment_keys_lie_in_order_of_time() -> None:
    assert encode_segment_key(5, b"k") == bytes.fromhex("0000000000000005 6b")
    keys = [encode_segment_key(segment, key) for segment in (0, 1, 255, 256, 1 << 40) for key in (b"", b"\xff")]
    assert [HEADER_KEY, *keys] == sorted([HEADER_KEY, *keys])


def test_header() -> None:
    header = Header(segment_interval_ms=2_000, stream_time=1_000)
    assert encode_header(header) == HEADER
    assert decode_header(HEADER, "s") == header


def test_another_format_is_refused() -> None:
    backend = MemoryBackend()
    VersionedKeyValueStore(backend, "s", history_retention_ms=10).put(b"k", b"v", 5)
    backend._families["s.segments"][HEADER_KEY] = b"\x02" + backend.get("s.segments", HEADER_KEY)[1:]  # type: ignore[index]
    with pytest.raises(ConfigurationError, match="format 2, and this release reads format 1"):
        VersionedKeyValueStore(backend, "s", history_retention_ms=10)


@pytest.mark.parametrize(
    ("decode", "raw"),
    [
        (decode_latest, LATEST[:8]),
        (decode_row, b""),
        (decode_row, ROW[:-1]),
        (decode_row, ROW + b"x"),
        (decode_row, ROW[:20]),
        (decode_header, HEADER[:-1]),
        (decode_header, b""),
    ],
    ids=["short latest", "empty row", "short row", "long row", "cut row", "cut header", "empty header"],
)
def test_damage_is_noticed(decode: object, raw: bytes) -> None:
    with pytest.raises(CorruptedDataError, match="store s"):
        decode(raw, "s")  # type: ignore[operator]
