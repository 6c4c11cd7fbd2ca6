"""Versioned stores as plain as can be: what KIP-889 promises, and what the shipped store does instead.

`KipStore` keeps every version for ever and answers from the rules alone. `ShippedStore` follows the shipped store's own
steps: a latest value a key, and rows a key and segment, of which each ends at a time and begins at its first version.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

NOT_PUT = -9223372036854775808
NO_NEXT = -1


class KipStore:
    """KIP-889's text."""

    def __init__(self, retention: int) -> None:
        self.retention = retention
        self.stream_time = -1
        self.versions: dict[bytes, dict[int, bytes | None]] = {}

    def put(self, key: bytes, value: bytes | None, timestamp: int) -> int:
        if timestamp < self.stream_time - self.retention:
            return NOT_PUT
        self.stream_time = max(self.stream_time, timestamp)
        versions = self.versions.setdefault(key, {})
        versions[timestamp] = value
        return min((time for time in versions if time > timestamp), default=NO_NEXT)

    def get(self, key: bytes, as_of: int) -> tuple[bytes, int, int | None] | None:
        found = [i for i in self._intervals(key) if i[1] <= as_of and (i[2] is None or as_of < i[2])]
        if as_of < self.stream_time - self.retention:
            found = [i for i in found if i[2] is None]
        return found[0] if found else None

    def history(self, key: bytes, first: int, last: int) -> list[tuple[bytes, int, int | None]]:
        """Ascending."""
        horizon = self.stream_time - self.retention
        if last < horizon:
            return [i for i in self._intervals(key) if i[1] <= last and i[2] is None]
        first = max(first, horizon)
        return [i for i in self._intervals(key) if i[1] <= last and (i[2] is None or i[2] > first)]

    def _intervals(self, key: bytes) -> list[tuple[bytes, int, int | None]]:
        versions = sorted(self.versions.get(key, {}).items())
        ends = [*(time for time, _ in versions[1:]), None]
        return [(value, time, end) for (time, value), end in zip(versions, ends, strict=False) if value is not None]


@dataclass
class Row:
    """Versions of a key in one segment, ascending; a lone tombstone that ends when it begins is degenerate."""

    end: int
    versions: list[tuple[int, bytes | None]]

    @property
    def begin(self) -> int:
        return self.versions[0][0]

    def append(self, begin: int, end: int, value: bytes | None) -> None:
        assert begin >= self.end, "only a store that failed half-way has to cut a row"
        if self.begin == self.end:
            self.versions = []
        if begin > self.end:
            self.versions.append((self.end, None))
        self.versions.append((begin, value))
        self.end = end

    def prepend(self, begin: int, value: bytes | None) -> None:
        self.versions = [(begin, value), *(self.versions if self.begin < self.end else [])]

    def intervals(self) -> list[tuple[bytes | None, int, int]]:
        ends = [*(time for time, _ in self.versions[1:]), self.end]
        return [(value, time, end) for (time, value), end in zip(self.versions, ends, strict=True)]


