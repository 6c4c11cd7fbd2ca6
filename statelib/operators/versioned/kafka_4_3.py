"""The shipped store's range of versions, as `semantics="kafka-4.3"` gives it (Kafka: ``LogicalSegmentIterator``)."""

from __future__ import annotations

from functools import cmp_to_key
from typing import TYPE_CHECKING

from statelib.operators.versioned.codec import Interval

if TYPE_CHECKING:
    from statelib.operators.versioned.segments import VersionedFamilies

_NO_END = (1 << 63) - 1


def shipped_history(
    families: VersionedFamilies, key: bytes, first: int, last: int, *, ascending: bool
) -> list[Interval]:
    """The values of ``key`` that overlap ``first`` to ``last``, as far as the shipped store finds them.

    It looks into live segments up to that of ``last``, so it misses what was valid then and ended in a later one. Each
    segment is put into order by itself. The latest value ends at ``2**63 - 1``.
    """
    segments: list[list[Interval]] = []
    newest = families.segment_of(min(last, families.header.stream_time))
    for segment in families.segment_ids(0, newest):
        overlapping = [
            version
            for version in families.row(key, segment)
            if version.value is not None and version.valid_from <= last and version.valid_to > first
        ]
        segments.append(overlapping[::-1])
    timeline, _ = families.read(key, _NO_END)
    if timeline.latest is not None and timeline.valid_from[-1] <= last:
        segments.append([Interval(timeline.valid_from[-1], _NO_END, timeline.latest)])
    if ascending:
        return [version for found in segments for version in sorted(found, key=_by_shipped_comparison)]
    return [version for found in reversed(segments) for version in found]


def _by_shipped_difference(left: Interval, right: Interval) -> int:
    """The difference of the timestamps cut to 32 bits, as the shipped comparison does: wrong beyond 24.8 days."""
    low = (left.valid_from - right.valid_from) & 0xFFFF_FFFF
    return low - (1 << 32) if low >= 1 << 31 else low


_by_shipped_comparison = cmp_to_key(_by_shipped_difference)
