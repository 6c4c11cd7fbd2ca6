"""Sessions, a record at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Sessions:
    """``retention_ms`` None: a session is seen while a record that is not too late itself could join it."""

    gap_ms: int
    grace_ms: int
    initializer: Callable[[], Any]
    aggregator: Callable[[Any, Any, Any], Any]
    merger: Callable[[Any, Any, Any], Any]
    retention_ms: int | None = None
    stream_time: int = -1
    late: int = 0
    sessions: dict[Any, dict[tuple[int, int], Any]] = field(default_factory=dict)
    """By key: (end, start) and aggregate."""

    def process(self, key: Any, value: Any, timestamp: int) -> list[tuple[int, int, Any, Any]]:
        """(start, end, aggregate or None, what that replaces) of each update of the table."""
        if key is None:
            return []
        known = self.seen().get(key, {})
        self.stream_time = max(self.stream_time, timestamp)
        joined = {
            (end, start): aggregate
            for (end, start), aggregate in sorted(known.items())
            if end >= timestamp - self.gap_ms and start <= timestamp + self.gap_ms
        }
        merged = (max([timestamp, *(end for end, _ in joined)]), min([timestamp, *(start for _, start in joined)]))
        if merged[0] < self.stream_time - self.gap_ms - self.grace_ms:
            self.late += 1
            return []
        aggregate = self.initializer()
        for one in joined.values():
            aggregate = self.merger(key, aggregate, one)
        updates = []
        if merged != (timestamp, timestamp):
            updates = [(start, end, None, one) for (end, start), one in joined.items()]
        replaced = None if updates else joined.get(merged)
        self.sessions[key] = {bounds: one for bounds, one in known.items() if bounds not in joined}
        aggregate = self.aggregator(key, value, aggregate)
        if aggregate is not None:
            self.sessions[key][merged] = aggregate
        return [*updates, (merged[1], merged[0], aggregate, replaced)]

    def seen(self) -> dict[Any, dict[tuple[int, int], Any]]:
        """The sessions that are still there for the next record."""
        if self.retention_ms is None:
            first = self.stream_time - self.gap_ms - self.grace_ms - self.gap_ms
        else:
            first = self.stream_time - self.retention_ms + 1
        return {
            key: {(end, start): aggregate for (end, start), aggregate in sessions.items() if end >= first}
            for key, sessions in self.sessions.items()
        }


def all_values(gap_ms: int, grace_ms: int, retention_ms: int | None = None) -> Sessions:
    """Sessions that remember all their values: those of older sessions first, then as they came."""
    return Sessions(
        gap_ms,
        grace_ms,
        list,
        lambda _, value, values: [*values, value],
        lambda _, one, other: one + other,
        retention_ms,
    )
