"""Windows that a buffer leaves to the store of their aggregation when it is flushed, so that they are stored once.

All updates of the aggregation pass through the buffer, which has in memory what they have brought. What it would write
of a window the aggregation's store has too, which is flushed right behind it, so the buffer has a reference in place of
the row (`statelib.operators.suppress.codec.Reference`). It has rows for what that store does not tell:

- windows without a result, which a function has removed, or a session that has become another one;
- windows whose last update had headers;
- windows that end before the buffer began: the aggregation may have had some that do not wait.

A row counts where the aggregation's store has its window too. Without updates that pass through see
`statelib.operators.suppress.closing_windows`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.columns.arrow_buffers import valid_of
from statelib.operators.suppress.codec import Reference

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from statelib.operators.suppress.store import SuppressionBufferStore
    from statelib.operators.windows.stored_windows import StoredWindows
    from statelib.stores.backend import WriteBatch


class LeftInStore:
    """See the module's docstring.

    Args:
        windows: Those of the aggregation, whose only updates the buffer gets.
        store: The buffer's. What it refers to and another run has left otherwise becomes rows.
    """

    def __init__(self, windows: StoredWindows, store: SuppressionBufferStore) -> None:
        self._windows = windows
        self._store = store
        reference = store.reference
        if reference is not None and reference.aggregation != windows.aggregation:
            store.resolve()
            reference = None
        newest = max(store.newest_time(), windows.newest_end)
        self._rows_until_ms = newest if reference is None else reference.ended_after_ms

    @property
    def newest_end(self) -> int:
        """No window that waits in the aggregation's store ends later, ms."""
        return self._windows.newest_stored_end

    def nothing_waits(self) -> None:
        """All has been taken out: of what the aggregation has, nothing waits any more."""
        self._rows_until_ms = max(self._rows_until_ms, self._windows.newest_end)

    def are_left(self, time: NDArray[np.int64], rows: pa.RecordBatch) -> NDArray[np.bool_]:
        """bool, which windows are left to the aggregation.

        Args:
            time: int64, their buffer times, ms.
            rows: What waits of them.
        """
        has_headers = "headers" in rows.schema.names
        headers = valid_of(rows.column("headers")) if has_headers else np.zeros(len(rows), np.bool_)
        return self.are_told(time, valid_of(rows.column("value")), headers)

    def are_told(
        self, time: NDArray[np.int64], has_result: NDArray[np.bool_], has_headers: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """As `are_left`, of windows of which only so much is known."""
        told: NDArray[np.bool_] = (time > self._rows_until_ms) & has_result & ~has_headers
        return told

    def rows_after_ms(self, horizon_ms: int) -> int:
        """Windows that end later and wait may be left, ms; ``horizon_ms``: all that end until then have gone."""
        return max(horizon_ms, self._rows_until_ms)

    def refer(self, horizon_ms: int, schema: pa.Schema, write: WriteBatch) -> None:
        """Adds to ``write`` that they are left; ``schema``: of a row."""
        self._store.refer(Reference(-1, self.rows_after_ms(horizon_ms), self._windows.aggregation), schema, write)
