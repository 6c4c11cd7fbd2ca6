"""The store of a windowed aggregation as joins look into it (the getter of Kafka's ``KStreamWindowAggregate``).

A key is the windowed one, of which the bytes tell key and start. What the store has for it goes when it is out of
retention, by the store's own clock: the largest start that has been put until then. Nobody is told of that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.scatter import scatter
from statelib.operators.tables.stored_latest import Found
from statelib.operators.windows.store import WindowStore
from statelib.records.batch import NO_TIMESTAMP
from statelib.serdes import serde_for
from statelib.stores.byte_columns import split_tail
from statelib.stores.stored_rows import stored_value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext
    from statelib.operators.tables.stored_latest import StoredLatest
    from statelib.records.batch import Batch
    from statelib.records.key_column import KeyColumn, Windows
    from statelib.settings.semantics import Semantics
    from statelib.stores.header import Header
    from statelib.stores.stored_rows import StoredStates

_START = np.dtype([("start", ">i8")])


class RowsByWindow(Protocol):
    """A store of windows or sessions."""

    header: Header

    @property
    def is_empty(self) -> bool:
        """Whether it has none."""


@dataclass(frozen=True, slots=True)
class WindowsLookedInto:
    """The store of an aggregation by time windows or sliding windows; see `LookedInto`.

    Attributes:
        name: The store's.
        node: The aggregation's.
        seen_ms: How long after its start a window is seen.
        seen_as_shipped_ms: The same with ``semantics="kafka-4.3"``.
    """

    name: str
    node: str
    seen_ms: int
    seen_as_shipped_ms: int

    def stored(
        self, context: OperatorContext, value_type: pa.DataType, aggregator: StoredStates | None = None
    ) -> StoredLatest:
        """See `LookedInto`."""
        store = WindowStore(context.backend, self.name, retention_ms=0)

        def look_up(keys: pa.Array) -> tuple[NDArray[np.int64], pa.Array]:
            plain, tails = split_tail(keys, _START, self.name)
            return store.look_up(plain, tails["start"].astype(np.int64))

        return StoredRows(store, look_up, value_type, aggregator)

    def expiry(self, context: OperatorContext) -> WindowExpiry:
        """See `LookedInto`."""
        return WindowExpiry(context, self.node, retention_ms(self, context.semantics), lambda windows: windows.start)


class StoredRows:
    """The results of windows, or of sessions, as their store was last written; see `StoredLatest`.

    Args:
        store: Has their rows.
        look_up: Gives timestamps (int64, ms) and rows (binary, null: there is none) of serialised windowed keys.
        value_type: Of the results.
        aggregator: Makes results of what is stored.
    """

    def __init__(
        self,
        store: RowsByWindow,
        look_up: Callable[[pa.Array], tuple[NDArray[np.int64], pa.Array]],
        value_type: pa.DataType,
        aggregator: StoredStates | None,
    ) -> None:
        self.value_type = value_type
        self._store = store
        self._look_up = look_up
        self._aggregator = aggregator

    @property
    def is_empty(self) -> bool:
        """See `StoredLatest`."""
        return self._store.is_empty

    def load(self, keys: Sequence[bytes]) -> Found:
        """See `StoredLatest`."""
        timestamp, rows = self._look_up(pa.array(keys, pa.large_binary()))
        return Found(self._results_of(rows), timestamp)

    def _results_of(self, rows: pa.Array) -> pa.Array:
        """The results that rows stand for; null where there is none."""
        there, schema = valid_of(rows), self._store.header.schema
        if schema is None or self._aggregator is None or not there.any():
            return pa.nulls(len(rows), self.value_type)
        states = serde_for(pa.struct(list(schema))).deserialize(rows.filter(pa.array(there)))
        return scatter(self._aggregator.results_of(stored_value(states)), there)


class WindowExpiry:
    """Which windows a store has not forgotten; see `Expiry`.

    Args:
        context: The operator's that looks.
        node: That of the aggregation.
        seen_ms: How long a window is seen.
        time_of: Of windows the time, int64 ms, that the store's clock goes by.
    """

    def __init__(
        self, context: OperatorContext, node: str, seen_ms: int, time_of: Callable[[Windows], NDArray[np.int64]]
    ) -> None:
        self._seen_ms = seen_ms
        self._time_of = time_of
        self._clock = context.clocks_of[node].get("store_time", NO_TIMESTAMP)

    def alive(self, keys: KeyColumn, sequence: NDArray[np.int64], changes: Batch) -> NDArray[np.bool_]:
        """See `Expiry`."""
        clock = np.array([self._clock], np.int64)
        if changes.windows is not None:
            clock = np.maximum.accumulate(np.concatenate([clock, self._time_of(changes.windows)]))
            self._clock = int(clock[-1])
        if keys.windows is None:  # none of them has a key
            return np.zeros(len(keys), np.bool_)
        at = np.searchsorted(changes.sequence, sequence, side="right")
        alive: NDArray[np.bool_] = self._time_of(keys.windows) > clock[at] - self._seen_ms
        return alive


def retention_ms(store: WindowsLookedInto, semantics: Semantics) -> int:
    """How long windows, or sessions, are seen."""
    return store.seen_as_shipped_ms if semantics != "kip" else store.seen_ms
