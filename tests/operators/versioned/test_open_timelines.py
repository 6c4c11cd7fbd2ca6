"""What puts leave in memory, and what they cost."""

from __future__ import annotations

import gc
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from statelib import Stores
from statelib.errors.kinds import InternalError
from statelib.operators.versioned import open_timelines
from statelib.operators.versioned.codec import HEADER_KEY, decode_row, encode_segment_key
from statelib.operators.versioned.store import VALID_TO_UNDEFINED, VersionedKeyValueStore, VersionedRecord
from statelib.stores.memory import MemoryBackend

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.state import VersionedKeyValueStore as ApiStore


class CountingBackend(MemoryBackend):
    """Counts look-ups without that of the header."""

    asked: dict[str, int]

    def __init__(self) -> None:
        super().__init__()
        self.asked = {"s.latest": 0, "s.segments": 0}

    def get(self, family: str, key: bytes) -> bytes | None:
        self.asked[family] += key != HEADER_KEY
        return super().get(family, key)


def new(backend: MemoryBackend) -> VersionedKeyValueStore:
    return VersionedKeyValueStore(backend, "s", history_retention_ms=10_000, segment_interval_ms=1_000)


def test_a_key_is_read_and_its_row_encoded_once_a_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = CountingBackend()
    store = new(backend)
    store.put(b"k", b"v", 0)
    store.flush()
    for timestamp in range(1, 500):
        assert store.put(b"k", b"v", timestamp) == VALID_TO_UNDEFINED
        assert store.get(b"k") == VersionedRecord(b"v", timestamp)
    assert store.get(b"k", 250) == VersionedRecord(b"v", 250)
    assert (backend.asked, backend.writes) == ({"s.latest": 2, "s.segments": 1}, 1)

    monkeypatch.setattr("statelib.operators.versioned.segments.decode_versions", None)  # the row is copied
    store.flush()
    assert (backend.asked, backend.writes) == ({"s.latest": 2, "s.segments": 2}, 2)
    store.put(b"k", b"v", 500)
    store.flush()
    raw = backend.get("s.segments", encode_segment_key(0, b"k"))
    assert raw is not None
    assert [version.valid_from for version in decode_row(raw, "s")] == list(range(500))


def test_a_key_that_is_put_to_at_earlier_times_is_read_twice() -> None:
    backend = CountingBackend()
    store = new(backend)
    for timestamp in range(0, 5_000, 100):
        store.put(b"k", b"v", timestamp)
    store.flush()
    before = backend.asked["s.latest"]
    for timestamp in range(4_850, 0, -100):
        assert store.put(b"k", b"late", timestamp) == timestamp + 50
    assert backend.asked["s.latest"] - before == 2
    assert [record.timestamp for record in store.history(b"k", order="ascending")] == list(range(0, 4_950, 50))


def test_puts_are_written_when_they_have_become_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_timelines, "MOST_BYTES", 100_000)
    backend = MemoryBackend()
    store = new(backend)
    for timestamp in range(300):
        store.put(b"k", bytes(1_000), timestamp)
    assert 2 <= backend.writes <= 4
    assert new(backend).get(b"k") is not None


def api_store() -> ApiStore:
    supplier = Stores.persistent_versioned_key_value_store("s", timedelta(hours=1))
    return Stores.versioned_key_value_store_builder(supplier, pa.string(), pa.int64()).build()


def test_flush_and_close_write_what_was_put(tmp_path: Path) -> None:
    backend = MemoryBackend()
    store, other = api_store().init(backend), api_store().init(backend)
    store.put("EUR", 1, 10)
    assert other.get("EUR") is None
    store.flush()
    assert other.get("EUR") == VersionedRecord(1, 10)
    store.put("EUR", 2, 20)
    store.close()
    assert other.get("EUR") == VersionedRecord(2, 20)

    with api_store().init(tmp_path / "state") as store:
        store.put("EUR", 3, 30)
    with api_store().init(tmp_path / "state") as store:
        assert store.get("EUR") == VersionedRecord(3, 30)


def test_a_store_that_nobody_closes_loses_no_puts(tmp_path: Path) -> None:
    store = api_store().init(tmp_path / "state")
    store.put("EUR", 1, 10)
    del store
    gc.collect()
    with api_store().init(tmp_path / "state") as store:
        assert store.get("EUR") == VersionedRecord(1, 10)


def test_puts_that_cannot_be_written_any_more_are_an_error() -> None:
    backend: Any = MemoryBackend()
    store = api_store().init(backend)
    store.put("EUR", 1, 10)
    backend.close()
    with pytest.raises(InternalError, match="closed"):
        store.close()
