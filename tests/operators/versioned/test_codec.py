"""The bytes of a versioned store: a change here breaks every stored state."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.operators.versioned import codec
from statelib.operators.versioned.codec import (
    AFTER,
    BEFORE,
    COVERS,
    HEADER_KEY,
    Header,
    Interval,
    decode_header,
    decode_latest,
    decode_latests,
    decode_row,
    decode_rows,
    encode_header,
    encode_latest,
    encode_latests,
    encode_row,
    encode_rows,
    encode_segment_key,
    encode_segment_keys,
    extend_row,
    extend_rows,
    find_in_row,
)
from statelib.operators.versioned.store import VersionedKeyValueStore
from statelib.stores.memory import MemoryBackend

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


values = st.binary(max_size=20)
times = st.integers(min_value=0, max_value=1 << 40)


@given(st.lists(st.tuples(times, values, st.booleans())))
def test_many_latest_values_are_encoded_as_one(latest: list[tuple[int, bytes, bool]]) -> None:
    expected = [encode_latest(time, value, remembered=flag) for time, value, flag in latest]
    timestamp, flags = np.array([row[0] for row in latest], np.int64), np.array([row[2] for row in latest], np.bool_)
    raws = encode_latests(timestamp, pa.array([row[1] for row in latest], pa.binary()), flags)
    assert raws.to_pylist() == expected
    decoded_time, decoded_values, decoded_flags = decode_latests(raws, "s")
    decoded = zip(decoded_time.tolist(), decoded_values.to_pylist(), decoded_flags.tolist(), strict=True)
    assert list(decoded) == latest


@given(st.lists(st.tuples(times, st.lists(st.tuples(times, st.none() | values), min_size=1, max_size=5))))
def test_many_rows_are_encoded_as_one(rows: list[tuple[int, list[tuple[int, bytes | None]]]]) -> None:
    expected = [encode_row([Interval(start, end, value) for start, value in row]) for end, row in rows]
    ends, versions = np.array([end for end, _ in rows], np.int64), [version for _, row in rows for version in row]
    offsets = np.cumsum([0, *(len(row) for _, row in rows)])
    valid_from = np.array([start for start, _ in versions], np.int64)
    raws = encode_rows(offsets, ends, valid_from, pa.array([value for _, value in versions], pa.binary()))
    assert raws.to_pylist() == expected
    counts, decoded_from, decoded_values = decode_rows(raws, "s")
    assert counts.tolist() == [len(row) for _, row in rows]
    assert list(zip(decoded_from.tolist(), decoded_values.to_pylist(), strict=True)) == versions


@given(
    st.lists(st.tuples(st.integers(1, 5), st.none() | values), min_size=2, max_size=8),
    st.integers(1, 7),
    st.integers(1, 3),
)
def test_a_row_is_extended_to_what_its_versions_are_encoded_to(
    steps: list[tuple[int, bytes | None]], known: int, lasted: int
) -> None:
    starts = np.cumsum([step for step, _ in steps]).tolist()
    ends = [
        start if value is None else end
        for start, end, (_, value) in zip(starts, [*starts[1:], starts[-1] + lasted], steps, strict=True)
    ]
    versions = [Interval(*v) for v in zip(starts, ends, [value for _, value in steps], strict=True)]
    known = min(known, len(versions) - 1)
    assert extend_row(encode_row(versions[:known]), versions[known:], "s") == encode_row(versions)
    for damaged in (b"", ROW[:10], ROW[:12]):
        with pytest.raises(CorruptedDataError, match="a segment's row of"):
            extend_row(damaged, versions, "s")


rows = st.lists(st.tuples(times, st.none() | values), min_size=1, max_size=4).map(
    lambda versions: [Interval(start, start if value is None else start + 1, value) for start, value in versions]
)


@given(st.lists(st.tuples(rows | st.just([]), rows)))
def test_many_rows_are_extended_as_one(pairs: list[tuple[list[Interval], list[Interval]]]) -> None:
    before = pa.array([encode_row(first) if first else b"" for first, _ in pairs], pa.large_binary())
    later = pa.array([encode_row(then) for _, then in pairs], pa.binary())
    assert extend_rows(before, later, "s").to_pylist() == [encode_row([*first, *then]) for first, then in pairs]


@pytest.mark.parametrize("damaged", [ROW[:10], ROW[:12], bytes(12)])
def test_a_damaged_row_among_many_is_not_extended(damaged: bytes) -> None:
    with pytest.raises(CorruptedDataError, match="a segment's row of"):
        extend_rows(pa.array([b"", damaged], pa.binary()), pa.array([ROW, ROW], pa.binary()), "s")


@given(
    st.lists(st.tuples(st.integers(1, 5), st.none() | values), min_size=1, max_size=5),
    st.integers(0, 3),
    st.integers(-1, 30),
)
def test_a_version_is_found_in_a_row(steps: list[tuple[int, bytes | None]], lasted: int, time: int) -> None:
    starts = np.cumsum([step for step, _ in steps]).tolist()
    end = starts[-1] + (0 if steps[-1][1] is None else 1 + lasted)
    row = [Interval(*v) for v in zip(starts, [*starts[1:], end], [value for _, value in steps], strict=True)]
    there = next((v for v in row if v.value is not None and v.valid_from <= time < v.valid_to), None)
    place = BEFORE if end <= time else AFTER if starts[0] > time else COVERS
    for few in (64, 0):
        with patch.object(codec, "_FEW_VERSIONS", few):
            assert find_in_row(encode_row(row), time, "s") == (place, there)


def test_many_segment_keys_are_encoded_as_one() -> None:
    keys = encode_segment_keys(np.array([5, 1 << 40]), pa.array([b"k", b""], pa.binary()))
    assert keys.to_pylist() == [encode_segment_key(5, b"k"), encode_segment_key(1 << 40)]


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
    store = VersionedKeyValueStore(backend, "s", history_retention_ms=10)
    store.put(b"k", b"v", 5)
    store.flush()
    backend._families["s.segments"][HEADER_KEY] = b"\x02" + backend.get("s.segments", HEADER_KEY)[1:]  # type: ignore[index]
    with pytest.raises(ConfigurationError, match="format 2, and this release reads format 1"):
        VersionedKeyValueStore(backend, "s", history_retention_ms=10)


@pytest.mark.parametrize(
    "raw",
    [b"", ROW[:-1], ROW + b"x", ROW[:20], ROW[:8] + bytes(4)],
    ids=["empty", "short", "long", "cut", "no version"],
)
def test_a_damaged_row_is_noticed_among_others(raw: bytes) -> None:
    with pytest.raises(CorruptedDataError, match="store s"):
        decode_rows(pa.array([ROW, raw, ROW], pa.binary()), "s")


def test_a_damaged_latest_value_is_noticed_among_others() -> None:
    with pytest.raises(CorruptedDataError, match="a latest value has 8 bytes"):
        decode_latests(pa.array([LATEST, LATEST[:8]], pa.binary()), "s")


@pytest.mark.parametrize(
    ("decode", "raw"),
    [
        (decode_latest, LATEST[:8]),
        (decode_row, b""),
        (decode_row, ROW[:-1]),
        (decode_row, ROW + b"x"),
        (decode_row, ROW[:20]),
        (lambda raw, store: find_in_row(raw, 15, store), ROW[:-1]),
        (lambda raw, store: find_in_row(raw, 15, store), ROW[:20]),
        (decode_header, HEADER[:-1]),
        (decode_header, b""),
    ],
    ids=[
        "short latest",
        "empty row",
        "short row",
        "long row",
        "cut row",
        "short in search",
        "cut in search",
        "cut header",
        "empty header",
    ],
)
@pytest.mark.parametrize("few", [64, 0])
def test_damage_is_noticed(decode: object, raw: bytes, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "_FEW_VERSIONS", few)
    with pytest.raises(CorruptedDataError, match="store s"):
        decode(raw, "s")  # type: ignore[operator]
