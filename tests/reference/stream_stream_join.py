"""The join of two streams, a record at a time: what Kafka Streams 4.3 does, and what it promises (``kip``)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Side = Literal["left", "right"]
Kind = Literal["inner", "left", "outer"]


class Result(NamedTuple):
    key: Any
    left: Any
    right: Any
    timestamp: int


class Stored(NamedTuple):
    timestamp: int
    arrival: int
    value: Any


@dataclass
class StreamStreamJoin:
    kind: Kind
    before_ms: int
    after_ms: int
    grace_ms: int
    holds_back: bool = True
    as_shipped: bool = False
    emit_interval_ms: int = 0
    stream_time: int = -1
    arrivals: int = 0
    late: int = 0
    expired: int = 0
    least_held: int | None = None
    next_scan: int = 0
    clocks: dict[Side, int] = field(default_factory=lambda: {"left": -1, "right": -1})
    stores: dict[Side, dict[Any, list[Stored]]] = field(default_factory=lambda: {"left": {}, "right": {}})
    held: dict[tuple[int, bool, bytes], list[Stored]] = field(default_factory=dict)
    """By time, whether it is of the left side, and key: Kafka's list-value store, whose order is that of these."""

    def process(self, side: Side, key: str | None, value: Any, timestamp: int, wall_clock_ms: int = 0) -> list[Result]:
        self.stream_time = max(self.stream_time, timestamp)
        if value is None:
            return []
        if key is None:
            return [self.lone(side, key, value, timestamp)] if self.keeps(side) else []
        self.clocks[side] = max(self.clocks[side], timestamp)
        newest = self.stream_time if self.as_shipped else self.clocks[side]
        results = self.scan(side, wall_clock_ms) if timestamp == newest else []
        matches = self.matches(side, key, timestamp)
        other = other_side(side)
        for match in matches:
            left, right = (value, match.value) if side == "left" else (match.value, value)
            results.append(Result(key, left, right, max(timestamp, match.timestamp)))
            self.held.pop(place(match.timestamp, other, key), None)
        self.arrivals += 1
        own = Stored(timestamp, self.arrivals, value)
        if not matches and self.keeps(side):
            if not self.holds_back or self.is_over_at_once(side, timestamp):
                results.append(self.lone(side, key, value, timestamp))
            else:
                self.held.setdefault(place(timestamp, side, key), []).append(own)
                self.least_held = min(timestamp, timestamp if self.least_held is None else self.least_held)
        if not self.put(side, key, own) and not matches and not self.keeps(side):
            self.late += 1
        return results

    def seal(self) -> list[Result]:
        """As all clocks go on for ever, a millisecond at a time."""
        due = sorted(self.held, key=lambda at: (at[0] + self.waits_ms(name(at[1])), *at))
        return [self.lone(name(at[1]), at[2].decode(), own.value, at[0]) for at in due for own in self.held[at]]

    def keeps(self, side: Side) -> bool:
        return self.kind == "outer" or (self.kind == "left" and side == "left")

    def ahead(self, side: Side) -> int:
        return self.after_ms if side == "left" else self.before_ms

    @property
    def retention_ms(self) -> int:
        return self.before_ms + self.after_ms + self.grace_ms

    def waits_ms(self, side: Side) -> int:
        """How far the clocks must come for a held record to give its lone result, if they all go on alike."""
        closed = self.ahead(side) + self.grace_ms + 1
        return closed if self.as_shipped else max(closed, self.retention_ms)

    def is_over_at_once(self, side: Side, timestamp: int) -> bool:
        """Whether a record that meets nobody gives its lone result when it comes."""
        if self.as_shipped:
            return max(0, timestamp + self.ahead(side)) < self.stream_time
        return self.is_over(side, timestamp)

    def is_over(self, side: Side, timestamp: int) -> bool:
        """Whether a held record gives its lone result."""
        window_is_open = timestamp + self.ahead(side) + self.grace_ms >= self.stream_time
        may_be_met = not self.as_shipped and timestamp in self.visible(side)
        return not window_is_open and not may_be_met

    def visible(self, side: Side) -> range:
        """The times whose records others may meet: those that the store of their side keeps."""
        return range(max(0, self.clocks[side] - self.retention_ms + 1), self.clocks[side] + 1)

    def matches(self, side: Side, key: str, timestamp: int) -> list[Stored]:
        other = other_side(side)
        visible = self.visible(other)
        least, greatest = max(0, timestamp - self.ahead(other)), max(0, timestamp + self.ahead(side))
        stored = sorted(self.stores[other].get(key, []))
        return [s for s in stored if s.timestamp in visible and least <= s.timestamp <= greatest]

    def put(self, side: Side, key: str, own: Stored) -> bool:
        """Whether the side's window store has a segment for the record."""
        segment = max(self.retention_ms // 2, 60_000)
        oldest = self.clocks[side] - self.retention_ms
        if oldest >= 0 and own.timestamp // segment < oldest // segment:
            self.expired += 1
            return False
        self.stores[side].setdefault(key, []).append(own)
        return True

    def scan(self, side: Side, wall_clock_ms: int) -> list[Result]:
        """Lone results of held records that are due."""
        if self.kind == "inner" or not self.holds_back or not self.scans(side, wall_clock_ms):
            return []
        results, open_sides, self.least_held = [], set(), None
        for at in sorted(self.held):
            for own in self.held[at]:
                timestamp, is_left, key = at
                self.least_held = timestamp
                if len(open_sides) == 2:
                    return results
                if not self.is_over(name(is_left), timestamp):
                    open_sides.add(is_left)
                    continue
                results.append(self.lone(name(is_left), key.decode(), own.value, timestamp))
            if self.is_over(name(is_left), timestamp):
                del self.held[at]
        return results

    def scans(self, side: Side, wall_clock_ms: int) -> bool:
        """Whether the shipped library looks for them; what is promised knows no such thing."""
        if not self.as_shipped:
            return True
        wait = self.ahead(side) + self.grace_ms
        if self.least_held is None:
            if wait <= 0:  # the largest long and more than nothing overflows, and is less than any stream time
                return False
        elif self.least_held + wait >= self.stream_time:
            return False
        if wall_clock_ms < self.next_scan:
            return False
        self.next_scan = wall_clock_ms + self.emit_interval_ms
        return True

    def lone(self, side: Side, key: str | None, value: Any, timestamp: int) -> Result:
        left, right = (value, None) if side == "left" else (None, value)
        return Result(key, left, right, timestamp)


def other_side(side: Side) -> Side:
    return "right" if side == "left" else "left"


def name(is_left: bool) -> Side:
    return "left" if is_left else "right"


def place(timestamp: int, side: Side, key: str) -> tuple[int, bool, bytes]:
    return timestamp, side == "left", key.encode()
