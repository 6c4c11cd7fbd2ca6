"""What sessions log, of aggregations and of processors: keys as `statelib.operators.sessions.codec` has them.

The value is the aggregate; null is a deletion. The layout is Kafka's and has no version of its own: others read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.described.exporting import PairsExporter, Records, aggregates_written, without_nulls
from statelib.described.importing import Suffixed
from statelib.described.restoring import Restoring
from statelib.described.view import EVERYTHING
from statelib.operators.aggregation.changelog import rows_of_values
from statelib.operators.sessions.codec import BOUNDS, decode_keys, encode_keys
from statelib.operators.sessions.snapshot import session_view
from statelib.operators.sessions.store import SessionBounds, SessionStore
from statelib.settings.semantics import rules_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from statelib.described.exporting import Share
    from statelib.described.restoring import Target
    from statelib.stores.backend import WriteBatch
    from statelib.stores.byte_columns import Column


class SessionExporter(PairsExporter):
    """The sessions within retention by the store's own clock, in bytewise order of keys.

    Kafka Streams logs the timestamp of the record that was processed, which no store keeps: the session's end stands
    for it, which is not earlier.
    """

    _aggregates = True

    def records(self, share: Share) -> Iterator[Records]:
        """See `statelib.described.exporting`."""
        written = aggregates_written(self._described, self._values)
        for raw in session_view(self._described).scan(share.place, EVERYTHING):
            keys, start, end = self._keys.written(raw["key"]), raw["window_start"], raw["window_end"]
            placed_by = self._keys.placed_by(keys)
            yield without_nulls(Records(placed_by, encode_keys(keys, start, end), written(raw["value"]), end))


class SessionImporter(Suffixed):
    """Sessions: the newest record that was taken up is the end of one."""

    _suffix = BOUNDS

    def _told(self, suffixes: np.ndarray[tuple[int], Any]) -> None:
        for clock in ("store_time", "stream_time"):
            self._advance(clock, suffixes["end"])


class RestoringSessions(Restoring):
    """Of each session the last aggregate."""

    def __init__(self, target: Target) -> None:
        self._target = target
        retention_ms = target.store.settings["seen_ms"][rules_of(target.semantics)]
        self._store = SessionStore(target.backend, target.store.name, retention_ms=retention_ms)

    def put(self, keys: Column, values: pa.Array, timestamp: NDArray[np.int64], write: WriteBatch) -> None:
        """See `Restoring`."""
        del timestamp
        plain, start, end = decode_keys(keys, self._target.store.name)
        self._store.stream_time = max(self._store.stream_time, int(end.max()))
        alive = end > self._store.last_expired_end
        there = alive & valid_of(values)
        gone = alive & ~there
        self._store.store(
            SessionBounds(plain.filter(pa.array(gone)), start[gone], end[gone]),
            SessionBounds(plain.filter(pa.array(there)), start[there], end[there]),
            rows_of_values(values.filter(pa.array(there)), self._target.row),
            self._target.row,
            write,
        )

    def finish(self, write: WriteBatch) -> None:
        """Adds the removal of what the clock that the store had at last has expired."""
        self._store.stream_time = max(self._store.stream_time, self._target.clock_ms)
        self._store.expire(write)
