"""Rows that outlive their batch: columns that are appended to at the end and read by row number.

Appended batches are kept as they are and merged with their neighbour once they are as large, as in a binary counter:
each row is copied a logarithmic number of times, and a read looks into a logarithmic number of pieces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.arrow_buffers import taken_rows
from statelib.kernels.counting import sort_by

if TYPE_CHECKING:
    from numpy.typing import NDArray


_TOGETHER = 4
"""Rows are copied with others rather than chosen, if those are no more than so many times as many."""


class RowPool:
    """Record batches of one schema, as one long table. Rows are numbered in the order in which they come.

    Args:
        schema: Of all rows.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._pieces: list[pa.RecordBatch] = []
        self._first = 0  # number of the first row that is not forgotten

    def __len__(self) -> int:
        return sum(piece.num_rows for piece in self._pieces)

    @property
    def end(self) -> int:
        """The number that the next row gets."""
        return self._first + len(self)

    def append(self, rows: pa.RecordBatch) -> int:
        """Adds rows; returns the number of the first."""
        first = self.end
        if rows.num_rows == 0:
            return first
        self._pieces.append(rows)
        while len(self._pieces) > 1 and self._pieces[-2].num_rows <= self._pieces[-1].num_rows:
            self._pieces[-2:] = [pa.concat_batches(self._pieces[-2:])]
        return first

    def take(self, numbers: NDArray[np.int64]) -> pa.RecordBatch:
        """The rows with these numbers, in this order."""
        if len(numbers) == 0:
            return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in self.schema], schema=self.schema)
        if len(numbers) >= len(self):  # to bring them together costs no more than to choose
            self._merge()
        places = numbers - self._first
        if len(self._pieces) == 1:
            return taken_rows(self._pieces[0], places)
        return self._take_of_several(places)

    def lookup(self, numbers: NDArray[np.int64]) -> tuple[pa.RecordBatch, NDArray[np.int64]]:
        """As `take`, where only a copy is made of the rows: rows that these are among, and int64, the place of each."""
        if len(self) >= _TOGETHER * len(numbers):
            return self.take(numbers), np.arange(len(numbers))
        self._merge()
        return self._pieces[0], numbers - self._first

    def _merge(self) -> None:
        if len(self._pieces) > 1:
            self._pieces = [pa.concat_batches(self._pieces)]

    def _take_of_several(self, places: NDArray[np.int64]) -> pa.RecordBatch:
        ends = np.cumsum([piece.num_rows for piece in self._pieces])
        piece_of = np.searchsorted(ends, places, side="right")
        by_piece = sort_by(piece_of, len(ends))
        bounds = np.searchsorted(piece_of[by_piece], np.arange(1, len(ends)))
        parts = [
            taken_rows(piece, places[which] - (end - piece.num_rows))
            for piece, end, which in zip(self._pieces, ends, np.split(by_piece, bounds), strict=True)
            if len(which)
        ]
        if len(parts) == 1:
            return parts[0]
        place = np.empty(len(places), dtype=np.int64)
        place[by_piece] = np.arange(len(places))
        return taken_rows(pa.concat_batches(parts), place)

    def keep(self, numbers: NDArray[np.int64]) -> None:
        """Keeps only these rows, numbered anew in this order, from 0."""
        kept = self.take(numbers)
        self._pieces, self._first = ([kept] if kept.num_rows else []), 0

    def forget_before(self, number: int) -> None:
        """Forgets the rows with smaller numbers, but for a few where many would have to be copied; all keep theirs."""
        while self._pieces and self._first + len(self._pieces[0]) <= number:
            self._first += len(self._pieces.pop(0))
        gone = number - self._first
        if self._pieces and len(self._pieces[0]) <= _TOGETHER * gone:
            self._pieces[0] = taken_rows(self._pieces[0], np.arange(gone, len(self._pieces[0])))
            self._first = number

    def memory_bytes(self) -> int:
        """What the rows take."""
        return sum(piece.nbytes for piece in self._pieces)
