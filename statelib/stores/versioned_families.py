"""The two families of a versioned store: timelines of keys, read and written segment by segment."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from typing import TYPE_CHECKING

from statelib.batch import NO_TIMESTAMP
from statelib.errors import ConfigurationError, InternalError
from statelib.stores.timeline import Timeline
from statelib.stores.versioned_codec import (
    HEADER_KEY,
    Header,
    decode_header,
    decode_latest,
    decode_row,
    decode_segment_id,
    decode_segment_key,
    encode_header,
    encode_latest,
    encode_row,
    encode_segment_key,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from statelib.stores.backend import Backend, WriteBatch
    from statelib.stores.versioned_codec import Interval


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
        self._backend = backend
        self._name = name
        self._latest, self._segments = f"{name}.latest", f"{name}.segments"
        self._retention = history_retention_ms
        self._interval = segment_interval_ms
        self._raw_header: bytes | None = None
        self._header = Header(segment_interval_ms, NO_TIMESTAMP)

    @property
    def header(self) -> Header:
        """The header as it is stored now.

        Raises:
            ConfigurationError: The stored segments have another width, or the store another format.
        """
        raw = self._backend.get(self._segments, HEADER_KEY)
        if raw is not None and raw != self._raw_header:
            header = decode_header(raw, self._name)
            if header.segment_interval_ms != self._interval:
                raise ConfigurationError(
                    f"the store has segments of {header.segment_interval_ms} ms, not of {self._interval} ms",
                    store=self._name,
                    next_step=f"set the segment interval to {header.segment_interval_ms} ms, or start the job over",
                )
            self._raw_header, self._header = raw, header
        return self._header

    def segment_of(self, time: int) -> int:
        """The id of the segment that holds what ended at ``time``."""
        return max(time, 0) // self._interval

    def segment_ids(self, first: int, last: int) -> Iterator[int]:
        """The live segments from ``first`` to ``last``, ascending, that hold something: one seek each."""
        segment = max(first, self._first_live(self.header.stream_time))
        end = encode_segment_key(last + 1)
        while segment <= last:
            found = next(self._backend.scan(self._segments, encode_segment_key(segment), end), None)
            if found is None:
                return
            segment = decode_segment_id(found[0])
            yield segment
            segment += 1

    def read(self, keys: Sequence[bytes], from_ms: Sequence[int]) -> list[tuple[Timeline, Stored]]:
        """For each key all versions valid at or after its ``from_ms`` (>= 0), and maybe some older ones.

        Segments are not looked at for a key whose latest value is older than its ``from_ms``.
        """
        raws = self._backend.multi_get(self._latest, keys)
        latest = [None if raw is None else decode_latest(raw, self._name) for raw in raws]
        first = [self.segment_of(time) for time in from_ms]
        newest = self.segment_of(self.header.stream_time)
        last = []
        for version, time in zip(latest, from_ms, strict=True):
            if version is None:
                last.append(newest)
            else:  # what is older has ended by the time of the latest value
                last.append(self.segment_of(version[0]) if version[0] >= time else -1)
        rows = self._read_rows(keys, first, last)
        found = []
        for i, version in enumerate(latest):
            timeline = self._timeline(rows[i], version)
            if version is not None and version[0] < from_ms[i]:
                stored = Stored(raws[i], rows[i], self.segment_of(version[0]) + 1, version[0])
            else:
                stored = Stored(raws[i], rows[i], first[i], first[i] * self._interval - 1)
            found.append((timeline, stored))
        return found

    def keys(self, first: bytes, end: bytes | None, from_ms: int) -> Iterator[bytes]:
        """Keys from ``first`` to before ``end`` that may have a value at ``from_ms`` or later, bytewise, each once."""
        runs = [(key for key, _ in self._backend.scan(self._latest, first, end))]
        for segment in self.segment_ids(self.segment_of(from_ms), self.segment_of(self.header.stream_time)):
            upper = encode_segment_key(segment + 1) if end is None else encode_segment_key(segment, end)
            scan = self._backend.scan(self._segments, encode_segment_key(segment, first), upper)
            runs.append(decode_segment_key(raw) for raw, _ in scan)
        return (key for key, _ in groupby(merge(*runs)))

    def row(self, key: bytes, segment: int) -> list[Interval]:
        """The versions of ``key`` in one segment, in order of time."""
        raw = self._backend.get(self._segments, encode_segment_key(segment, key))
        return [] if raw is None else decode_row(raw, self._name)

    def write(self, changes: Iterable[tuple[bytes, Stored, Timeline]], stream_time: int, write: WriteBatch) -> None:
        """Adds to ``write`` what turns each key's stored versions into its timeline, and drops expired segments.

        Raises:
            InternalError: A timeline was changed at a time before the one from which it was read.
        """
        first_live = self._first_live(stream_time)
        if first_live > self._first_live(self.header.stream_time):
            write.delete_range(self._segments, encode_segment_key(0), encode_segment_key(first_live))
        for key, stored, timeline in changes:
            self._write_latest(key, stored, timeline, write)
            self._write_rows(key, stored, timeline, first_live, write)
        header = encode_header(Header(self._interval, stream_time))
        if header != self._raw_header:
            write.put(self._segments, HEADER_KEY, header)

    def _first_live(self, stream_time: int) -> int:
        return self.segment_of(stream_time - self._retention)

    def _read_rows(self, keys: Sequence[bytes], first: list[int], last: list[int]) -> list[dict[int, bytes]]:
        rows: list[dict[int, bytes]] = [{} for _ in keys]
        asked = [i for i in range(len(keys)) if first[i] <= last[i]]
        if not asked:
            return rows
        for segment in self.segment_ids(min(first[i] for i in asked), max(last[i] for i in asked)):
            wanted = [i for i in asked if first[i] <= segment <= last[i]]
            raws = self._backend.multi_get(self._segments, [encode_segment_key(segment, keys[i]) for i in wanted])
            for i, raw in zip(wanted, raws, strict=True):
                if raw is not None:
                    rows[i][segment] = raw
        return rows

    def _timeline(self, rows: dict[int, bytes], latest: tuple[int, bytes, bool] | None) -> Timeline:
        timeline = Timeline()
        for raw in rows.values():
            for version in decode_row(raw, self._name):
                timeline.valid_from.append(version.valid_from)
                timeline.values.append(version.value)
        if latest is not None:
            timestamp, value, timeline.remembered = latest
            timeline.valid_from.append(timestamp)
            timeline.values.append(value)
        return timeline

    def _write_latest(self, key: bytes, stored: Stored, timeline: Timeline, write: WriteBatch) -> None:
        value = timeline.latest
        if value is None:
            if stored.latest is not None:
                write.delete(self._latest, key)
            return
        raw = encode_latest(timeline.valid_from[-1], value, remembered=timeline.remembered)
        if raw != stored.latest:
            write.put(self._latest, key, raw)

    def _write_rows(self, key: bytes, stored: Stored, timeline: Timeline, first_live: int, write: WriteBatch) -> None:
        rows: defaultdict[int, list[Interval]] = defaultdict(list)
        for version in timeline.ended():
            if version.valid_to <= stored.ended_by:
                raise InternalError(
                    f"a version ends at {version.valid_to}, but what ended by {stored.ended_by} was not read",
                    store=self._name,
                )
            segment = self.segment_of(version.valid_to)
            if segment >= first_live:
                rows[segment].append(version)
        for segment, versions in rows.items():
            if segment < stored.first_segment:  # the one row that may hold what was not read
                versions[:0] = [old for old in self.row(key, segment) if old.valid_to <= stored.ended_by]
            raw = encode_row(versions)
            if raw != stored.rows.get(segment):
                write.put(self._segments, encode_segment_key(segment, key), raw)
        for segment in stored.rows.keys() - rows.keys():
            if segment >= first_live:
                write.delete(self._segments, encode_segment_key(segment, key))
