"""Time windows, a record at a time: each window remembers all that it has taken."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class TimeWindowed:
    size_ms: int
    advance_ms: int
    grace_ms: int
    offset_ms: int = 0
    stream_time: int = -1
    late_windows: int = 0
    windows: dict[tuple[Any, int], list[tuple[Any, int]]] = field(default_factory=dict)

    def process(self, key: Any, value: Any, timestamp: int) -> list[tuple[int, list[Any], int]]:
        """(start, all values so far, largest timestamp so far) of each window that takes the record."""
        if key is None:
            return []
        self.stream_time = max(self.stream_time, timestamp)
        updates = []
        for start, end in self.windows_to(timestamp):
            if end <= timestamp:
                continue
            if end <= self.stream_time - self.grace_ms:
                self.late_windows += 1
                continue
            taken = self.windows.setdefault((key, start), [])
            taken.append((value, timestamp))
            updates.append((start, [value for value, _ in taken], max(time for _, time in taken)))
        return updates

    def windows_to(self, timestamp: int) -> list[tuple[int, int]]:
        """Start and end of all windows that begin then or before; one that begins before 1970 is cut off."""
        first = self.offset_ms
        while first > 0:
            first -= self.advance_ms
        while first + self.advance_ms <= 0:
            first += self.advance_ms
        return [(max(start, 0), start + self.size_ms) for start in range(first, timestamp + 1, self.advance_ms)]
