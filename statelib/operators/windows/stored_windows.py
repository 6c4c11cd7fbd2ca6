"""The windows of an aggregation that are in its store, with their results, in order of their start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.errors.kinds import InternalError
from statelib.operators.aggregation.snapshot import results_of
from statelib.operators.windows.definition import SessionWindows, SlidingWindows, windows_of
from statelib.operators.windows.store import WindowStore
from statelib.serdes import serde_for
from statelib.stores.stored_rows import stored_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, Self, TypeAlias

    from numpy.typing import NDArray

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
        aggregation: Plain data (JSON): the name of the store, what is aggregated (``aggregator``), and the windows. It
            makes results of what is stored, and tells when windows end.
    """

    def __init__(self, store: WindowStore, aggregation: Mapping[str, Any]) -> None:
        self.aggregation = aggregation
        windows = windows_of(aggregation)
        if isinstance(windows, SlidingWindows | SessionWindows):
            raise InternalError("these windows are on no grid", store=aggregation["store"])
        self.grid = windows.grid
        self._store = store
        self._results_of = results_of(aggregation)

    @classmethod
    def of(cls, backend: Backend, aggregation: Mapping[str, Any]) -> Self:
        """Those of an aggregation that does not run."""
        store = WindowStore(backend, aggregation["store"], retention_ms=0, stream_time=_END_OF_TIME, on_grid=True)
        return cls(store, aggregation)

    @property
    def are_in_order(self) -> bool:
        """Whether they lie in order of their start; else to find some is to read all of them."""
        return self._store.is_by_start

    @property
    def newest_start(self) -> int:
        """No window of the aggregation, there or in memory, starts later, ms."""
        return self._store.stream_time

    def ending(
        self, after_ms: int, until_ms: int | None, *, started_after_ms: int, wanted: Choice | None = None
    ) -> Iterator[WindowResults]:
        """The wanted windows that end after ``after_ms`` and until ``until_ms`` (None: any time), some at a time.

        ``started_after_ms``: without those that start until then. ``wanted`` None: all.
        """
        schema = self._store.header.schema
        if schema is None:  # nothing was ever written
            return
        kind = pa.struct(list(schema))
        first_ms = max(self._start_of(self.grid.last_ended(after_ms) + 1), started_after_ms + 1)
        end_ms = self._store.newest_stored + 1
        if until_ms is not None:
            end_ms = min(end_ms, self._start_of(self.grid.last_ended(until_ms) + 1))
        for some in self._store.lying(None, first_ms, end_ms) if first_ms < end_ms else ():
            left = some if wanted is None else some.filter(wanted(some.keys, some.start))
            if len(left):
                states = serde_for(kind).deserialize(left.rows)
                value = self._results_of(stored_value(states))
                results = {"timestamp": pa.array(left.timestamp), "value": value}
                yield WindowResults(left.keys, left.start, pa.RecordBatch.from_pydict(results))

    def _start_of(self, number: int) -> int:
        return int(self.grid.start_of(np.array([number]))[0])
