"""The store of an aggregation by sessions as joins look into it (``KTableSessionWindowValueGetter``).

A session's time is its end: of what a join finds, and of the store's clock, by which it is out of retention.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.operators.sessions.codec import BOUNDS
from statelib.operators.sessions.store import SessionStore
from statelib.operators.tables.stored_latest import Found
from statelib.operators.windows.looked_into import WindowExpiry, WindowsLookedInto, results_of, retention_ms
from statelib.records.batch import NO_TIMESTAMP
from statelib.stores.byte_columns import split_tail

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        return StoredSessions(context, self.name, value_type, aggregator)

    def expiry(self, context: OperatorContext) -> WindowExpiry:
        """See `LookedInto`."""
        return WindowExpiry(context, self.node, retention_ms(self, context.semantics), lambda windows: windows.end)


class StoredSessions:
    """A session store as it was last written; see `StoredLatest`.

    Args:
        context: The operator's that looks.
        name: The store's.
        value_type: Of the results.
        aggregator: Makes results of what is stored.
    """

    def __init__(
        self, context: OperatorContext, name: str, value_type: pa.DataType, aggregator: StoredStates | None
    ) -> None:
        self.value_type = value_type
        self._name = name
        self._aggregator = aggregator
        self._store = SessionStore(context.backend, name, retention_ms=0)

    @property
    def is_empty(self) -> bool:
        """See `StoredLatest`."""
        return self._store.is_empty

    def load(self, keys: Sequence[bytes]) -> Found:
        """See `StoredLatest`."""
        raw_keys = pa.array(keys, pa.large_binary())
        _, bounds = split_tail(raw_keys, BOUNDS, self._name)
        rows = self._store.look_up(raw_keys)
        values = results_of(rows, self._store.header, self._aggregator, self.value_type)
        return Found(values, np.where(valid_of(rows), bounds["end"].astype(np.int64), NO_TIMESTAMP))
