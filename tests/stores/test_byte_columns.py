from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from statelib.columns import arrow_buffers
from statelib.stores.backend import WriteBatch
from statelib.stores.byte_columns import (
    cut,
    empty_values,
    grouped,
    in_order,
    joined,
    packed,
    raw_column,
    repeated,
    spans_of_rows,
    times,
    unpacked,
)
from statelib.stores.memory import MemoryBackend
from statelib.stores.rocksdb import RocksDbBackend


def test_parts_are_joined_by_row() -> None:
    keys = pa.array([b"", b"ab", b"c"], pa.binary())
    numbers = packed(np.array([1, 2, 3], ">i2"))
    assert joined(keys, numbers, keys).to_pylist() == [b"\x00\x01", b"ab\x00\x02ab", b"c\x00\x03c"]
    assert joined(keys[:0], numbers[:0]).to_pylist() == []


def test_parts_may_be_taken_from_where_they_lie() -> None:
    content = np.frombuffer(b"abcdef", np.uint8)
    spans = content, np.array([4, 0, 6]), np.array([2, 3, 0])
    numbers = spans_of_rows(np.array([1, 2, 3], ">i2"))
    expected = [b"=\x00\x01ef", b"=\x00\x02abc", b"=\x00\x03"]
    assert joined(repeated(b"=", 3), numbers, spans).to_pylist() == expected
    assert joined(repeated(b"=", 0), spans_of_rows(np.empty(0, ">i2"))).to_pylist() == []


def test_times_are_big_endian() -> None:
    assert times(np.array([258, -1])).to_pylist() == [b"\0\0\0\0\0\0\x01\x02", b"\xff" * 8]
    assert times(np.empty(0, np.int64)).to_pylist() == []


def test_rows_of_records_and_of_two_dimensions() -> None:
    assert packed(np.array([(1, 2)], [("a", "u1"), ("b", ">i2")])).to_pylist() == [b"\1\0\2"]
    assert packed(np.array([[1, 2], [3, 4]], np.uint8)).to_pylist() == [b"\1\2", b"\3\4"]


def test_pieces_are_cut_out() -> None:
    content = np.frombuffer(b"abcdef", np.uint8)
    assert cut(content, np.array([4, 0, 6]), np.array([2, 3, 0])).to_pylist() == [b"ef", b"abc", b""]
    numbers = cut(content, np.array([1, 4]), np.array([2, 2]))
    assert unpacked(numbers, np.dtype(">u2")).tolist() == [0x6263, 0x6566]
    assert unpacked(cut(content, *np.zeros((2, 0), np.int64)), np.dtype(">u2")).tolist() == []


def test_many_rows_are_grouped_into_one() -> None:
    column = pa.array([b"zz", b"a", b"", b"bc", b"d"], pa.binary())[1:]
    assert grouped(column, np.array([0, 2, 3, 4])).to_pylist() == [b"a", b"bc", b"d"]
    assert grouped(column[:0], np.array([0])).to_pylist() == []


def test_what_a_backend_gives() -> None:
    assert raw_column([b"a", None, b""]).to_pylist() == [b"a", None, b""]
    assert len(raw_column([])) == 0


def test_order() -> None:
    keys = pa.array([b"b", b"a", b"ab"], pa.binary())
    assert keys.take(in_order(keys)).to_pylist() == [b"a", b"ab", b"b"]


def test_what_is_beyond_two_gibibytes_becomes_large(monkeypatch) -> None:
    monkeypatch.setattr(arrow_buffers, "_MAX_ARRAY_BYTES", 3)
    made = joined(pa.array([b"ab", b"c"], pa.binary()), pa.array([b"de", b""], pa.binary()))
    assert pa.types.is_large_binary(made.type)
    assert made.to_pylist() == [b"abde", b"c"]
    assert joined(made, made).to_pylist() == [b"abdeabde", b"cc"]


@pytest.mark.parametrize("backend", [lambda _: MemoryBackend(), RocksDbBackend], ids=["memory", "rocksdb"])
def test_columns_are_put_after_single_changes(backend, tmp_path) -> None:
    store = backend(tmp_path / "state")
    write = WriteBatch()
    keys = pa.array([b"z", b"a", b"m"], pa.binary())
    write.put_columns("f", keys, pa.array([b"1", b"2", b"3"], pa.binary()))
    write.put_columns("g", keys, empty_values(3))
    write.put_columns("g", keys[:0], empty_values(0))
    write.delete("f", b"a")
    write.put("f", b"z", b"before")
    assert len(write) == 8
    store.write(write)
    assert list(store.scan("f")) == [(b"a", b"2"), (b"m", b"3"), (b"z", b"1")]
    assert list(store.scan("g")) == [(b"a", b""), (b"m", b""), (b"z", b"")]
    store.close()
