"""The latest values and the segments of a versioned store: timelines of keys, in its two column families."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from statelib.errors.kinds import ConfigurationError, InternalError
from statelib.operators.versioned.codec import (
    AFTER,
    BEFORE,
    COVERS,
    HEADER_KEY,
    Header,
    decode_header,
    decode_latest,
    decode_row,
    decode_segment_id,
    decode_segment_key,
    decode_versions,
    encode_header,
    encode_latest,
    encode_row,
    encode_segment_key,
    extend_row,
    find_in_row,
)
from statelib.operators.versioned.timeline import Timeline
from statelib.records.batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from statelib.operators.versioned.codec import Interval
    from statelib.stores.backend import Backend, WriteBatch

_FEW_SEGMENTS = 32
_MOST_ROWS_FIRST = 3


@dataclass(frozen=True, slots=True)
class Stored:
    """What is stored of a key, as of when it was read.

    Attributes:
        latest: The raw latest value, if any.
        rows: Raw rows by segment, all that there are from ``first_segment`` on.
        first_segment: The first segment that was looked at.
        ended_by: Versions that were not read ended at this time or earlier.
    """

    latest: bytes | None
    rows: dict[int, bytes]
    first_segment: int
    ended_by: int


class VersionedFamilies:
    """Reads and writes the timelines of keys, and drops what has expired.

    Args:
        backend: Where the families are.
        name: Of the store.
        history_retention_ms: How long versions are kept after they ended, at least.
        segment_interval_ms: Width of a segment.
    """

    def __init__(self, backend: Backend, name: str, history_retention_ms: int, segment_interval_ms: int) -> None:
        self.backend = backend
        self.name = name
        self.latest, self.segments = f"{name}.latest", f"{name}.segments"
        self._retention = history_retention_ms
        self._interval = segment_interval_ms
        self._raw_header: bytes | None = None
        self._read_after = -1  # the header is that after so many writes
        self._header = Header(segment_interval_ms, NO_TIMESTAMP)
        self._rows_first = 0  # so many segments are looked into before the latest values: `valid_at`

    @property
    def header(self) -> Header:
        """The header as it is stored now.

        Raises:
            ConfigurationError: The stored segments have another width, or the store another format.
        """
        writes = self.backend.writes
        if writes == self._read_after:
            return self._header
        raw = self.backend.get(self.segments, HEADER_KEY)
        if raw is not None and raw != self._raw_header:
            header = decode_header(raw, self.name)
            if header.segment_interval_ms != self._interval:
                raise ConfigurationError(
                    f"the store has segments of {header.segment_interval_ms} ms, not of {self._interval} ms",
                    store=self.name,
                    next_step=f"set the segment interval to {header.segment_interval_ms} ms, or start the job over",
                )
            self._raw_header, self._header = raw, header
        self._read_after = writes
        return self._header

    def segment_of(self, time: int) -> int:
        """The id of the segment that holds what ended at ``time``."""
        return time // self._interval if time > 0 else 0

    def segments_of(self, time: NDArray[np.int64]) -> NDArray[np.int64]:
        """As `segment_of`, of many times."""
        segments: NDArray[np.int64] = np.maximum(time, 0) // self._interval
        return segments

    def starts_of(self, segment: NDArray[np.int64]) -> NDArray[np.int64]:
        """The time with which each segment begins, ms."""
        return segment * self._interval

    def horizon(self, stream_time: int) -> int:
        """The earliest time within retention, ms."""
        return stream_time - self._retention

    def first_live(self, stream_time: int) -> int:
        """The first segment that has not expired."""
        return self.segment_of(self.horizon(stream_time))

    def segment_ids(self, first: int, last: int) -> Iterator[int]:
        """The live segments from ``first`` to ``last``, ascending, that hold something: one seek each."""
        segment = max(first, self.first_live(self.header.stream_time))
        end = encode_segment_key(last + 1)
        while segment <= last:
            found = next(self.backend.scan(self.segments, encode_segment_key(segment), end), None)
            if found is None:
                return
            segment = decode_segment_id(found[0])
            yield segment
            segment += 1

    def read(self, key: bytes, from_ms: int) -> tuple[Timeline, Stored]:
        """All versions of ``key`` valid at or after ``from_ms`` (>= 0), and maybe some older ones.

        Segments are not looked at if the latest value is older than ``from_ms``.
        """
        raw = self.backend.get(self.latest, key)
        if raw is None:
            first = self.segment_of(from_ms)
            rows = self._read_rows(key, first, self.segment_of(self.header.stream_time))
            return self._timeline(rows), Stored(None, rows, first, first * self._interval - 1)
        timestamp, value, remembered = decode_latest(raw, self.name)
        if timestamp < from_ms:
            stored = Stored(raw, {}, self.segment_of(timestamp) + 1, timestamp)
            return Timeline([timestamp], [value], remembered), stored
        first = self.segment_of(from_ms)
        rows = self._read_rows(key, first, self.segment_of(timestamp))  # what is older has ended by then
        timeline = self._timeline(rows)
        timeline.valid_from.append(timestamp)
        timeline.values.append(value)
        timeline.remembered = remembered
        return timeline, Stored(raw, rows, first, first * self._interval - 1)

    def valid_at(self, key: bytes, time: int, stream_time: int) -> tuple[int, int | None, bytes] | None:
        """The stored value of ``key`` valid at ``time``; of a time older than the retention only a latest value.

        ``stream_time`` is the store's clock, which may be ahead of what is stored.

        Whoever asks for what has ended mostly does so again: then a few rows come before the latest value, and where
        one of them tells, the latest value is not looked at. A row that is not there costs a third of one that is.

        Returns:
            When it begins, when it ended (None: it is the latest), its bytes.
        """
        horizon = stream_time - self._retention
        first = self.segment_of(time)
        if horizon <= time < stream_time:
            for _ in range(self._rows_first):
                place, ended = self._look_into(first, key, time)
                if place is not None and place != BEFORE:
                    return ended
                first += 1
        latest_from = None
        raw = self.backend.get(self.latest, key)
        if raw is not None:
            latest_from, value, _ = decode_latest(raw, self.name)
            if latest_from <= time:
                if time < stream_time:
                    self._rows_first = 0
                return latest_from, None, value
        return None if time < horizon else self._ended(key, time, first, latest_from)

    def _ended(self, key: bytes, time: int, first: int, latest_from: int | None) -> tuple[int, int, bytes] | None:
        """The fields of the `Interval` that is valid at ``time``, which ended in segment ``first`` or later.

        Time goes on from row to row, so the first that does not end too early tells. Shortly before the latest value
        mostly that is valid which ended with it: then its segment comes first, and the one before it after.
        """
        newest = self.segment_of(self.header.stream_time if latest_from is None else latest_from)
        segments, passed_over = self._candidates(first, newest), BEFORE
        if latest_from is not None and latest_from - time < self._interval:
            segments, passed_over = range(newest, first - 1, -1), AFTER
        for segment in segments:
            place, version = self._look_into(segment, key, time)
            if place == COVERS:
                needed = segment - self.segment_of(time) + 1
                self._rows_first = max(self._rows_first, min(needed, _MOST_ROWS_FIRST))
            if place not in (None, passed_over):
                return version
        return None

    def _look_into(self, segment: int, key: bytes, time: int) -> tuple[int | None, tuple[int, int, bytes] | None]:
        """`find_in_row` of the key's row in a segment; None if there is none."""
        raw = self.backend.get(self.segments, encode_segment_key(segment, key))
        return (None, None) if raw is None else find_in_row(raw, time, self.name)

    def _candidates(self, first: int, last: int) -> Iterable[int]:
        """Segments within retention that may hold something: a few look-ups are cheaper than a seek for each."""
        return range(first, last + 1) if last - first < _FEW_SEGMENTS else self.segment_ids(first, last)

    def keys(self, first: bytes, end: bytes | None, from_ms: int) -> Iterator[bytes]:
        """Keys from ``first`` to before ``end`` that may have a value at ``from_ms`` or later, bytewise, each once."""
        runs = [(key for key, _ in self.backend.scan(self.latest, first, end))]
        for segment in self.segment_ids(self.segment_of(from_ms), self.segment_of(self.header.stream_time)):
            upper = encode_segment_key(segment + 1) if end is None else encode_segment_key(segment, end)
            scan = self.backend.scan(self.segments, encode_segment_key(segment, first), upper)
            runs.append(decode_segment_key(raw) for raw, _ in scan)
        return (key for key, _ in groupby(merge(*runs)))

    def row(self, key: bytes, segment: int) -> list[Interval]:
        """The versions of ``key`` in one segment, in order of time."""
        raw = self.backend.get(self.segments, encode_segment_key(segment, key))
        return [] if raw is None else decode_row(raw, self.name)

    def write(
        self, key: bytes, stored: Stored, timeline: Timeline, touched: Iterable[int], first_live: int, write: WriteBatch
    ) -> None:
        """Adds to ``write`` what turns the key's stored versions into its timeline.

        Args:
            key: The key.
            stored: What was stored when it was read.
            timeline: What has become of that.
            touched: The segments whose versions may have changed.
            first_live: The first segment that has not expired; older ones are left alone.
            write: The batch.

        Raises:
            InternalError: The timeline was changed at a time before the one from which it was read.
        """
        self._write_latest(key, stored, timeline, write)
        for segment in touched:
            if segment >= first_live:
                self._write_row(key, segment, stored, timeline, write)

    def advance(self, stream_time: int, write: WriteBatch) -> None:
        """Adds the store's clock to ``write``, and that the segments go that have expired by then."""
        first_live = self.first_live(stream_time)
        if first_live > self.first_live(self.header.stream_time):
            write.delete_range(self.segments, encode_segment_key(0), encode_segment_key(first_live))
        header = encode_header(Header(self._interval, stream_time))
        if header != self._raw_header:
            write.put(self.segments, HEADER_KEY, header)

    def _read_rows(self, key: bytes, first: int, last: int) -> dict[int, bytes]:
        rows = {}
        for segment in self._candidates(first, last):
            raw = self.backend.get(self.segments, encode_segment_key(segment, key))
            if raw is not None:
                rows[segment] = raw
        return rows

    def _timeline(self, rows: dict[int, bytes]) -> Timeline:
        timeline = Timeline()
        for raw in rows.values():
            begins, _, values = decode_versions(raw, self.name)
            timeline.valid_from += begins
            timeline.values += values
        return timeline

    def _write_latest(self, key: bytes, stored: Stored, timeline: Timeline, write: WriteBatch) -> None:
        value = timeline.latest
        if value is None:
            if stored.latest is not None:
                write.delete(self.latest, key)
            return
        raw = encode_latest(timeline.valid_from[-1], value, remembered=timeline.remembered)
        if raw != stored.latest:
            write.put(self.latest, key, raw)

    def _write_row(self, key: bytes, segment: int, stored: Stored, timeline: Timeline, write: WriteBatch) -> None:
        versions = timeline.ended_between(segment * self._interval, (segment + 1) * self._interval)
        row_key = encode_segment_key(segment, key)
        if not versions:
            if segment in stored.rows:
                write.delete(self.segments, row_key)
            return
        if versions[0].valid_to <= stored.ended_by:
            raise InternalError(
                f"a version ends at {versions[0].valid_to}, but what ended by {stored.ended_by} was not read",
                store=self.name,
            )
        # The one row that may hold what was not read is added to.
        unread = self.backend.get(self.segments, row_key) if segment < stored.first_segment else None
        raw = encode_row(versions) if unread is None else extend_row(unread, versions, self.name)
        if raw != stored.rows.get(segment):
            write.put(self.segments, row_key, raw)
