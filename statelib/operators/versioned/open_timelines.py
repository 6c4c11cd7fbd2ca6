"""The timelines of the keys that were put to since the last flush: decoded, and encoded once a flush.

A stored row holds all versions of a key that ended in a segment. If each put wrote it, a put would cost the more the
more versions its key has. Here a put changes a list in memory, and a flush writes what all puts have come to. A key is
read when it is put to, and forgotten at the flush. A put after all others reads no row, and the flush copies the row
behind which it comes without decoding it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from statelib.operators.versioned.timeline import VALID_TO_UNDEFINED
from statelib.stores.backend import WriteBatch

if TYPE_CHECKING:
    from statelib.operators.versioned.segments import Stored, VersionedFamilies
    from statelib.operators.versioned.timeline import Timeline

MOST_BYTES = 16 << 20
"""Roughly how much memory timelines may take; then they are written."""

_BYTES_OF_KEY, _BYTES_OF_VERSION = 1_000, 100


class OpenTimeline(NamedTuple):
    """A key that was put to.

    Attributes:
        timeline: Its versions, all that are valid after ``stored.ended_by``.
        stored: As they were when they were read.
        touched: The segments whose versions may differ from what is stored.
    """

    timeline: Timeline
    stored: Stored
    touched: set[int]


class OpenTimelines:
    """See the module's docstring.

    Between the first put and the flush nobody else writes the store, and others do not see the puts.

    Args:
        families: Where timelines are stored.
        kip: Whether the semantics are ``kip``, not ``kafka-4.3``.
    """

    def __init__(self, families: VersionedFamilies, *, kip: bool) -> None:
        self._families = families
        self._kip = kip
        self._keys: dict[bytes, OpenTimeline] = {}
        self.get = self._keys.get  # asked for each look-up
        """The key's timeline, if it was put to since the last flush."""
        self._bytes = 0
        self._stream_time = 0  # while there are keys

    @property
    def stream_time(self) -> int:
        """The store's clock, ms."""
        return self._stream_time if self._keys else self._families.header.stream_time

    def at(self, key: bytes, time: int) -> OpenTimeline:
        """The key's timeline, with all versions that a put at ``time`` (>= 0) may change.

        A key that turns out to be asked for at an earlier time gets all that is within retention, so it is not read
        more than twice a flush.
        """
        known = self._keys.get(key)
        if known is not None and time > known.stored.ended_by:
            return known
        if known is None:
            opened = OpenTimeline(*self._families.read(key, time), set())
        else:
            from_ms = min(time, max(self._families.horizon(self._stream_time), 0))
            older, stored = self._families.read(key, from_ms)
            known.timeline.extend_back(older, known.stored.ended_by)
            opened = OpenTimeline(known.timeline, stored, known.touched)
        if not self._keys:
            self._stream_time = self._families.header.stream_time
        self._keys[key] = opened
        raw_bytes = sum(map(len, opened.stored.rows.values()))
        self._bytes += _BYTES_OF_KEY + _BYTES_OF_VERSION * len(opened.timeline.values) + 2 * raw_bytes
        return opened

    def valid_at(self, key: bytes, time: int) -> tuple[int, int | None, bytes] | None:
        """As `VersionedFamilies.valid_at`, of what was put too."""
        opened = self._keys.get(key)
        if opened is None:
            return self._families.valid_at(key, time, self.stream_time)
        timeline = opened.timeline
        if time < self._families.horizon(self._stream_time):
            if not timeline.valid_from or timeline.valid_from[-1] > time:
                return None
        elif not timeline.valid_from or timeline.valid_from[0] > time:  # there are no gaps behind the first version
            timeline = self.at(key, max(time, 0)).timeline
        found = timeline.at(time)
        if found is None or found.value is None:
            return None
        return found.valid_from, None if found.valid_to == VALID_TO_UNDEFINED else found.valid_to, found.value

    def put(self, key: bytes, value: bytes | None, timestamp: int) -> int:
        """Puts a version that is not refused.

        Returns:
            The next version's timestamp, or `VALID_TO_UNDEFINED`.
        """
        opened = self.at(key, timestamp)
        valid_to = opened.timeline.put(value, timestamp, kip=self._kip)
        # Where the version before it ends now, and where it ends itself, or the one before it did.
        segment_of, touched = self._families.segment_of, opened.touched
        touched.add(segment_of(timestamp))
        if valid_to != VALID_TO_UNDEFINED:
            touched.add(segment_of(valid_to))
        self._stream_time = max(self._stream_time, timestamp)
        self._bytes += _BYTES_OF_VERSION if value is None else _BYTES_OF_VERSION + len(value)
        if self._bytes > MOST_BYTES:
            self.flush()
        return valid_to

    def flush(self) -> None:
        """Writes what the puts have come to, at once, and forgets the keys."""
        if not self._keys:
            return
        families, write = self._families, WriteBatch()
        families.advance(self._stream_time, write)
        first_live = families.first_live(self._stream_time)
        for key, (timeline, stored, touched) in self._keys.items():
            families.write(key, stored, timeline, touched, first_live, write)
        families.backend.write(write)
        self._keys.clear()
        self._bytes = 0
