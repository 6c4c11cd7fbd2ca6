"""The working set of an aggregation by time windows: those that have taken a record since the last flush, by slot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.growing import grown, shrunk
from statelib.operators.aggregation.accumulators.kernel import latest_timestamp, touch
from statelib.operators.aggregation.latest_headers import LatestHeaders
from statelib.operators.windows.slots_kernel import WindowSlots
from statelib.records.batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from statelib.columns.window_grids import WindowGrid
    from statelib.operators.aggregation.aggregator import Aggregator
    from statelib.records.batch import Batch

_NOBODY_ASKS = np.empty(0, dtype=np.int64)


class WindowsInMemory:
    """See the module's docstring.

    Windows that are out of retention may be forgotten at any time; the others then get new slots.

    Args:
        grid: When they begin and end.
        aggregator: Has their aggregates, by slot.

    Attributes:
        slots: The slot of each key code and window number.
        timestamp: int64, by slot: the largest record timestamp, ms; `NO_TIMESTAMP`: the window does not exist.
        stored: bool, by slot: whether the store has the window.
        loaded: How many slots have been looked up in the store; the others have come with the last records.
    """

    def __init__(self, grid: WindowGrid, aggregator: Aggregator) -> None:
        self.grid = grid
        self._aggregator = aggregator
        self.clear()

    def clear(self) -> None:
        """Forgets all of them, but for their aggregates."""
        self.slots = WindowSlots()
        self.timestamp = np.empty(0, dtype=np.int64)
        self.stored = np.empty(0, dtype=np.bool_)
        self.loaded = 0
        self._headers = LatestHeaders()
        self._headers_type: pa.DataType | None = None

    def __len__(self) -> int:
        return len(self.slots)

    def reserve(self) -> int:
        """Makes room for the slots that have come with the last records.

        Returns:
            The first of these.
        """
        first, self.loaded = self.loaded, len(self.slots)
        self._aggregator.reserve(self.loaded)
        self.timestamp = grown(self.timestamp, self.loaded, NO_TIMESTAMP)
        self.stored = grown(self.stored, self.loaded)
        return first

    def keep(self, slots: NDArray[np.int64]) -> None:
        """Forgets all but ``slots`` (int64, ascending), which are numbered anew, from 0."""
        self.slots.keep(slots)
        self.timestamp = shrunk(self.timestamp, slots, NO_TIMESTAMP)
        self.stored = shrunk(self.stored, slots)
        self._aggregator.keep(slots)
        self.loaded = len(slots)
        self._headers.keep(slots)

    def touch(
        self, rows: NDArray[np.int64], slots: NDArray[np.int64], batch: Batch, removed: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """Moves the timestamps of windows on.

        Args:
            rows: int64, by update, in order: the record of ``batch``.
            slots: int64, by update: its window.
            batch: The records.
            removed: bool, by update: whether the window does not exist after it; empty: none.

        Returns:
            int64, the timestamp of the window after each update, ms.
        """
        timestamp = np.empty(len(rows), dtype=np.int64)
        latest_timestamp(rows, slots, batch.timestamp, removed, self.timestamp, timestamp)
        return timestamp

    def touch_waiting(self, rows: NDArray[np.int64], slots: NDArray[np.int64], batch: Batch) -> None:
        """As `touch`, of windows that wait for their close: also keeps their headers for `rows`."""
        touch(rows, slots, batch.timestamp, self.timestamp)
        if batch.headers is not None:
            self._headers_type = batch.headers.type
            self._headers.update(batch.headers, rows, slots, len(self))

    def start(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64, ms."""
        return self.grid.start_of(self.slots.window[slots])

    def end(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64, ms."""
        return self.grid.end_of(self.start(slots))

    def key_code(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64, the codes of their keys."""
        return self.slots.key_code[slots]

    @property
    def have_headers(self) -> bool:
        """Whether the last record of any of them may have had headers."""
        return self._headers.any

    @property
    def schema(self) -> pa.Schema:
        """Of `rows`."""
        fields = [("timestamp", pa.int64()), ("value", self._aggregator.result_type)]
        return pa.schema(fields if self._headers_type is None else [*fields, ("headers", self._headers_type)])

    def rows(self, slots: NDArray[np.int64]) -> pa.RecordBatch:
        """The columns ``timestamp``, ``value`` (the result) and, if the records have any, ``headers``."""
        columns = [pa.array(self.timestamp[slots]), self._aggregator.results(slots)]
        if self._headers_type is not None:
            columns.append(self._headers.take(slots, self._headers_type))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def started_after(self, start_ms: int) -> NDArray[np.int64]:
        """int64, the slots of windows that start after that."""
        return np.flatnonzero(self.slots.window > self.grid.last_begun(start_ms))

    def ending(self, after_ms: int, until_ms: int | None) -> NDArray[np.int64]:
        """int64, the slots of windows that end after ``after_ms`` and at ``until_ms`` (None: any time) or before."""
        ending = self.slots.window > self.grid.last_ended(after_ms)
        if until_ms is not None:
            ending &= self.slots.window <= self.grid.last_ended(until_ms)
        return np.flatnonzero(ending)

    def others_than(
        self, slots: NDArray[np.int64]
    ) -> Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]:
        """A function that tells which windows are none of ``slots``, given their keys' codes and starts (int64, ms).

        Each window may be asked for once. A key that has no code is negative.
        """
        known = WindowSlots()
        ones = np.ones(len(slots), dtype=np.int64)
        known.find(self.key_code(slots), self.slots.window[slots], ones, len(slots))

        def others(key_code: NDArray[np.int64], start: NDArray[np.int64]) -> NDArray[np.bool_]:
            has_code = key_code >= 0
            rows, found = known.find(
                key_code, self.grid.numbers_of(start), has_code.astype(np.int64), int(has_code.sum())
            )
            is_other = np.ones(len(key_code), dtype=np.bool_)
            is_other[rows] = found >= len(slots)
            return is_other

        return others

    def memory_bytes(self) -> int:
        """What is kept by slot, aggregates and all."""
        of_slots = self.slots.memory_bytes() + self.timestamp.nbytes + self.stored.nbytes
        return int(of_slots + self._headers.memory_bytes() + self._aggregator.memory_bytes())
