"""Custom processors as plain as can be: record by record, with punctuation behind each (Kafka's test driver)."""

from __future__ import annotations

from typing import Any


class CountAndTell:
    """Counts records by key; tells all counts every ``interval``, and each key's first record at once."""

    def __init__(self, interval: int) -> None:
        self.interval = interval
        self.due = 0
        self.stream_time = -1
        self.counts: dict[str, int] = {}

    def take(self, key: str | None, value: str | None, timestamp: int, *, reaches: bool) -> list[tuple[Any, Any, int]]:
        """What is forwarded for a record of the task, which may go elsewhere: (key, value, timestamp)."""
        self.stream_time = max(self.stream_time, timestamp)
        forwarded = []
        if reaches and key is not None:
            self.counts[key] = self.counts.get(key, 0) + 1
            if self.counts[key] == 1:
                forwarded.append((key, f"new: {value}", timestamp))
        if self.due <= self.stream_time:
            forwarded += [
                (k, f"{count} by {self.stream_time}", self.stream_time) for k, count in sorted(self.counts.items())
            ]
            self.due = (self.stream_time // self.interval + 1) * self.interval
        return forwarded
