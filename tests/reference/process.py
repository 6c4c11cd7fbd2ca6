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


class Relays:
    """Three processors that share a store: the second gets what the first forwards, the third something else.

    Each tells of a record twice what it finds for its key, and puts it. The first two tell all of the store every so
    often. The order of calls that are due at once is that of Java's ``PriorityQueue``, here for two of them.
    """

    def __init__(self, intervals: tuple[int, int]) -> None:
        self.store: dict[str, str] = {}
        self.stream_time = -1
        self.calls = [(0, "first", intervals[0]), (0, "second", intervals[1])]
        self.out: dict[str, list[tuple[Any, Any, int]]] = {"twice": [], "once": [], "anywhere": []}

    def take(self, *, other: bool, key: str | None, value: str | None, timestamp: int) -> None:
        """A record of the one topic or the other, and the calls behind it."""
        self.stream_time = max(self.stream_time, timestamp)
        self._visit("third" if other else "first", key, value, timestamp)
        while self.calls[0][0] <= self.stream_time:
            due, name, interval = self.calls.pop(0)
            for told, kept in sorted(self.store.items()):
                self._forward(name, told, f"{name} by {self.stream_time}: {kept}", self.stream_time)
                self.store[told] = f"told by {name}"
            due += (max(self.stream_time - due, 0) // interval + 1) * interval
            self.calls.append((due, name, interval))
            self.calls.sort(key=lambda call: call[0])

    def _visit(self, name: str, key: str | None, value: str | None, timestamp: int) -> None:
        if key is None:
            return
        for word in ("finds", "again"):
            self._forward(name, key, f"{name} {word} {self.store.get(key)}", timestamp)
            self.store[key] = f"{value} of {name}"[:40]

    def _forward(self, name: str, key: str, value: str, timestamp: int) -> None:
        row = (key, value, timestamp)
        if name == "first":
            self._visit("second", *row)
            self.out["once"].append(row)
            self.out["anywhere"].append(row)
        else:
            self.out["twice" if name == "second" else "anywhere"].append(row)
