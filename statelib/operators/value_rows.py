"""Arrow values that arrive in batches and are asked for by number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ValueRows:
    """Rows numbered from 0 in order of arrival, in few chunks: each at least twice as long as the next.

    So a row is copied at most once for every doubling, and taking rows looks into a logarithmic number of chunks.
    """

    def __init__(self) -> None:
        self._chunks: list[pa.Array] = []
        self._starts: list[int] = []
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def append(self, values: pa.Array) -> int:
        """Adds rows, all of one type.

        Returns:
            The number of the first one.
        """
        first = self._length
        if len(values):
            self._chunks.append(values)
            self._starts.append(first)
            self._length += len(values)
            while len(self._chunks) > 1 and len(self._chunks[-2]) < 2 * len(self._chunks[-1]):
                last = self._chunks.pop()
                self._starts.pop()
                self._chunks[-1] = pa.concat_arrays([self._chunks[-1], last])
        return first

    def take(self, rows: NDArray[np.int64], arrow_type: pa.DataType) -> pa.Array:
        """The values of ``rows`` (int64), null for negative ones; ``arrow_type`` is theirs, for when there are none."""
        if not self._chunks:
            return pa.nulls(len(rows), arrow_type)
        if len(self._chunks) == 1:
            return self._chunks[0].take(pa.array(rows, mask=rows < 0))
        chunk_of = np.searchsorted(np.array(self._starts), np.maximum(rows, 0), side="right") - 1
        order = np.argsort(chunk_of, kind="stable")
        bounds = np.searchsorted(chunk_of[order], np.arange(len(self._chunks) + 1))
        parts = []
        for chunk, start, first, end in zip(self._chunks, self._starts, bounds, bounds[1:], strict=False):
            inside = rows[order[first:end]]
            parts.append(chunk.take(pa.array(inside - start, mask=inside < 0)))
        back = np.empty(len(rows), dtype=np.int64)
        back[order] = np.arange(len(rows))
        return pa.concat_arrays(parts).take(pa.array(back))

    def memory_bytes(self) -> int:
        """What the rows hold in memory."""
        return sum(chunk.nbytes for chunk in self._chunks)
