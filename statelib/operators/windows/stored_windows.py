"""The windows of an aggregation that are in its store, with their results, in order of their start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.serdes import serde_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from numpy.typing import NDArray

    from statelib.columns.window_grids import WindowGrid
    from statelib.operators.aggregation.columnar_aggregator import ColumnarAggregator
    from statelib.operators.windows.store import WindowStore

    Choice: TypeAlias = Callable[[pa.Array, NDArray[np.int64]], NDArray[np.bool_]]
    """Given serialised keys and starts (int64, ms): which of the windows are wanted."""


@dataclass(frozen=True, slots=True)
class WindowResults:
    """Windows of one aggregation, as columns of one length.

    Attributes:
        key: Serialised record keys; binary.
        start: int64, ms.
        rows: The columns ``timestamp`` and ``value`` (the result); for readers that keep them, ``headers``.
    """

    key: pa.Array
    start: NDArray[np.int64]
    rows: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.start)

    @property
    def nbytes(self) -> int:
        """What the columns take."""
        return int(self.key.nbytes + self.start.nbytes + self.rows.nbytes)


class WindowsInStore:
    """See the module's docstring. What the aggregation has in memory is newer.

    Args:
        store: Of the aggregation.
        aggregator: Makes the results of what is stored.
        grid: When the windows begin and end.
    """

    def __init__(self, store: WindowStore, aggregator: ColumnarAggregator, grid: WindowGrid) -> None:
        self._store = store
        self._aggregator = aggregator
        self._grid = grid

    @property
    def are_in_order(self) -> bool:
        """Whether they lie in order of their start; else to find some is to read all of them."""
        return self._store.is_by_start

    @property
    def newest_start(self) -> int:
        """No window of the aggregation, there or in memory, starts later, ms."""
        return self._store.stream_time

    def ending(
        self, after_ms: int, until_ms: int | None, *, started_after_ms: int, wanted: Choice
    ) -> Iterator[WindowResults]:
        """The wanted windows that end after ``after_ms`` and until ``until_ms`` (None: any time), some at a time.

        ``started_after_ms``: without those that start until then.
        """
        schema = self._aggregator.schema
        if schema is None:  # no batch has come, so nothing is newer than what the reader's store has
            return
        kind = pa.struct(list(schema))
        first_ms = max(self._start_of(self._grid.last_ended(after_ms) + 1), started_after_ms + 1)
        end_ms = self._store.newest_stored + 1
        if until_ms is not None:
            end_ms = min(end_ms, self._start_of(self._grid.last_ended(until_ms) + 1))
        for some in self._store.lying(None, first_ms, end_ms) if first_ms < end_ms else ():
            left = some.filter(wanted(some.keys, some.start))
            if len(left):
                states = serde_for(kind).deserialize(left.rows)
                results = {"timestamp": pa.array(left.timestamp), "value": self._aggregator.results_of(states)}
                yield WindowResults(left.keys, left.start, pa.RecordBatch.from_pydict(results))

    def _start_of(self, number: int) -> int:
        return int(self._grid.start_of(np.array([number]))[0])
