"""Families in order of time that were given tables: what has expired is left out, and nothing else changes."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.stores import rocksdb
from statelib.stores.backend import Backend, WriteBatch
from statelib.stores.memory import MemoryBackend
from statelib.stores.rocksdb import RocksDbBackend
from statelib.stores.rocksdb_compaction import MOST_NEW_FILES

_SOME = 10


@pytest.fixture(autouse=True)
def small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table file for what would else go into a memory table."""
    monkeypatch.setattr(rocksdb, "PORTION", _SOME - 1)


def key(number: int) -> bytes:
    return b"%06d" % number


def put(backend: Backend, first: int, value: bytes, count: int = _SOME) -> None:
    batch = WriteBatch()
    keys = [key(number) for number in range(first, first + count)]
    batch.put_columns("f", pa.array(keys, pa.binary()), pa.array([value] * count, pa.binary()))
    backend.write(batch)


def expire(backend: Backend, end: int) -> None:
    batch = WriteBatch()
    batch.expire_range("f", key(0), key(end))
    backend.write(batch)


def files(folder: Path, pattern: str = "*.sst") -> dict[int, int]:
    """Size of each file, by what it is on disk."""
    return {file.stat().st_ino: file.stat().st_size for file in folder.glob(pattern)}


def checkpoint(backend: RocksDbBackend, folder: Path) -> None:
    backend.flush()
    backend.compact()
    backend.checkpoint(folder)


def test_of_what_has_expired_nothing_is_left_and_the_rest_is_not_written_again(tmp_path: Path) -> None:
    backend = RocksDbBackend(tmp_path / "db", compacts_itself=False)
    made: dict[int, int] = {}
    for slot in range(20):
        put(backend, _SOME * slot, b"one")
        put(backend, _SOME * slot, b"two")
        made |= files(tmp_path / "db")
        expire(backend, _SOME * (slot - 1))
        backend.compact(more_will_expire=True)
    checkpoint(backend, tmp_path / "checkpoint")
    kept = files(tmp_path / "checkpoint")
    assert len(kept) == 4
    assert set(kept) <= set(made)
    expected = [(key(number), b"two") for number in range(_SOME * 18, _SOME * 20)]
    assert list(backend.scan("f")) == expected
    put(backend, _SOME * 20, b"three")
    backend.close()
    assert not files(tmp_path / "db", "*.kept")
    opened = RocksDbBackend(tmp_path / "checkpoint", compacts_itself=False)
    assert list(opened.scan("f")) == expected
    opened.close()


def test_what_was_there_before_has_to_expire_first(tmp_path: Path) -> None:
    backend = RocksDbBackend(tmp_path / "db", compacts_itself=False)
    put(backend, 0, b"before", _SOME * 4)
    backend.close()
    backend = RocksDbBackend(tmp_path / "db", compacts_itself=False)
    expire(backend, _SOME * 2)
    put(backend, _SOME * 4, b"one")
    put(backend, _SOME * 5, b"two")
    checkpoint(backend, tmp_path / "with")
    assert len(files(tmp_path / "with")) == 4, "three tables, and a range"
    assert backend.count("f") == _SOME * 4
    expire(backend, _SOME * 5)
    checkpoint(backend, tmp_path / "without")
    assert len(files(tmp_path / "without")) == 1
    assert list(backend.scan("f")) == [(key(number), b"two") for number in range(_SOME * 5, _SOME * 6)]
    backend.close()


def test_a_few_keys_beside_the_tables_are_a_table_too(tmp_path: Path) -> None:
    backend = RocksDbBackend(tmp_path / "db", compacts_itself=False)
    for slot in range(2 * MOST_NEW_FILES):
        put(backend, _SOME * slot, b"many")
        put(backend, _SOME * slot, b"few", 2)
        expire(backend, _SOME * slot)
    checkpoint(backend, tmp_path / "checkpoint")
    assert len(files(tmp_path / "checkpoint")) == 2
    assert [value for _, value in backend.scan("f")] == [b"few"] * 2 + [b"many"] * (_SOME - 2)
    backend.close()


def test_a_table_of_which_a_part_has_expired_and_what_comes_after_the_range(tmp_path: Path) -> None:
    backend = RocksDbBackend(tmp_path / "db", compacts_itself=False)
    expire(backend, 0)
    put(backend, 0, b"gone")
    put(backend, 5, b"partly")
    expire(backend, 12)
    put(backend, 3, b"later", 4)
    checkpoint(backend, tmp_path / "checkpoint")
    assert len(files(tmp_path / "checkpoint")) == 3, "two tables, and the range"
    expected = [(key(n), b"later") for n in range(3, 7)] + [(key(n), b"partly") for n in range(12, 15)]
    assert list(backend.scan("f")) == expected
    backend.close()


_FIRSTS = st.integers(0, 6 * _SOME)
_ACTIONS = st.one_of(
    *[st.tuples(st.just("table"), _FIRSTS)] * 3,
    *[st.tuples(st.just("expire"), _FIRSTS)] * 3,
    st.tuples(st.just("few"), _FIRSTS),
    st.tuples(st.just("one"), _FIRSTS),
    st.tuples(st.just("delete"), _FIRSTS),
    st.tuples(st.just("delete one"), _FIRSTS),
    st.tuples(st.just("expire within"), _FIRSTS),
    st.tuples(st.just("compact"), st.just(0)),
)


def act(backend: Backend, action: str, at: int, number: int) -> None:
    batch = WriteBatch()
    keys = pa.array([key(at + i) for i in range(2 if action == "few" else _SOME)], pa.binary())
    match action:
        case "table" | "few":
            batch.put_columns("f", keys, pa.array([b"%d" % number] * len(keys), pa.binary()))
        case "one":
            batch.put("f", key(at), b"%d" % number)
        case "delete":
            batch.delete_columns("f", keys)
        case "delete one":
            batch.delete("f", key(at))
        case "expire":
            batch.expire_range("f", key(0), key(at))
        case "expire within":
            batch.expire_range("f", key(at), key(at + 2 * _SOME))
    backend.write(batch)
    if action == "compact" and isinstance(backend, RocksDbBackend):
        backend.flush()
        backend.compact()


@given(st.lists(_ACTIONS, max_size=20))
def test_a_family_holds_what_it_would_without_its_tables_being_kept(actions: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        backend, expected = RocksDbBackend(Path(folder) / "db", compacts_itself=False), MemoryBackend()
        for number, (action, at) in enumerate([*actions, ("compact", 0)]):
            act(backend, action, at, number)
            act(expected, action, at, number)
        assert list(backend.scan("f")) == list(expected.scan("f"))
        backend.close()
