"""The store of an aggregation by sessions as joins look into it (``KTableSessionWindowValueGetter``).

A session's time is its end: of what a join finds, and of the store's clock, by which it is out of retention.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from statelib.columns.arrow_buffers import valid_of
from statelib.operators.sessions.codec import BOUNDS
from statelib.operators.sessions.store import SessionStore
from statelib.operators.windows.looked_into import StoredRows, WindowExpiry, WindowsLookedInto, retention_ms
from statelib.records.batch import NO_TIMESTAMP
from statelib.stores.byte_columns import split_tail

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext
    from statelib.operators.tables.stored_latest import StoredLatest
    from statelib.stores.stored_rows import StoredStates


@dataclass(frozen=True, slots=True)
class SessionsLookedInto(WindowsLookedInto):
    """The store of an aggregation by sessions, which are seen so long after their ends; see `LookedInto`."""

    def stored(
        self, context: OperatorContext, value_type: pa.DataType, aggregator: StoredStates | None = None
    ) -> StoredLatest:
        """See `LookedInto`."""
        store = SessionStore(context.backend, self.name, retention_ms=0)

        def look_up(keys: pa.Array) -> tuple[NDArray[np.int64], pa.Array]:
            _, bounds = split_tail(keys, BOUNDS, self.name)
            rows = store.look_up(keys)
            return np.where(valid_of(rows), bounds["end"].astype(np.int64), NO_TIMESTAMP), rows

        return StoredRows(store, look_up, value_type, aggregator)

    def expiry(self, context: OperatorContext) -> WindowExpiry:
        """See `LookedInto`."""
        return WindowExpiry(context, self.node, retention_ms(self, context.semantics), lambda windows: windows.end)
