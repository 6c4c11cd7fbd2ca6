"""Windows of one day in a time zone. All other windows are in `statelib.operators.windows.definition`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from statelib.calls import KafkasNames, arguments_checked
from statelib.columns.window_grids import LONGEST_DAY_MS, DayGrid, zone_named
from statelib.columns.windowed_type import KeyWindows
from statelib.settings.durations import milliseconds

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    import numpy as np
    from numpy.typing import NDArray

    from statelib.settings.semantics import Semantics


@arguments_checked
@dataclass(frozen=True, slots=True)
class DayWindows(KafkasNames):
    """The days of a time zone, from midnight to midnight. A day has 23 or 25 hours when clocks change.

    A day closes when stream time reaches its end plus the grace period. Kafka Streams has no such windows; its examples
    call them ``DailyTimeWindows``. A windowed key's bytes hold the start only. The end follows from the zone's rules,
    so all hosts must have the same version of these.

    Attributes:
        zone: The zone's name in the tz database.
        grace_period_ms: How long after its end a day still takes out-of-order records.
    """

    zone: str
    grace_period_ms: int

    @classmethod
    def of_zone_with_no_grace(cls, zone: str) -> DayWindows:
        """Days that close at their end.

        Raises:
            ConfigurationError: There is no such zone.
        """
        return cls(zone_named(zone), 0)

    @classmethod
    def of_zone_and_grace(cls, zone: str, after_window_end: timedelta) -> DayWindows:
        """Days that take records until stream time is ``after_window_end`` past their end.

        Raises:
            ConfigurationError: There is no such zone.
        """
        return cls.of_zone_with_no_grace(zone).grace(after_window_end)

    def grace(self, after_window_end: timedelta) -> DayWindows:
        """The same windows with this grace period (KIP-328)."""
        return replace(self, grace_period_ms=milliseconds(after_window_end, "grace"))

    @property
    def size_ms(self) -> int:
        """No day is longer."""
        return LONGEST_DAY_MS

    @property
    def grid(self) -> DayGrid:
        """When they begin and end."""
        return DayGrid(self.zone)

    def end_of(self, start: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64, when days end that begin then (int64), ms."""
        return self.grid.end_of(start)

    @property
    def retention_ms(self) -> int:
        """How long after its start a day must be kept: the longest possible one and the grace period."""
        return self.size_ms + self.grace_period_ms

    def final_after_ms(self, semantics: Semantics) -> int:
        """How long after a day's end, in stream time, its result is final: a day that has closed is."""
        del semantics
        return self.grace_period_ms

    @property
    def key_suffix_words(self) -> int:
        """How many 64-bit integers follow the key's bytes in a windowed key: one, the start."""
        return 1

    @property
    def of_keys(self) -> KeyWindows:
        """What is known of the windows of a table's keys."""
        return KeyWindows("time", self.size_ms, self.grid)

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        return {"windows": "days", "zone": self.zone, "grace_period_ms": self.grace_period_ms}
