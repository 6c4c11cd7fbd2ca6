"""Sessions as data: what is in retention by the store's own clock, with its results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.described.stored_values import stored_aggregates
from statelib.described.view import Column, View, filtered, key_column, time_column
from statelib.operators.sessions.store import SessionStore
from statelib.operators.windows.definition import SessionWindows, windows_of
from statelib.operators.windows.snapshot import store_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.described.description import Described, Place
    from statelib.described.view import Ask, Raw


def session_view(described: Described) -> View:
    """Sessions; both of their ends are times of records. A point in time chooses those that hold it."""
    retention_ms = _retention_ms(described)

    def scan(place: Place, ask: Ask) -> Iterator[Raw]:
        clock = store_time(described, place)
        store = SessionStore(place.backend, described.name, retention_ms=retention_ms, stream_time=clock)
        for sessions, rows in store.scan(ask.where.get("key")):
            columns = {
                "key": sessions.keys,
                "window_start": sessions.start,
                "window_end": sessions.end,
                "value": rows,
            }
            time_ms = ask.as_of_ms
            if time_ms is not None:
                columns = filtered(columns, (sessions.start <= time_ms) & (time_ms <= sessions.end))
            yield columns

    columns = {
        "key": key_column(described),
        "window_start": time_column(),
        "window_end": time_column(),
        "value": Column(described.type("value"), stored_aggregates(described)),
    }
    return View(columns, scan, "key", "window_start", takes_as_of=True)


def _retention_ms(described: Described) -> int:
    settings = described.settings
    retention_ms: int = settings["retention_ms"]
    if "windows" not in settings:  # of a custom processor
        return retention_ms
    windows = windows_of(settings)
    return windows.seen_ms(retention_ms, described.semantics) if isinstance(windows, SessionWindows) else retention_ms
