"""Times in milliseconds since 1970: which of them a topic can hold, and how any of them is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LAST_TIME_MS = 9_223_372_036_854_775
"""The last time that a topic at rest can hold, in the year 294247: Delta's timestamps are microseconds in 64 bits."""

FIRST_TIME_MS = -LAST_TIME_MS
"""The first one, in the year -290308."""

A_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""By Arrow's unit."""

_PLAUSIBLE_MS = (631_152_000_000, 4_102_444_800_000)  # 1990 to 2100
_UNITS = (("nanoseconds", 1_000_000), ("microseconds", 1000))
_LAST_PLAIN_YEAR = 9999


def instant_text(time_ms: int) -> str:
    """``2013-02-01T05:00:00.000Z``; years beyond 9999 as ISO 8601 (and Java) has them, ``+55840-01-01T...``.

    Any 64-bit number can be shown: the one that is no time to numpy as a number.
    """
    time = np.datetime64(time_ms, "ms")
    if np.isnat(time):
        return f"{time_ms} ms"
    text = str(np.datetime_as_string(time, unit="ms"))
    year, _, rest = text.lstrip("-").partition("-")
    sign = "-" if text.startswith("-") else "+" if int(year) > _LAST_PLAIN_YEAR else ""
    return f"{sign}{int(year):04d}-{rest}Z"


def end_of_windows(start: NDArray[np.int64], size_ms: int) -> NDArray[np.int64]:
    """Where windows of a size end, int64 ms; none later than a topic can hold."""
    return np.minimum(start, LAST_TIME_MS - size_ms) + size_ms


def unit_hint(time: int) -> str:
    """``, which looks like microseconds``, or nothing: whether a number of milliseconds was meant as another unit.

    It was if it is a time from 1990 to 2100 in that unit, and in milliseconds one that hardly any record has.
    """
    for unit, a_millisecond in _UNITS:
        if _PLAUSIBLE_MS[0] <= time // a_millisecond < _PLAUSIBLE_MS[1]:
            return f", which looks like {unit} taken for milliseconds"
    if _PLAUSIBLE_MS[0] <= time * 1000 < _PLAUSIBLE_MS[1]:
        return ", which looks like seconds taken for milliseconds"
    return ""