class ShippedStore:
    """Kafka Streams 4.3's steps."""

    def __init__(self, retention: int, interval: int) -> None:
        self.retention, self.interval = retention, interval
        self.stream_time = -1
        self.first_live = 0
        self.latest: dict[bytes, tuple[int, bytes]] = {}
        self.segments: dict[int, dict[bytes, Row]] = {}

    def put(self, key: bytes, value: bytes | None, timestamp: int) -> int:
        if timestamp < self.stream_time - self.retention:
            return NOT_PUT
        self.stream_time = max(self.stream_time, timestamp)
        return self._put(key, value, timestamp, self.stream_time)

    def restore(self, records: Sequence[tuple[bytes, bytes | None, int]]) -> None:
        """One portion of a changelog: what is late is told by the clock so far, what has expired by that at the end."""
        end = max([self.stream_time, *(timestamp for _, _, timestamp in records)])
        for key, value, timestamp in records:
            if timestamp >= self.stream_time - self.retention:
                self.stream_time = max(self.stream_time, timestamp)
                self._put(key, value, timestamp, end)

    def _put(self, key: bytes, value: bytes | None, timestamp: int, stream_time: int) -> int:
        self.first_live = max(stream_time - self.retention, 0) // self.interval
        self.segments = {segment: rows for segment, rows in self.segments.items() if segment >= self.first_live}

        later = None
        if key in self.latest:
            later, before = self.latest[key]
            if timestamp >= later:
                if timestamp > later:
                    self._end(key, later, timestamp, before)
                self._set_latest(key, value, timestamp)
                return NO_NEXT
        for segment in sorted(self.segments, reverse=True):
            row = self.segments[segment].get(key)
            if row is None or segment < timestamp // self.interval:
                continue
            if row.end <= timestamp:
                break
            if row.begin <= timestamp:
                return self._put_inside(key, value, timestamp, segment, row)
            if row.begin < stream_time - self.retention:
                return NOT_PUT
            later = row.begin
        if later is None:
            self._put_last(key, value, timestamp)
            return NO_NEXT
        self._end_or_begin(key, timestamp, later, value)
        return later

    def _set_latest(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        if value is None:
            self.latest.pop(key, None)
        else:
            self.latest[key] = (timestamp, value)

    def _end(self, key: bytes, begin: int, end: int, value: bytes | None) -> None:
        if end // self.interval < self.first_live:
            return
        rows = self.segments.setdefault(end // self.interval, {})
        if key in rows:
            rows[key].append(begin, end, value)
        else:
            rows[key] = Row(end, [(begin, value)])

    def _put_inside(self, key: bytes, value: bytes | None, timestamp: int, segment: int, row: Row) -> int:
        at = max(i for i, (begin, _) in enumerate(row.versions) if begin <= timestamp)
        old, begin, end = row.intervals()[at]
        if begin == timestamp:
            row.versions[at] = (timestamp, value)
        elif timestamp // self.interval == segment:
            row.versions.insert(at + 1, (timestamp, value))
        else:
            self._end(key, begin, timestamp, old)
            row.versions[at] = (timestamp, value)
        return end

    def _put_last(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        if value is not None:
            self.latest[key] = (timestamp, value)
            return
        row = self.segments.get(timestamp // self.interval, {}).get(key)
        if row is None:
            self._end(key, timestamp, timestamp, None)
        elif row.end != timestamp:
            row.append(row.end, timestamp, None)

    def _end_or_begin(self, key: bytes, timestamp: int, later: int, value: bytes | None) -> None:
        row = self.segments.get(later // self.interval, {}).get(key)
        if row is not None and row.end > timestamp:
            row.prepend(timestamp, value)
        else:
            self._end(key, timestamp, later, value)

    def get(self, key: bytes, as_of: int) -> tuple[bytes, int, int | None] | None:
        if key in self.latest and self.latest[key][0] <= as_of:
            return self.latest[key][1], self.latest[key][0], None
        if as_of < self.stream_time - self.retention:
            return None
        for segment in sorted(self.segments, reverse=True):
            row = self.segments[segment].get(key)
            if row is not None and row.begin <= as_of < row.end:
                value, begin, end = next(i for i in row.intervals() if i[1] <= as_of < i[2])
                return None if value is None else (value, begin, end)
        return None

    def history(self, key: bytes, first: int, last: int) -> list[tuple[bytes, int, int | None]]:
        """Ascending."""
        found: list[tuple[bytes, int, int | None]] = []
        if last >= self.stream_time - self.retention:
            for segment in sorted(self.segments):
                row = self.segments[segment].get(key)
                if row is not None and segment <= max(last, 0) // self.interval:
                    found += [
                        (value, begin, end)
                        for value, begin, end in row.intervals()
                        if value is not None and begin <= last and end > first
                    ]
        if key in self.latest and self.latest[key][0] <= last:
            found.append((self.latest[key][1], self.latest[key][0], None))
        return found
