"""Rows in pieces: in the order that Python gives, each once, and never all of them at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelib.stores import rows_in_order
from statelib.stores.backend import PORTION, Rows, WriteBatch
from statelib.stores.memory import MemoryBackend
from statelib.stores.rocksdb import RocksDbBackend
from statelib.stores.rows_in_order import in_pieces

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from statelib.stores.backend import Backend
    from statelib.stores.byte_columns import Column

PARTS = st.sampled_from([b"", b"\x00", b"\xff", b"a", b"campaign", b"12345678", b"\x00" * 8])
KEYS = st.lists(st.lists(PARTS, max_size=5).map(b"".join) | st.binary(max_size=20), min_size=1, unique=True)


class Asked:
    """Rows that know how many of them were asked for at once."""

    def __init__(self, keys: list[bytes], values: list[bytes] | None) -> None:
        self.most = 0
        self.rows = Rows(len(keys), self.some(keys), None if values is None else self.some(values))

    def some(self, column: list[bytes]):
        def take(rows: NDArray[np.int64]) -> Column:
            self.most = max(self.most, len(rows))
            return pa.array([column[row] for row in rows.tolist()], pa.binary())

        return take


@given(KEYS, st.integers(1, 9), st.integers(1, 200))
def test_pieces_are_in_order_and_complete(keys: list[bytes], piece_rows: int, piece_bytes: int) -> None:
    values = [b"of " + key for key in keys]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_in_order, "PIECE_ROWS", piece_rows)
        patch.setattr(rows_in_order, "PIECE_BYTES", piece_bytes)
        pieces = list(in_pieces(Asked(keys, values).rows))
    assert [key for some, _ in pieces for key in some.to_pylist()] == sorted(keys)
    assert [value for _, some in pieces for value in some.to_pylist()] == [b"of " + key for key in sorted(keys)]


def test_deletions_have_no_values() -> None:
    assert [(keys.to_pylist(), values) for keys, values in in_pieces(Asked([b"b", b"a"], None).rows)] == [
        ([b"a", b"b"], None)
    ]


def test_a_piece_holds_a_small_part() -> None:
    keys = [number.to_bytes(4, "big") for number in np.random.default_rng(1).permutation(20_000).tolist()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_in_order, "PIECE_ROWS", 1_000)
        asked = Asked(keys, keys)
        assert sum(len(some) for some, _ in in_pieces(asked.rows)) == len(keys)
    assert asked.most < 2_000


def test_large_rows_come_in_smaller_pieces() -> None:
    keys = [b"%05d" % number for number in range(4_000)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_in_order, "PIECE_BYTES", 1 << 20)
        asked = Asked(keys, [b"x" * 10_000] * len(keys))
        assert max(values.nbytes for _, values in in_pieces(asked.rows) if values is not None) < 2 << 20


@pytest.mark.parametrize("passed", [False, True])
@pytest.mark.parametrize("kind", ["memory", "rocksdb"])
def test_many_rows_are_written_and_deleted(kind: str, passed: bool, tmp_path: Path) -> None:
    backend: Backend = MemoryBackend() if kind == "memory" else RocksDbBackend(tmp_path / "db")
    keys = [b"%06d" % number for number in range(5 * PORTION)]
    write = WriteBatch(passed_to=backend if passed else None)
    write.put("f", keys[7], b"replaced by the rows")
    write.put("g", b"before", b"1")
    asked = Asked(keys, keys)
    write.put_rows("f", asked.rows)
    asked.rows = None  # type: ignore[assignment]
    write.put("g", b"after", b"2")
    backend.write(write)
    assert list(backend.scan("f")) == list(zip(keys, keys, strict=True))
    assert list(backend.scan("g")) == [(b"after", b"2"), (b"before", b"1")]
    write = WriteBatch(passed_to=backend if passed else None)
    write.put_rows("f", Asked(keys[PORTION:], None).rows)
    backend.write(write)
    assert [key for key, _ in backend.scan("f")] == keys[:PORTION]
    backend.close()


def test_a_batch_passes_on_what_would_take_memory() -> None:
    backend = MemoryBackend()
    write = WriteBatch(passed_to=backend)
    write.put("f", b"few", b"1")
    write.put_rows("f", Asked([b"a"], [b"b"]).rows)
    assert len(write) == 2
    assert backend.is_empty("f")
    keys = [b"%06d" % number for number in range(PORTION + 1)]
    write.put_rows("f", Asked(keys, keys).rows)
    assert len(write) == 0
    assert backend.count("f") == len(keys) + 2
