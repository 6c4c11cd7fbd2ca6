"""Puts rows into bytewise order of their keys without having all of them in memory: a sample sort.

Some of the keys, sorted, bound pieces of like size. A first pass over the rows finds the piece that each belongs to;
then one piece after the other is made and sorted. So a key is made twice, and what takes memory is a piece, and a few
bytes a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.columns.arrow_buffers import spans_of
from statelib.columns.bytes_order import places_among, sort_order
from statelib.stores.byte_columns import cut, in_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from statelib.stores.backend import ColumnOf, Rows
    from statelib.stores.byte_columns import Column

PIECE_ROWS = 1 << 14
PIECE_BYTES = 8 << 20
"""A piece has at most about so many rows, and keys and values of about so many bytes.

So many rows are small enough for the allocator to keep their memory for the next piece.
"""

_SAMPLES = 32  # a piece: the more there are, the more alike the pieces become
_MOST_PIECES = 1 << 15


def in_pieces(rows: Rows) -> Iterator[tuple[Column, Column | None]]:
    """All keys, in bytewise order, and their values, some at a time."""
    for some in _pieces(rows):
        content, start, length = spans_of(rows.keys(some))
        order = sort_order(content, start, length)
        yield cut(content, start[order], length[order]), None if rows.values is None else rows.values(some[order])


def _pieces(rows: Rows) -> Iterator[NDArray[np.int64]]:
    """int64: the rows of each piece, ascending; all keys of a piece come before those of the next one."""
    pieces = min(-(-rows.count // rows_a_piece(rows.count, rows.keys, rows.values)), _MOST_PIECES)
    if pieces == 1:
        yield np.arange(rows.count)
        return
    sampled = rows.keys(_spread(rows.count, _SAMPLES * pieces))
    bounds = sampled.take(in_order(sampled).take(np.arange(1, pieces) * len(sampled) // pieces))
    piece = np.empty(rows.count, dtype=np.int16)
    for first in range(0, rows.count, PIECE_ROWS):
        keys = rows.keys(np.arange(first, min(first + PIECE_ROWS, rows.count)))
        places = np.empty(len(keys), dtype=np.int64)
        places_among(*spans_of(keys), *spans_of(bounds), places)
        piece[first : first + len(keys)] = places
    yield from rows_of_pieces(piece, pieces)


def rows_of_pieces(piece: NDArray[np.int16], pieces: int) -> list[NDArray[np.int64]]:
    """int64: the rows of each piece, ascending, given the number of each row's piece."""
    return np.split(np.argsort(piece, kind="stable"), np.cumsum(np.bincount(piece, minlength=pieces))[:-1])


def rows_a_piece(count: int, *columns: ColumnOf | None) -> int:
    """Of how many rows out of ``count`` a piece is to be made, judged by a sample of their columns."""
    sample = _spread(count, _SAMPLES)
    row_bytes: int = sum(column(sample).nbytes for column in columns if column is not None) // len(sample)
    return max(1, min(PIECE_ROWS, PIECE_BYTES // max(row_bytes, 1)))


def _spread(count: int, samples: int) -> NDArray[np.int64]:
    """int64: up to so many rows out of ``count``, evenly."""
    return np.arange(min(count, samples)) * count // min(count, samples)
