"""Rows that outlive their batch: columns that are appended to at the end and read by row number.

Appended batches are kept as they are and merged with their neighbour once they are as large, as in a binary counter:
each row is copied a logarithmic number of times, and a read looks into a logarithmic number of pieces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import taken_rows, valid_of
from statelib.columns.counting import sort_by

if TYPE_CHECKING:
    from numpy.typing import NDArray


class RowPool:
    """Record batches of one schema, as one long table. Rows are numbered in the order in which they come.

    Args:
        schema: Of all rows.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._pieces: list[pa.RecordBatch] = []

    def __len__(self) -> int:
        return sum(piece.num_rows for piece in self._pieces)

    def append(self, rows: pa.RecordBatch) -> int:
        """Adds rows; returns the number of the first."""
        first = len(self)
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
        if len(self._pieces) == 1:
            return taken_rows(self._pieces[0], numbers)
        return self._take_of_several(numbers)

    def valid(self, name: str, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """bool, which of the rows with these numbers have a value in a column; none if there is no such column."""
        if name not in self.schema.names:
            return np.zeros(len(numbers), np.bool_)
        pieces = [valid_of(piece.column(name)) for piece in self._pieces]
        valid: NDArray[np.bool_] = np.concatenate([np.empty(0, np.bool_), *pieces])[numbers]
        return valid

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
        self._pieces = [kept] if kept.num_rows else []

    def memory_bytes(self) -> int:
        """What the rows take."""
        return sum(piece.nbytes for piece in self._pieces)
