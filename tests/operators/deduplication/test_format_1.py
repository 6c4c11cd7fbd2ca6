"""A deduplication store that was written in format 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.operators.deduplication import format_1 as deduplication_format_1
from statelib.operators.deduplication.format_1 import upgrade
from statelib.operators.deduplication.store import DeduplicationStore
from statelib.stores.backend import WriteBatch
from statelib.stores.memory import MemoryBackend
from statelib.stores.rocksdb import RocksDbBackend
from tests.operators.deduplication.test_store import TEN_MINUTES, content, put, rows

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.stores.backend import Backend

# Three ids as format 1 was written: "id" twice, an empty one, and one that looks like today's key of "id".
ENTRIES = {
    "": "010000018bcfe6eea0ffffffffffffffff000000000000",
    "000000000056776a6964": "010000018bcff016610000000000000009000100000003",
    "6964": "010000018bcfef53100000000000000008000200000005",
}
INDEX = ["0000018bcfe6eea0", "0000018bcfef53106964", "0000018bcff01661000000000056776a6964"]
EXPECTED = {
    b"": (1_700_000_100_000, -1, 0, 0),
    b"id": (1_700_000_650_000, 8, 2, 5),
    bytes.fromhex("000000000056776a6964"): (1_700_000_700_001, 9, 1, 3),
}


def written(backend: Backend) -> None:
    write = WriteBatch()
    for key, value in ENTRIES.items():
        write.put("d.entries", bytes.fromhex(key), bytes.fromhex(value))
    for key in INDEX:
        write.put("d.index", bytes.fromhex(key), b"")
    backend.write(write)


@pytest.fixture(params=["memory", "rocksdb"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    return MemoryBackend() if request.param == "memory" else RocksDbBackend(tmp_path / "db")


@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_it_becomes_what_today_writes(backend: Backend, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deduplication_format_1, "_AT_ONCE", at_once)
    written(backend)
    for _ in range(2):  # the second time there is nothing to do
        upgrade(backend, "d", interval_ms=TEN_MINUTES)
        store = DeduplicationStore(backend, "d", interval_ms=TEN_MINUTES)
        assert {id_bytes: rows(store.fetch(id_bytes)) for id_bytes in EXPECTED} == {
            id_bytes: [entry] for id_bytes, entry in EXPECTED.items()
        }
        assert len(store) == 3
    fresh = MemoryBackend()
    put(DeduplicationStore(fresh, "d", interval_ms=TEN_MINUTES), fresh, EXPECTED, {})
    assert content(backend) == content(fresh)
    assert backend.is_empty("d.index")
    assert backend.is_empty("d.upgraded")


def test_an_empty_store_has_no_format() -> None:
    backend = MemoryBackend()
    upgrade(backend, "d", interval_ms=TEN_MINUTES)
    assert backend.is_empty("d.segments")


def test_whoever_only_reads_is_told() -> None:
    backend = MemoryBackend()
    written(backend)
    with pytest.raises(ConfigurationError, match=r"format 1(.|\n)*replay a slice"):
        DeduplicationStore(backend, "d", interval_ms=TEN_MINUTES)


@pytest.mark.parametrize(
    ("family", "key", "value"),
    [
        ("d.entries", b"more", ENTRIES["6964"]),  # not in the index
        ("d.index", bytes.fromhex(INDEX[0]) + b"more", ""),  # of no entry
        ("d.index", bytes.fromhex(INDEX[0]) + b"id", ""),  # of another time
        ("d.entries", b"id", "02" + ENTRIES["6964"][2:]),
    ],
)
def test_damage_is_found(family: str, key: bytes, value: str) -> None:
    backend = MemoryBackend()
    written(backend)
    write = WriteBatch()
    write.put(family, key, bytes.fromhex(value))
    backend.write(write)
    with pytest.raises(CorruptedDataError, match="store d"):
        upgrade(backend, "d", interval_ms=TEN_MINUTES)
