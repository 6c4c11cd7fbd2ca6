"""When windows begin and end that follow each other: every so many milliseconds, or with the days of a time zone.

Windows go by their number, from 0 on. None begins before 1970, as in Kafka Streams: one that would, and reaches into
it, is number 0 and begins with it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, available_timezones

import numpy as np

from statelib.columns.times import LAST_TIME_MS
from statelib.errors.did_you_mean import next_to
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

FAR_FUTURE_MS = 253_402_300_799_999
"""The last millisecond of the year 9999: the end of a window without end. (Kafka's is 2**63 - 1, which neither Delta
tables nor Python's datetimes can hold.)"""

LONGEST_DAY_MS = 48 * 3_600_000
"""No day of any zone since 1970 has been longer than 31 hours."""
_DAY_MS = 86_400_000
_DAY_ZERO = date(1969, 12, 31).toordinal()
"""The day that has begun, somewhere, when 1970 begins."""
_LAST_DAY = date.max.toordinal() - _DAY_ZERO
_DAYS_OF_400_YEARS = 146_097
"""Whole weeks."""
_MANY_DAYS = 1 << 12
_CACHED_DAYS = 1 << 16


@dataclass(frozen=True, slots=True)
class RegularGrid:
    """Windows of ``size_ms``, one every ``advance_ms``.

    Attributes:
        origin_ms: When number 0 begins; before 1970 if it is cut off there.
        advance_ms: From one window's start to the next's.
        size_ms: From a window's start to its end.
    """

    origin_ms: int
    advance_ms: int
    size_ms: int

    def __str__(self) -> str:
        return f"windows of {self.size_ms} ms, one every {self.advance_ms} ms from {self.origin_ms} ms on"

    def start_of(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64, when windows begin, ms."""
        return np.maximum(numbers * self.advance_ms + self.origin_ms, 0)

    def end_of(self, start: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64, when windows end that begin then (int64), ms."""
        ends = self.numbers_of(start) * self.advance_ms + (self.origin_ms + self.size_ms)
        return np.minimum(ends, LAST_TIME_MS)

    def numbers_of(self, start: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64, the numbers of windows that begin then (int64, ms)."""
        return (start - self.origin_ms) // self.advance_ms

    def last_begun(self, time_ms: int) -> int:
        """The number of the last window that begins then or before; negative: none."""
        return (time_ms - self.origin_ms) // self.advance_ms if time_ms >= 0 else -1

    def last_ended(self, time_ms: int) -> int:
        """The number of the last window that ends then or before; negative: none."""
        return (time_ms - self.size_ms - self.origin_ms) // self.advance_ms


@dataclass(frozen=True, slots=True)
class DayGrid:
    """The days of a time zone, each from one midnight to the next, however many hours that is.

    Attributes:
        zone: Its name in the tz database.
    """

    zone: str

    def __str__(self) -> str:
        return f"days of {self.zone}"

    def start_of(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64, when days begin, ms."""
        days, of = np.unique(numbers, return_inverse=True)
        starts = np.array([_day_start_ms(self.zone, day) for day in days.tolist()], dtype=np.int64)
        return starts[of]

    def end_of(self, start: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64, when days end that begin then (int64), ms."""
        return self.holding(start)[1]

    def numbers_of(self, start: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64, the numbers of days that begin then (int64, ms)."""
        return self.holding(start)[0]

    def holding(self, time_ms: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """int64, the number of the day that holds each time (int64, ms, from 1970 on), and int64, when it ends."""
        if len(time_ms) == 0:
            return time_ms, time_ms
        first, last = int(time_ms.min()) // _DAY_MS, int(time_ms.max()) // _DAY_MS  # days of UTC, of which 0 is our 1
        if last - first < _MANY_DAYS:
            numbers = np.arange(first, last + 3)
        else:
            numbers = np.unique(np.unique(time_ms // _DAY_MS)[:, np.newaxis] + np.arange(3))
        found = np.searchsorted(self.start_of(numbers), time_ms, side="right") - 1
        return numbers[found], self.start_of(numbers + 1)[found]

    def last_begun(self, time_ms: int) -> int:
        """The number of the last day that begins then or before; negative: none."""
        return int(self.holding(np.array([time_ms]))[0][0]) if time_ms >= 0 else -1

    def last_ended(self, time_ms: int) -> int:
        """The number of the last day that ends then or before; negative: none."""
        return self.last_begun(time_ms) - 1


WindowGrid = RegularGrid | DayGrid


def described_grid(grid: WindowGrid) -> dict[str, Any]:
    """A grid as plain data."""
    return asdict(grid)


def grid_of(described: Mapping[str, Any]) -> WindowGrid:
    """The inverse of `described_grid`."""
    return DayGrid(**described) if "zone" in described else RegularGrid(**described)


def zone_named(name: str) -> str:
    """The name of a time zone, if there is such a one.

    Raises:
        ConfigurationError: There is not.
    """
    try:
        return ZoneInfo(name).key
    except (LookupError, ValueError, OSError, TypeError) as error:
        step = next_to(str(name), available_timezones(), 1) or "name one of the tz database, such as Europe/Berlin"
        raise ConfigurationError(f"there is no time zone {name!r}", setting="zone", next_step=step) from error


@lru_cache(_CACHED_DAYS)
def _day_start_ms(zone: str, number: int) -> int:
    """When a day begins: at midnight, the first one if clocks are turned back over it, or when that is skipped."""
    if number > _LAST_DAY:  # which Python's dates do not have; the calendar repeats itself
        cycles = -(-(number - _LAST_DAY) // _DAYS_OF_400_YEARS)
        return _day_start_ms(zone, number - cycles * _DAYS_OF_400_YEARS) + cycles * _DAYS_OF_400_YEARS * _DAY_MS
    there, day = ZoneInfo(zone), date.fromordinal(_DAY_ZERO + max(number, 0))
    midnight = datetime(day.year, day.month, day.day, tzinfo=there)
    last, first = (round(midnight.replace(fold=fold).timestamp()) for fold in (0, 1))
    while first < last:  # only where clocks skip midnight: the day begins when they do
        middle = (first + last) // 2
        if datetime.fromtimestamp(middle, UTC).astimezone(there).date() < day:
            first = middle + 1
        else:
            last = middle
    return max(1_000 * last, 0)
