"""The windows of an aggregation that are in its store, with their results, in order of time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from statelib.columns.times import LAST_TIME_MS
from statelib.columns.window_grids import RegularGrid
from statelib.errors.kinds import InternalError
from statelib.operators.aggregation.definition import Aggregations
from statelib.operators.aggregation.snapshot import results_of
from statelib.operators.windows.definition import SessionWindows, SlidingWindows, windows_of
from statelib.operators.windows.store import WindowStore
from statelib.records.batch import NO_TIMESTAMP
from statelib.serdes import serde_for
from statelib.stores.stored_rows import stored_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, Self, TypeAlias

    from numpy.typing import NDArray

    from statelib.columns.window_grids import WindowGrid
    from statelib.operators.windows.windowed_aggregate import WindowedAggregateSpec
    from statelib.stores.backend import Backend

    Choice: TypeAlias = Callable[[pa.Array, NDArray[np.int64]], NDArray[np.bool_]]
    """Given serialised keys and starts (int64, ms): which of the windows are wanted."""

_END_OF_TIME = (1 << 63) - 2


@dataclass(frozen=True, slots=True)
class WindowResults:
    """Windows of one aggregation, as columns of one length.

    Attributes:
        key: Serialised record keys; binary.
        start: int64, ms.
        end: int64, ms.
        rows: The columns ``timestamp`` and ``value`` (the result); for readers that keep them, ``headers``.
    """

    key: pa.Array
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    rows: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.start)

    def filter(self, keep: NDArray[np.bool_]) -> WindowResults:
        """Those for which ``keep`` is true."""
        chosen = pa.array(keep)
        return WindowResults(self.key.filter(chosen), self.start[keep], self.end[keep], self.rows.filter(chosen))

    @property
    def nbytes(self) -> int:
        """What the columns take."""
        return int(self.key.nbytes + self.start.nbytes + self.end.nbytes + self.rows.nbytes)


class StoredWindows(Protocol):
    """The windows of one aggregation. What it has in memory is newer."""

    aggregation: Mapping[str, Any]
    """Plain data (JSON): what makes results of what is stored, and tells when windows end. See `stored_as`."""

    suffix_words: int
    """How many integers follow the key's bytes in Kafka's key of such a window."""

    @property
    def newest_end(self) -> int:
        """No window, there or in memory, ends later, ms; `NO_TIMESTAMP`: there is none."""

    @property
    def newest_stored_end(self) -> int:
        """The same of the windows that are there."""

    def ending(self, after_ms: int, until_ms: int | None) -> Iterator[WindowResults]:
        """The windows that end after ``after_ms`` and until ``until_ms`` (None: any time), by end, some at a time."""

    def at(self, keys: pa.Array, start: NDArray[np.int64], end: NDArray[np.int64]) -> WindowResults | None:
        """Those of these windows that are there; None: nothing ever was.

        Args:
            keys: Serialised.
            start: int64, ms.
            end: int64, ms.
        """


def stored_as(spec: WindowedAggregateSpec) -> Mapping[str, Any]:
    """What `StoredWindows.aggregation` says of an aggregation that forwards its updates.

    Of functions in Python the state is the result, so they are not named: nothing changes where their code does.
    """
    functions = {"aggregator": spec.aggregator.describe()} if isinstance(spec.aggregator, Aggregations) else {}
    return {"store": spec.store, **functions, **spec.windows.describe(), "updates": "forwarded"}


def are_forwarded(aggregation: Mapping[str, Any]) -> bool:
    """Whether the updates of an aggregation have passed through the buffer that refers to it: see `stored_as`."""
    return "updates" in aggregation


class StoredResults:
    """Makes results of the rows of a store.

    Args:
        aggregation: See `StoredWindows`.
    """

    def __init__(self, aggregation: Mapping[str, Any]) -> None:
        self._results_of = results_of(aggregation)

    def of(
        self,
        key: pa.Array,
        start: NDArray[np.int64],
        end: NDArray[np.int64],
        timestamp: NDArray[np.int64],
        rows: pa.Array,
        schema: pa.Schema,
    ) -> WindowResults:
        """The results; ``timestamp``: int64, ms; ``rows``: serialised, of the columns ``schema``."""
        states = serde_for(pa.struct(list(schema))).deserialize(rows)
        value = self._results_of(stored_value(states))
        return WindowResults(
            key, start, end, pa.RecordBatch.from_pydict({"timestamp": pa.array(timestamp), "value": value})
        )


class WindowsInStore:
    """See `StoredWindows`: windows on a grid, and sliding ones, which start at any millisecond.

    Args:
        store: Of the aggregation.
        aggregation: Plain data (JSON): the name of the store, what is aggregated (``aggregator``), and the windows. It
            makes results of what is stored, and tells when windows end.
    """

    def __init__(self, store: WindowStore, aggregation: Mapping[str, Any]) -> None:
        self.aggregation = aggregation
        windows = windows_of(aggregation)
        if isinstance(windows, SessionWindows):
            raise InternalError("sessions are on no grid", store=aggregation["store"])
        if isinstance(windows, SlidingWindows):
            self.grid: WindowGrid = RegularGrid(0, 1, windows.time_difference_ms)
        else:
            self.grid = windows.grid
        self.suffix_words = windows.key_suffix_words
        self._store = store
        self._results = StoredResults(aggregation)

    @classmethod
    def of(cls, backend: Backend, aggregation: Mapping[str, Any]) -> Self:
        """Those of an aggregation that does not run."""
        on_grid = not isinstance(windows_of(aggregation), SlidingWindows)
        store = WindowStore(backend, aggregation["store"], retention_ms=0, stream_time=_END_OF_TIME, on_grid=on_grid)
        return cls(store, aggregation)

    @property
    def are_in_order(self) -> bool:
        """Whether they lie in order of their start; else to find some is to read all of them."""
        return self._store.is_by_start

    @property
    def newest_start(self) -> int:
        """No window of the aggregation, there or in memory, starts later, ms."""
        return self._store.stream_time

    @property
    def newest_end(self) -> int:
        """See `StoredWindows`."""
        return self._end_of(self._store.stream_time)

    @property
    def newest_stored_end(self) -> int:
        """See `StoredWindows`."""
        return self._end_of(self._store.newest_stored)

    def _end_of(self, start_ms: int) -> int:
        return NO_TIMESTAMP if start_ms == NO_TIMESTAMP else int(self.grid.end_of(np.array([start_ms]))[0])

    def at(self, keys: pa.Array, start: NDArray[np.int64], end: NDArray[np.int64]) -> WindowResults | None:
        """See `StoredWindows`."""
        schema = self._store.header.schema
        if schema is None:
            return None
        timestamp, rows = self._store.look_up(keys, start)
        there = timestamp != NO_TIMESTAMP
        chosen = pa.array(there)
        columns = (start[there], end[there], timestamp[there], rows.filter(chosen))
        return self._results.of(keys.filter(chosen), *columns, schema)

    def ending(self, after_ms: int, until_ms: int | None) -> Iterator[WindowResults]:
        """See `StoredWindows`."""
        is_last = until_ms is not None and until_ms >= LAST_TIME_MS
        for some in self.closing(after_ms, None if is_last else until_ms, started_after_ms=-1):
            if int(some.end[0]) > after_ms:
                yield some
            elif int(some.end[-1]) > after_ms:
                yield some.filter(some.end > after_ms)

    def closing(
        self, after_ms: int, until_ms: int | None, *, started_after_ms: int, wanted: Choice | None = None
    ) -> Iterator[WindowResults]:
        """The wanted windows that end after ``after_ms`` and until ``until_ms`` (None: any time), some at a time.

        By start. Where ends are cut off, at the end of time, that is when they would end.

        Args:
            after_ms: See above.
            until_ms: See above.
            started_after_ms: Without those that start until then, ms.
            wanted: None: all.
        """
        schema = self._store.header.schema
        if schema is None:  # nothing was ever written
            return
        first_ms = max(self._start_of(self.grid.last_ended(after_ms) + 1), started_after_ms + 1)
        end_ms = self._store.newest_stored + 1
        if until_ms is not None:
            end_ms = min(end_ms, self._start_of(self.grid.last_ended(until_ms) + 1))
        for some in self._store.starting(first_ms, end_ms):
            left = some if wanted is None else some.filter(wanted(some.keys, some.start))
            if len(left):
                end = self.grid.end_of(left.start)
                yield self._results.of(left.keys, left.start, end, left.timestamp, left.rows, schema)

    def _start_of(self, number: int) -> int:
        return int(self.grid.start_of(np.array([number]))[0])
