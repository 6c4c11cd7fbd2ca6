"""Sliding windows (KIP-450), a record at a time: every window remembers all that it has taken."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Taken = list[tuple[Any, int]]
"""(value, timestamp) in order of arrival."""


@dataclass
class SlidingWindowed:
    difference_ms: int
    grace_ms: int
    retention_ms: int
    stream_time: int = -1
    store_time: int = -1
    late_windows: int = 0
    windows: dict[tuple[Any, int], Taken] = field(default_factory=dict)

    def process(self, key: Any, value: Any, timestamp: int) -> list[tuple[int, list[Any], int, list[Any] | None]]:
        """(start, all values so far, largest timestamp so far, values before or None) of each window that changes."""
        if key is None or value is None:
            return []
        self.stream_time = max(self.stream_time, timestamp)
        close = self.stream_time - self.grace_ms
        if timestamp + self.difference_ms < close:
            self.late_windows += 1
            return []
        seen = self._seen(key, timestamp)
        steps = self._early(seen, timestamp) if timestamp < self.difference_ms else self._in_time(seen, timestamp)
        updates = []
        for start, taken, adds in steps:
            if adds and start + self.difference_ms < close:
                self.late_windows += 1
                continue
            before = [value for value, _ in seen[start]] if start in seen else None
            now = [*taken, (value, timestamp)] if adds else taken
            updates.append((start, [value for value, _ in now], max(time for _, time in now), before))
            self.windows[key, start] = now
            self.store_time = max(self.store_time, start)
        return updates

    def _seen(self, key: Any, timestamp: int) -> dict[int, Taken]:
        first = max(self.store_time - self.retention_ms + 1, timestamp - 2 * self.difference_ms)
        return {
            start: taken for (of, start), taken in self.windows.items() if of == key and first <= start <= timestamp + 1
        }

    def _in_time(self, seen: dict[int, Taken], time: int) -> list[tuple[int, Taken, bool]]:
        d = self.difference_ms
        steps = [(start, seen[start], True) for start in sorted(seen, reverse=True) if start <= time <= start + d]
        left = seen.get(time - d)
        if left and _latest(left) == time:
            return steps
        before = max((start for start in seen if start + d < time), default=None)
        previous = _latest(left) if left else None
        if before is not None:
            previous = _latest(seen[before])
        if previous is not None and previous + 1 not in seen and previous + 1 + d >= time:
            steps.append((previous + 1, [], True))
        if not left:
            copied = seen[before] if before is not None and previous is not None and previous >= time - d else []
            steps.append((time - d, copied, True))
        holding = [start for start in seen if start <= time < start + d]
        if time + 1 not in seen and holding and _latest(seen[max(holding)]) > time:
            steps.append((time + 1, seen[max(holding)], False))
        return steps

    def _early(self, seen: dict[int, Taken], time: int) -> list[tuple[int, Taken, bool]]:
        combined = seen.get(0)
        holding = [start for start in sorted(seen) if 0 < start <= time]
        steps = [(start, seen[start], True) for start in holding]
        later = seen[holding[-1]] if holding else combined
        if time + 1 not in seen and later and _latest(later) > time:
            steps.append((time + 1, later, False))
        if combined and _latest(combined) < time and _latest(combined) + 1 not in seen:
            steps.append((_latest(combined) + 1, [], True))
        return [*steps, (0, combined or [], True)]


def _latest(taken: Taken) -> int:
    return max(time for _, time in taken)
