"""The first record of each window, a record at a time (KIP-655, initial proposal).

The clock is the task's: it moves with every record, whether it has a key and comes here or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.reference.session_aggregate import Sessions, all_values
from tests.reference.window_aggregate import TimeWindowed

if TYPE_CHECKING:
    from statelib.operators.windows.definition import SessionWindows, TimeWindows


class DistinctInTime:
    def __init__(self, windows: TimeWindows) -> None:
        self.windows = TimeWindowed(windows.size_ms, windows.advance_ms, windows.grace_period_ms)

    def opened(self, key: Any, timestamp: int) -> tuple[int, int] | None:
        """The window that the record opens, if it does."""
        self.windows.stream_time = max(self.windows.stream_time, timestamp)
        for start, records, _ in self.windows.process(key, None, timestamp):
            if len(records) == 1:
                return start, start + self.windows.size_ms
        return None


class DistinctInSessions:
    def __init__(self, windows: SessionWindows) -> None:
        self.sessions: Sessions = all_values(windows.gap_ms, windows.grace_period_ms)

    def opened(self, key: Any, timestamp: int) -> tuple[int, int] | None:
        """The session that the record opens, if it does."""
        self.sessions.stream_time = max(self.sessions.stream_time, timestamp)
        for start, end, records, _ in self.sessions.process(key, None, timestamp):
            if records is not None and len(records) == 1:
                return start, end
        return None
