"""Changelogs of window and session stores: see `statelib.changelog.export`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.changelog.export_tables import without_nulls
from statelib.described.exporting import Records
from statelib.described.live_format import LiveKeys, LiveValues
from statelib.described.stored_values import stored_states
from statelib.described.view import EVERYTHING
from statelib.operators.changelog import session_keys, window_keys
from statelib.operators.sessions.snapshot import session_view
from statelib.operators.windows.snapshot import window_view

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from statelib.described.description import Described
    from statelib.described.exporting import Share
    from statelib.described.live_format import StoreFormat


class _OfAggregates:
    """Keys and values of windows and sessions; the rows of aggregations are structs even of one column."""

    def __init__(self, described: Described, declared: StoreFormat) -> None:
        self.keys, self._values = LiveKeys(described, declared.key), LiveValues(described, declared)
        self._states = None if described.is_of_processor else stored_states(described.schema)

    def values(self, rows: pa.Array) -> pa.Array:
        """The application's bytes."""
        return self._values.written(rows) if self._states is None else self._values.of_states(self._states(rows))


class WindowExporter:
    """The windows within retention by the store's own clock, in the order in which the store has them.

    Each has its own timestamp; those of a processor's plain store, of which Kafka Streams logs that of the record that
    was processed, have their start.
    """

    def __init__(self, described: Described, declared: StoreFormat) -> None:
        self._of = _OfAggregates(described, declared)
        self._described = described

    def records(self, share: Share) -> Iterator[Records]:
        """See `statelib.described.exporting`."""
        for raw in window_view(self._described).scan(share.place, EVERYTHING):
            keys, start = self._of.keys.written(raw["key"]), raw["window_start"]
            timestamp = np.where(raw["timestamp"].is_valid(), raw["timestamp"].fill_null(0), start)
            placed_by = self._of.keys.placed_by(keys)
            yield without_nulls(Records(placed_by, window_keys(keys, start), self._of.values(raw["value"]), timestamp))


class SessionExporter:
    """The sessions within retention by the store's own clock, in bytewise order of keys.

    Kafka Streams logs the timestamp of the record that was processed, which no store keeps: the session's end stands
    for it, which is not earlier.
    """

    def __init__(self, described: Described, declared: StoreFormat) -> None:
        self._of = _OfAggregates(described, declared)
        self._described = described

    def records(self, share: Share) -> Iterator[Records]:
        """See `statelib.described.exporting`."""
        for raw in session_view(self._described).scan(share.place, EVERYTHING):
            keys, start, end = self._of.keys.written(raw["key"]), raw["window_start"], raw["window_end"]
            placed_by = self._of.keys.placed_by(keys)
            yield without_nulls(Records(placed_by, session_keys(keys, start, end), self._of.values(raw["value"]), end))
