"""The deduplication store against a dictionary, and its bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.columns.arrow_buffers import spans_of
from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.operators.deduplication import store as deduplication
from statelib.operators.deduplication.codec import (
    Entries,
    decode_count,
    decode_segment,
    encode_count,
    encode_ids,
    encode_segment,
)
from statelib.operators.deduplication.kernel import NO_ENTRY
from statelib.operators.deduplication.store import Changes, DeduplicationStore
from statelib.operators.versioned.segment_interval import deduplication_segment_ms
from statelib.stores.backend import WriteBatch
from statelib.stores.memory import MemoryBackend

if TYPE_CHECKING:
    from statelib.stores.backend import Backend

Entry = tuple[int, int, int, int]
"""Timestamp, offset, source, partition."""

TEN_MINUTES = 600_000
GOLDEN_SEGMENT = bytes.fromhex("000000000056776a")
GOLDEN_VALUE = bytes.fromhex("02 0000018bcfe56800 0000000000000007 0002 00000005")
GOLDEN_IDS = [bytes.fromhex("00000001 6b 6964"), bytes.fromhex("00000000 6b6964"), bytes.fromhex("00000003 6b6964")]
GOLDEN_COUNT = bytes.fromhex("0000000000000001")


def columns(entries: list[Entry]) -> Entries:
    return Entries(*np.array(entries, dtype=np.int64).reshape(-1, 4).T.copy())


def rows(entries: Entries) -> list[Entry]:
    return list(zip(*(getattr(entries, name).tolist() for name in Entries.__slots__), strict=True))


def put(store: DeduplicationStore, backend: Backend, new: dict[bytes, Entry], stored: dict[bytes, Entry]) -> None:
    write = WriteBatch()
    before = np.array([stored[key][0] if key in stored else NO_ENTRY for key in new], np.int64)
    ids, entries = pa.array(list(new), pa.binary()), columns(list(new.values()))
    changes = Changes(
        np.arange(len(new)), entries.timestamp, before, lambda codes: [spans_of(ids.take(codes))], entries.take
    )
    store.store(changes, write)
    backend.write(write)


def expire(store: DeduplicationStore, backend: Backend, stream_time: int) -> None:
    write = WriteBatch()
    store.expire(stream_time, write)
    backend.write(write)


def content(backend: Backend) -> list[list[tuple[bytes, bytes]]]:
    return [list(backend.scan(family)) for family in DeduplicationStore.families("d")]


def test_golden_bytes() -> None:
    backend = MemoryBackend()
    put(DeduplicationStore(backend, "d", interval_ms=TEN_MINUTES), backend, {b"id": (1_700_000_000_000, 7, 2, 5)}, {})
    assert list(backend.scan("d.entries")) == [(GOLDEN_SEGMENT + b"id", GOLDEN_VALUE)]
    assert list(backend.scan("d.segments")) == [(GOLDEN_SEGMENT, GOLDEN_COUNT)]
    keys, ids = pa.array([b"k", b"", b"kid"], pa.binary()), pa.array([b"id", b"kid", b""], pa.large_binary())
    assert encode_ids(keys, ids).to_pylist() == GOLDEN_IDS
    opened = DeduplicationStore(backend, "d", interval_ms=TEN_MINUTES)
    assert len(opened) == 1
    assert rows(opened.fetch(b"id")) == [(1_700_000_000_000, 7, 2, 5)]
    assert rows(opened.fetch(b"other")) == []


def test_a_segment_is_half_the_interval_and_never_nothing() -> None:
    assert [deduplication_segment_ms(interval_ms) for interval_ms in (0, 1, 2, 3, 600_000)] == [1, 1, 1, 1, 300_000]
    store = DeduplicationStore(MemoryBackend(), "d", interval_ms=10)
    assert [store.kept_from(time) for time in (14, 15, 19, 20, 0)] == [0, 5, 5, 10, -10]


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (b"\x03" + GOLDEN_VALUE[1:], ConfigurationError),
        (b"\x03", ConfigurationError),
        (b"\x00" + GOLDEN_VALUE[1:], CorruptedDataError),
        (GOLDEN_VALUE[:-1], CorruptedDataError),
        (b"", CorruptedDataError),
    ],
)
def test_other_bytes_are_refused(value: bytes, error: type[Exception]) -> None:
    backend = MemoryBackend()
    write = WriteBatch()
    write.put("d.segments", GOLDEN_SEGMENT, GOLDEN_COUNT)
    write.put("d.entries", GOLDEN_SEGMENT + b"id", value)
    backend.write(write)
    with pytest.raises(error, match="store d"):
        DeduplicationStore(backend, "d", interval_ms=TEN_MINUTES).fetch(b"id")


@pytest.mark.parametrize("decode", [decode_segment, decode_count])
def test_segments_of_another_length_are_refused(decode) -> None:
    assert decode(encode_segment(5), "d") == decode(encode_count(5), "d") == 5
    with pytest.raises(CorruptedDataError, match="store d"):
        decode(b"1234567", "d")


IDS = st.binary(max_size=2)
PLACES = st.tuples(st.integers(-1, 2**63 - 1), st.integers(0, 2**15 - 1), st.integers(0, 2**31 - 1))
STEPS = st.tuples(
    st.dictionaries(IDS, st.tuples(st.integers(0, 12), PLACES), max_size=6),  # ids, after how many ms again
    st.lists(IDS, max_size=6, unique=True),
    st.sampled_from(["go on", "go on", "open anew"]),
)


@given(steps=st.lists(STEPS, max_size=6), interval_ms=st.integers(0, 11), at_once=st.integers(1, 3))
def test_the_store_is_a_dictionary(steps: list, interval_ms: int, at_once: int) -> None:
    """What it answers and what it keeps, whether a segment is asked, read, or known by a filter."""
    backend = MemoryBackend()
    store = DeduplicationStore(backend, "d", interval_ms=interval_ms)
    model: dict[bytes, Entry] = {}
    now = 20
    for news, asked, then in steps:
        now += 3
        oldest = store.kept_from(now)
        expire(store, backend, now)
        model = {key: entry for key, entry in model.items() if entry[0] >= oldest}
        new = {key: (max(oldest, now - back), *place) for key, (back, place) in news.items()}
        put(store, backend, new, model)
        model |= new
        if then == "open anew":
            store = DeduplicationStore(backend, "d", interval_ms=interval_ms)
        assert len(store) == len(model)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(deduplication, "_READ_AT_ONCE", at_once)
            found, entries = store.load(pa.array(asked, pa.binary()), since_ms=oldest)
        answer = dict(zip([asked[row] for row in found], rows(entries), strict=True))
        assert answer == {key: model[key] for key in asked if key in model}
        assert len(found) == len(answer)
        assert all(rows(store.fetch(key)) == [entry] for key, entry in model.items())
    fresh = MemoryBackend()
    put(DeduplicationStore(fresh, "d", interval_ms=interval_ms), fresh, model, {})
    assert content(backend) == content(fresh)


def test_segments_before_a_time_are_not_asked() -> None:
    backend = MemoryBackend()
    store = DeduplicationStore(backend, "d", interval_ms=10)
    put(store, backend, {b"a": (4, 0, 0, 0), b"b": (5, 0, 0, 0)}, {})
    for opened in (store, DeduplicationStore(backend, "d", interval_ms=10)):
        found, _ = opened.load(pa.array([b"a", b"b"], pa.binary()), since_ms=9)
        assert found.tolist() == [1]


class _Counting(MemoryBackend):
    """Counts the keys that are looked up."""

    asked = 0

    def multi_get(self, family, keys):
        self.asked += len(keys)
        return super().multi_get(family, keys)


def test_what_was_written_here_is_known_without_a_question() -> None:
    backend = _Counting()
    written = {f"{n}".encode(): (1, 0, 0, 0) for n in range(1_000)}
    others = pa.array([f"no {n}".encode() for n in range(1_000)], pa.binary())
    store = DeduplicationStore(backend, "d", interval_ms=10)
    assert store.memory_bytes() == 0
    put(store, backend, written, {})
    assert len(store.load(others, since_ms=0)[0]) == 0
    assert backend.asked < 50
    assert store.memory_bytes() == 2_048


def test_who_asks_long_enough_reads_the_segment_once() -> None:
    backend = _Counting()
    written = {f"{n}".encode(): (1, 0, 0, 0) for n in range(1_000)}
    put(DeduplicationStore(backend, "d", interval_ms=10), backend, written, {})
    store = DeduplicationStore(backend, "d", interval_ms=10)
    for first in range(0, 4_000, 300):
        ids = pa.array([f"{n}".encode() for n in range(first, first + 300)], pa.binary())
        assert len(store.load(ids, since_ms=0)[0]) == len([n for n in range(first, first + 300) if n < 1_000])
    assert 900 <= backend.asked < 1_000  # three times, then it knows
