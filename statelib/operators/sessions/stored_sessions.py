"""The sessions of an aggregation that are in its store, with their results, in order of their end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.operators.sessions.codec import encode_keys
from statelib.operators.sessions.store import SessionStore
from statelib.operators.windows.stored_windows import StoredResults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Self

    import numpy as np
    from numpy.typing import NDArray

    from statelib.operators.windows.stored_windows import WindowResults
    from statelib.stores.backend import Backend

_END_OF_TIME = (1 << 63) - 2


class SessionsInStore:
    """See `statelib.operators.windows.stored_windows.StoredWindows`.

    Args:
        store: Of the aggregation.
        aggregation: See there.
    """

    suffix_words = 2

    def __init__(self, store: SessionStore, aggregation: Mapping[str, Any]) -> None:
        self.aggregation = aggregation
        self._store = store
        self._results = StoredResults(aggregation)

    @classmethod
    def of(cls, backend: Backend, aggregation: Mapping[str, Any]) -> Self:
        """Those of an aggregation that does not run."""
        return cls(SessionStore(backend, aggregation["store"], retention_ms=0, stream_time=_END_OF_TIME), aggregation)

    @property
    def newest_end(self) -> int:
        """See `StoredWindows`."""
        return self._store.stream_time

    @property
    def newest_stored_end(self) -> int:
        """See `StoredWindows`."""
        return self._store.newest_stored

    def ending(self, after_ms: int, until_ms: int | None) -> Iterator[WindowResults]:
        """See `StoredWindows`."""
        schema = self._store.header.schema
        if schema is None:  # nothing was ever written
            return
        for bounds, rows in self._store.ending_with_rows(after_ms, until_ms):
            yield self._results.of(bounds.keys, bounds.start, bounds.end, bounds.end, rows, schema)

    def at(self, keys: pa.Array, start: NDArray[np.int64], end: NDArray[np.int64]) -> WindowResults | None:
        """See `StoredWindows`."""
        schema = self._store.header.schema
        if schema is None:
            return None
        rows = self._store.look_up(encode_keys(keys, start, end))
        there = valid_of(rows)
        chosen = pa.array(there)
        columns = (start[there], end[there], end[there], rows.filter(chosen))
        return self._results.of(keys.filter(chosen), *columns, schema)
