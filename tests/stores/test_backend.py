"""One suite over both backends: `Backend` is one contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.errors.kinds import InternalError
from statelib.stores import rocksdb
from statelib.stores.backend import WriteBatch
from statelib.stores.memory import MemoryBackend
from statelib.stores.rocksdb import RocksDbBackend
from tests.effort import examples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from statelib.stores.backend import Backend


@pytest.fixture(params=["memory", "rocksdb"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    opened = MemoryBackend() if request.param == "memory" else RocksDbBackend(tmp_path / "db")
    yield opened
    opened.close()


def put(backend: Backend, **entries: bytes) -> None:
    batch = WriteBatch()
    for key, value in entries.items():
        batch.put("f", key.encode(), value)
    backend.write(batch)


def test_a_family_that_was_never_written_is_empty(backend: Backend) -> None:
    assert backend.get("f", b"a") is None
    assert backend.multi_get("f", [b"a", b"b"]) == [None, None]
    assert list(backend.scan("f")) == []
    assert backend.is_empty("f")
    assert backend.count("f") == 0
    assert backend.approximate_bytes("f") == backend.approximate_keys("f") == 0


def test_every_write_counts(backend: Backend) -> None:
    before = backend.writes
    backend.get("f", b"a")
    assert backend.writes == before
    put(backend, a=b"1")
    once = backend.writes
    put(backend, a=b"1")
    assert before < once < backend.writes


def test_many_keys_are_found_in_their_order(backend: Backend) -> None:
    put(backend, **{f"k{i:03}": bytes([i]) for i in range(0, 200, 2)})
    keys = [b"k%03d" % i for i in reversed(range(200))]
    assert backend.multi_get("f", keys) == [None if i % 2 else bytes([i]) for i in reversed(range(200))]


def test_put_get_delete(backend: Backend) -> None:
    put(backend, a=b"1", b=b"")
    assert backend.get("f", b"a") == b"1"
    assert backend.multi_get("f", [b"b", b"c", b"a", b"a"]) == [b"", None, b"1", b"1"]
    assert not backend.is_empty("f")
    assert backend.approximate_keys("f") == 2
    assert backend.approximate_bytes("f") > 0
    batch = WriteBatch()
    batch.delete("f", b"a")
    batch.delete("f", b"not there")
    backend.write(batch)
    assert backend.get("f", b"a") is None


def test_families_are_apart_and_written_together(backend: Backend) -> None:
    batch = WriteBatch()
    batch.put("f", b"k", b"1")
    batch.put("g", b"k", b"2")
    backend.write(batch)
    assert (backend.get("f", b"k"), backend.get("g", b"k"), backend.get("h", b"k")) == (b"1", b"2", None)


def test_later_operations_of_a_batch_win_and_ranges_come_first(backend: Backend) -> None:
    put(backend, a=b"1", b=b"1", c=b"1")
    batch = WriteBatch()
    batch.put("f", b"b", b"2")
    batch.put("f", b"b", b"3")
    batch.put("f", b"d", b"4")
    batch.delete("f", b"d")
    batch.delete_range("f", b"a", b"c")
    batch.delete_range("f", b"x", b"c")  # empty: ends before it begins
    backend.write(batch)
    assert list(backend.scan("f")) == [(b"b", b"3"), (b"c", b"1")]


def test_the_empty_key_and_every_byte_are_keys(backend: Backend) -> None:
    keys = [b"", b"\x00", b"\x00\x00", b"\x7f", b"\x80", b"\xff", b"\xff\xff"]
    batch = WriteBatch()
    for key in reversed(keys):
        batch.put("f", key, key)
    backend.write(batch)
    assert [key for key, _ in backend.scan("f")] == keys
    assert backend.get("f", b"") == b""


def test_scan_bounds(backend: Backend) -> None:
    put(backend, a=b"1", b=b"2", c=b"3", d=b"4")

    def keys(*bounds: bytes, reverse: bool = False) -> str:
        return b"".join(key for key, _ in backend.scan("f", *bounds, reverse=reverse)).decode()

    assert keys() == "abcd"
    assert keys(b"b") == "bcd"
    assert keys(b"aa") == "bcd"
    assert keys(b"b", b"d") == "bc"
    assert keys(b"", b"c") == "ab"
    assert keys(b"c", b"c") == ""
    assert keys(b"d", b"a") == ""
    assert keys(reverse=True) == "dcba"
    assert keys(b"b", b"d", reverse=True) == "cb"
    assert [backend.count("f", first) for first in (b"", b"aa", b"d", b"e")] == [4, 3, 1, 0]
    assert keys(b"", b"cc", reverse=True) == "cba"


def test_a_scan_sees_what_was_there_when_it_began(backend: Backend) -> None:
    put(backend, a=b"1", b=b"2", c=b"3")
    scan = backend.scan("f")
    first = next(scan)
    batch = WriteBatch()
    batch.delete("f", b"b")
    batch.put("f", b"d", b"4")
    backend.write(batch)
    assert [first, *scan] == [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]
    assert [key for key, _ in backend.scan("f")] == [b"a", b"c", b"d"]


def test_a_long_scan_is_whole(backend: Backend) -> None:
    batch = WriteBatch()
    keys = [f"{number:05}".encode() for number in range(3000)]
    for key in keys:
        batch.put("f", key, key)
    backend.write(batch)
    assert [key for key, _ in backend.scan("f")] == keys
    assert [key for key, _ in backend.scan("f", reverse=True)] == keys[::-1]


@pytest.mark.parametrize(
    "use",
    [
        lambda backend: backend.get("f", b"a"),
        lambda backend: backend.multi_get("f", [b"a"]),
        lambda backend: backend.scan("f"),
        lambda backend: backend.is_empty("f"),
        lambda backend: backend.count("f"),
        lambda backend: backend.approximate_keys("f"),
        lambda backend: backend.approximate_bytes("f"),
        lambda backend: put(backend, a=b"1"),
    ],
    ids=["get", "multi_get", "scan", "is_empty", "count", "approximate_keys", "approximate_bytes", "write"],
)
def test_use_after_close_is_an_internal_error(backend: Backend, use: Callable[[Backend], object]) -> None:
    put(backend, a=b"1")
    backend.close()
    backend.close()
    with pytest.raises(InternalError, match="closed"):
        use(backend)


def test_close_ends_scans_that_are_still_open(backend: Backend) -> None:
    put(backend, a=b"1", b=b"2")
    scan = backend.scan("f")
    next(scan)
    backend.close()
    with pytest.raises(InternalError, match="closed"):
        next(scan)


KEYS = st.binary(max_size=2)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, st.binary(max_size=3)),
        st.tuples(st.just("delete"), KEYS, st.just(b"")),
        st.tuples(st.just("range"), KEYS, KEYS),
        st.tuples(st.just("put columns"), st.lists(KEYS, unique=True), st.binary(max_size=3)),
        st.tuples(st.just("delete columns"), st.lists(KEYS, unique=True), st.just(b"")),
    ),
    max_size=12,
)


def batch_of(operations: list[tuple[str, Any, bytes]]) -> WriteBatch:
    batch = WriteBatch()
    for kind, key, other in operations:
        if kind == "put":
            batch.put("f", key, other)
        elif kind == "delete":
            batch.delete("f", key)
        elif kind == "range":
            batch.delete_range("f", key, other)
        elif kind == "put columns":
            batch.put_columns("f", pa.array(key, pa.binary()), pa.array([other] * len(key), pa.binary()))
        else:
            batch.delete_columns("f", pa.array(key, pa.binary()))
    return batch


@examples(30)  # opening a database takes its time
@given(
    batches=st.lists(OPERATIONS, max_size=4),
    portion=st.integers(1, 3),
    first=KEYS,
    end=st.none() | KEYS,
    reverse=st.booleans(),
)
def test_rocksdb_does_what_memory_does(
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[list[tuple[str, Any, bytes]]],
    portion: int,
    first: bytes,
    end: bytes | None,
    reverse: bool,
) -> None:
    backend = RocksDbBackend(tmp_path_factory.mktemp("rocksdb") / "db")
    memory = MemoryBackend()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rocksdb, "PORTION", portion)
        for operations in batches:
            backend.write(batch_of(operations))
            memory.write(batch_of(operations))
            assert list(backend.scan("f")) == list(memory.scan("f"))
            assert backend.is_empty("f") == memory.is_empty("f")
    bounds = (first, end)
    assert list(backend.scan("f", *bounds, reverse=reverse)) == list(memory.scan("f", *bounds, reverse=reverse))
    backend.close()


def test_columns_are_carried_out_after_single_changes_and_in_order(backend: Backend) -> None:
    a, b = (pa.array([key], pa.binary()) for key in (b"a", b"b"))
    batch = WriteBatch()
    batch.delete_columns("f", a)
    batch.put_columns("f", b, b)
    batch.delete_columns("f", b[:0])
    batch.put_columns("f", a, b)
    batch.delete_columns("f", b)
    batch.put("f", b"a", b"1")
    assert len(batch) == 5
    backend.write(batch)
    assert list(backend.scan("f")) == [(b"a", b"b")]


def test_a_copy_in_memory_goes_its_own_way() -> None:
    backend = MemoryBackend()
    write = WriteBatch()
    write.put("family", b"key", b"before")
    backend.write(write)
    other = backend.copy()
    write = WriteBatch()
    write.put("family", b"key", b"after")
    backend.write(write)
    assert (backend.get("family", b"key"), other.get("family", b"key")) == (b"after", b"before")
