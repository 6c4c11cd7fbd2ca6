"""The versions of one key in order of time, and how a put changes them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

from statelib.operators.versioned.codec import Interval

VALID_TO_UNDEFINED = -1
"""What put gives when the new version is the key's latest (Kafka: ``PUT_RETURN_CODE_VALID_TO_UNDEFINED``)."""


@dataclass(slots=True)
class Timeline:
    """The versions of a key; a kernel's `VersionSet` holds the same for many keys.

    Attributes:
        valid_from: Milliseconds, ascending and unique.
        values: None is a tombstone.
        remembered: See `statelib.operators.versioned.store`, rule 4.
    """

    valid_from: list[int] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    remembered: bool = False

    @property
    def latest(self) -> bytes | None:
        """The latest value; None if there is none, or it is a tombstone."""
        return self.values[-1] if self.values else None

    def put(self, value: bytes | None, timestamp: int, *, kip: bool) -> int:
        """Rules 2 to 4 of `statelib.operators.versioned.store`.

        Returns:
            The next version's timestamp, or `VALID_TO_UNDEFINED`.
        """
        at = bisect_left(self.valid_from, timestamp)
        after = len(self.valid_from) - at
        if after and self.valid_from[at] == timestamp:
            self._replace(at, value, kip=kip)
            return self.valid_from[at + 1] if after > 1 else VALID_TO_UNDEFINED
        if after == 0 and value is not None:
            self.remembered = kip or self.latest is not None
        elif after == 1:
            self.remembered = True
        self.valid_from.insert(at, timestamp)
        self.values.insert(at, value)
        return self.valid_from[at + 1] if after else VALID_TO_UNDEFINED

    def _replace(self, at: int, value: bytes | None, *, kip: bool) -> None:
        if at == len(self.values) - 1:
            before = self.values[at]
            if value is None and before is not None and not (kip or self.remembered):
                del self.valid_from[at], self.values[at]
                return
            if value is not None and before is None:
                self.remembered = True
        elif at == len(self.values) - 2:
            self.remembered = True
        self.values[at] = value

    def extend_back(self, older: Timeline, ended_by: int) -> None:
        """Takes in those versions of an ``older`` timeline that ended at ``ended_by`` or earlier; none is here yet."""
        count = bisect_right(older.valid_from, ended_by)
        if count and older.values[count - 1] is not None:  # the next one begins later, if there is one
            count -= 1
        self.valid_from[:0] = older.valid_from[:count]
        self.values[:0] = older.values[:count]

    def at(self, time: int) -> Interval | None:
        """The value that is valid at ``time``, with ``valid_to`` -1 if it is the latest; None if there is none."""
        row = bisect_right(self.valid_from, time) - 1
        if row < 0 or (value := self.values[row]) is None:
            return None
        valid_to = self.valid_from[row + 1] if row + 1 < len(self.values) else VALID_TO_UNDEFINED
        return Interval(self.valid_from[row], valid_to, value)

    def ended_between(self, first: int, end: int) -> list[Interval]:
        """What belongs into the segment from time ``first`` to before ``end``: what ended there, and tombstones."""
        begins, values = self.valid_from, self.values
        low, high = bisect_left(begins, first), bisect_left(begins, end)
        found = []
        for row in range(max(low - 1, 0), high):
            if (value := values[row]) is None:
                if row >= low:
                    found.append(Interval(begins[row], begins[row], None))
            elif row + 1 < high:
                found.append(Interval(begins[row], begins[row + 1], value))
        return found
