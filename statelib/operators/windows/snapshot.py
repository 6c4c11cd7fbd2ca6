"""Windows as data: what is in retention by the store's own clock, with its results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.columns.times import LAST_TIME_MS, end_of_windows
from statelib.described.stored_values import stored_aggregates
from statelib.described.view import Column, View, filtered, key_column, time_column, times_or_null
from statelib.errors.kinds import InternalError
from statelib.operators.windows.definition import SessionWindows, SlidingWindows, windows_of
from statelib.operators.windows.store import WindowStore
from statelib.operators.windows.store_clock import StoreClock
from statelib.records.batch import NO_TIMESTAMP
from statelib.settings.semantics import rules_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from statelib.described.description import Described, Place
    from statelib.described.view import Ask, Raw

_END_OF_TIME = (1 << 63) - 2


def window_view(described: Described) -> View:
    """Windows; their ends are exclusive, but for sliding windows. A point in time chooses those that hold it."""
    retention_ms, size_ms, holds_end, end_of = _windows(described)

    def scan(place: Place, ask: Ask) -> Iterator[Raw]:
        store = WindowStore(
            place.backend, described.name, retention_ms=retention_ms, stream_time=store_time(described, place)
        )
        since_ms, until_ms = ask.since_ms or 0, _END_OF_TIME if ask.until_ms is None else ask.until_ms
        if ask.as_of_ms is not None:
            since_ms = max(since_ms, ask.as_of_ms - size_ms)
            until_ms = min(until_ms, ask.as_of_ms + 1)
        for windows in store.scan(ask.where.get("key"), since_ms, until_ms):
            end = end_of(windows.start)
            columns = {
                "key": windows.keys,
                "window_start": windows.start,
                "window_end": np.minimum(end, LAST_TIME_MS),
                "value": windows.rows,
                "timestamp": times_or_null(windows.timestamp, NO_TIMESTAMP),
            }
            if ask.as_of_ms is not None:
                columns = filtered(columns, end + holds_end > ask.as_of_ms)
            yield columns

    columns = {
        "key": key_column(described),
        "window_start": time_column(),
        "window_end": time_column(),
        "value": Column(described.type("value"), stored_aggregates(described)),
        "timestamp": time_column(),
    }
    return View(columns, scan, "key", "window_start", takes_as_of=True)


def _windows(described: Described) -> tuple[int, int, bool, Callable[[NDArray[np.int64]], NDArray[np.int64]]]:
    """Retention, largest size (ms), whether the end belongs to a window, and what gives ends of starts (int64, ms)."""
    settings = described.settings
    if "window_size_ms" in settings:  # of a custom processor
        size_ms = settings["window_size_ms"]
        return (
            settings["retention_ms"],
            size_ms,
            False,
            lambda start: end_of_windows(start, size_ms),
        )
    windows, retention_ms = windows_of(settings), settings["retention_ms"]
    if isinstance(windows, SessionWindows):
        raise InternalError("sessions are not in a window store", store=described.name)
    if isinstance(windows, SlidingWindows):
        seen_ms = windows.seen_ms(retention_ms, described.semantics)
        return seen_ms, windows.time_difference_ms, True, windows.end_of
    seen_ms = settings.get("seen_ms", {}).get(rules_of(described.semantics), retention_ms)
    return seen_ms, windows.size_ms, False, windows.end_of


def store_time(described: Described, place: Place) -> int:
    """The clock of a window or session store, ms: beside its data if it is a custom processor's."""
    if "window_size_ms" in described.settings or "windows" not in described.settings:
        return StoreClock(place.backend, described.name).stream_time
    return place.clocks.get("store_time", NO_TIMESTAMP)
