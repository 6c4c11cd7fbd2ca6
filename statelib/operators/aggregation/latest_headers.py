"""The headers of the latest record of each slot of a working set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import taken
from statelib.columns.growing import grown, shrunk
from statelib.records.row_pool import RowPool

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NONE = 0
_ROWS_PER_SLOT = 4


class LatestHeaders:
    """See the module's docstring. As long as no record has headers, which is the rule, nothing is kept."""

    def __init__(self) -> None:
        self._pool: RowPool | None = None  # whose row `_NONE` is null
        self._number = np.empty(0, dtype=np.int64)  # by slot, of a row of the pool

    @property
    def any(self) -> bool:
        """Whether any record had headers."""
        return self._pool is not None

    def update(self, headers: pa.Array, rows: NDArray[np.int64], slots: NDArray[np.int64], count: int) -> None:
        """Takes those of some records.

        Args:
            headers: Of a batch's records.
            rows: int64, by update, in order: the record.
            slots: int64, by update: the slot.
            count: How many slots there are.
        """
        if self._pool is None:
            if headers.null_count == len(headers):
                return
            self._pool = RowPool(pa.schema([("headers", headers.type)]))
            self._append(self._pool, pa.nulls(1, headers.type))
        self._number = grown(self._number, count, _NONE)
        first = len(self._pool)
        self._number[slots] = first + np.arange(len(slots))  # of several updates of a slot the last one stays
        touched = np.flatnonzero(self._number >= first)
        latest = rows[self._number[touched] - first]
        self._append(self._pool, taken(headers, pa.array(latest)))
        self._number[touched] = first + np.arange(len(touched))
        if len(self._pool) > _ROWS_PER_SLOT * count:
            wanted = np.unique(np.append(self._number, _NONE))
            self._pool.keep(wanted)
            self._number = np.searchsorted(wanted, self._number)

    def _append(self, pool: RowPool, headers: pa.Array) -> None:
        pool.append(pa.RecordBatch.from_arrays([headers], schema=pool.schema))

    def keep(self, slots: NDArray[np.int64]) -> None:
        """Keeps only those of ``slots`` (ascending), numbered anew in their order."""
        if self._pool is not None:
            self._number = shrunk(self._number, slots, _NONE)

    def take(self, slots: NDArray[np.int64], kind: pa.DataType) -> pa.Array:
        """Those of ``slots``; ``kind``: their type."""
        if self._pool is None:
            return pa.nulls(len(slots), kind)
        return self._pool.take(self._number[slots]).column("headers")

    def memory_bytes(self) -> int:
        """What they take."""
        return self._number.nbytes + (0 if self._pool is None else self._pool.memory_bytes())
