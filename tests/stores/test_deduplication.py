"""The deduplication store: its bytes, and that point and batch access agree."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors import ConfigurationError, CorruptedDataError
from statelib.stores.backend import WriteBatch
from statelib.stores.deduplication import DeduplicationStore, Entry
from statelib.stores.memory import MemoryBackend

GOLDEN_VALUE = bytes.fromhex("01 0000018bcfe56800 0000000000000007 0002 00000005")
GOLDEN_INDEX_KEY = bytes.fromhex("0000018bcfe56800") + b"id"
ENTRIES = st.builds(
    Entry, st.integers(0, 50), st.integers(-1, 2**63 - 1), st.integers(0, 2**15 - 1), st.integers(0, 2**31 - 1)
)


def test_golden_bytes() -> None:
    backend = MemoryBackend()
    entry = Entry(1_700_000_000_000, 7, 2, 5)
    DeduplicationStore(backend, "d").put(b"id", entry)
    assert list(backend.scan("d.entries")) == [(b"id", GOLDEN_VALUE)]
    assert list(backend.scan("d.index")) == [(GOLDEN_INDEX_KEY, b"")]
    assert DeduplicationStore(backend, "d").fetch(b"id") == entry
    assert DeduplicationStore(backend, "d").fetch(b"other") is None


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (b"\x02" + GOLDEN_VALUE[1:], ConfigurationError),
        (b"\x00" + GOLDEN_VALUE[1:], CorruptedDataError),
        (GOLDEN_VALUE[:-1], CorruptedDataError),
        (b"", CorruptedDataError),
    ],
)
def test_other_bytes_are_refused(value: bytes, error: type[Exception]) -> None:
    backend = MemoryBackend()
    write = WriteBatch()
    write.put("d.entries", b"id", value)
    backend.write(write)
    with pytest.raises(error, match="store d"):
        DeduplicationStore(backend, "d").fetch(b"id")


@given(puts=st.lists(st.tuples(st.binary(max_size=3), ENTRIES)), horizon=st.integers(-1, 60))
def test_point_and_batch_access_agree(puts: list[tuple[bytes, Entry]], horizon: int) -> None:
    store = DeduplicationStore(MemoryBackend(), "d")
    assert store.approximate_len() == 0
    for id_bytes, entry in puts:
        store.put(id_bytes, entry)
    expected = {id_bytes: entry for id_bytes, entry in dict(puts).items() if entry.timestamp >= horizon}
    assert store.expire(horizon) == len(dict(puts)) - len(expected)
    assert store.expire(horizon) == 0

    asked = sorted({*dict(puts), b"none"})
    found, entries = store.load(asked)
    assert [id_bytes for id_bytes, there in zip(asked, found, strict=True) if there] == sorted(expected)
    ids, all_entries = store.load_all()
    assert ids == sorted(expected)
    for columns in (entries, all_entries):
        rows = zip(columns.timestamp, columns.offset, columns.source, columns.partition, strict=True)
        assert [Entry(*map(int, row)) for row in rows] == [expected[id_bytes] for id_bytes in ids]
    assert {id_bytes: store.fetch(id_bytes) for id_bytes in ids} == expected


def test_batch_writes_are_read_by_point() -> None:
    backend = MemoryBackend()
    store = DeduplicationStore(backend, "d")
    store.put(b"a", Entry(1, 5))
    _, entries = store.load([b"a"])
    write = WriteBatch()
    store.store(pa.array([b"b", b"c"], pa.binary()), entries.take(np.array([0, 0])), write)
    backend.write(write)
    assert store.fetch(b"c") == Entry(1, 5)
    assert store.approximate_len() >= 1
