"""Window definitions: how a stream of events is cut into windows of event time, and how long each stays open.

An operator asks a definition for plain numbers (`size_ms`, `gap_ms`, `grace_period_ms`) and runs a compiled kernel on
them; nothing here runs per record.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from statelib.calls import KafkasNames, arguments_checked
from statelib.columns.window_grids import FAR_FUTURE_MS, RegularGrid
from statelib.columns.windowed_type import SESSIONS, KeyWindows
from statelib.errors.kinds import ConfigurationError
from statelib.operators.windows.day_windows import DayWindows
from statelib.settings.durations import milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime, timedelta

    import numpy as np
    from numpy.typing import NDArray

    from statelib.settings.semantics import Semantics


@arguments_checked
@dataclass(frozen=True, slots=True)
class TimeWindows(KafkasNames):
    """Windows of fixed size: tumbling, or hopping where the advance is less than the size.

    They are aligned to the beginning of 1970 (UTC), or to an offset from it. No window begins before 1970: with an
    offset, the first one is cut off there. A window holds the timestamps from its start (inclusive) to its end
    (exclusive). It closes when stream time reaches its end plus the grace period (Kafka's ``TimeWindows``; grace:
    KIP-328, "Add Grace Period to Window Spec Builders").

    Attributes:
        size_ms: Length of a window.
        advance_ms: Distance from the start of a window to the start of the next.
        grace_period_ms: How long after its end a window still accepts out-of-order records.
        offset_ms: Shifts the start of all windows to later; negative: to earlier.
    """

    size_ms: int
    advance_ms: int
    grace_period_ms: int
    offset_ms: int = 0

    @classmethod
    def of(cls, size: timedelta) -> NoReturn:
        """Refused: Kafka's ``TimeWindows.of``, deprecated by KIP-633, silently sets a grace period of 24 hours.

        Raises:
            ConfigurationError: Always.
        """
        del size
        _refuse_without_grace("TimeWindows", "of_size_and_grace(size, grace)", "of_size_with_no_grace(size)")

    @classmethod
    def of_size_with_no_grace(cls, size: timedelta) -> TimeWindows:
        """Tumbling windows that close at their end."""
        size_ms = milliseconds(size, "size", at_least=1)
        return cls(size_ms, size_ms, 0)

    @classmethod
    def of_size_and_grace(cls, size: timedelta, after_window_end: timedelta) -> TimeWindows:
        """Tumbling windows that accept records until stream time is ``after_window_end`` past their end."""
        return replace(cls.of_size_with_no_grace(size), grace_period_ms=milliseconds(after_window_end, "grace"))

    def grace(self, after_window_end: timedelta) -> TimeWindows:
        """The same windows with this grace period (KIP-328)."""
        return replace(self, grace_period_ms=milliseconds(after_window_end, "grace"))

    def advance_by(self, advance: timedelta) -> TimeWindows:
        """The same windows, one starting every ``advance``.

        Raises:
            ConfigurationError: The advance is not positive, or is larger than the size, which would leave gaps.
        """
        advance_ms = milliseconds(advance, "advance", at_least=1)
        if advance_ms > self.size_ms:
            raise ConfigurationError(
                f"windows of {self.size_ms} ms cannot advance by {advance_ms} ms: there would be gaps",
                next_step="advance by the size or less",
            )
        return replace(self, advance_ms=advance_ms)

    def offset(self, offset: timedelta) -> TimeWindows:
        """The same windows, shifted to later (negative: earlier), such as days that begin at six o'clock.

        Kafka Streams has no such windows. For the days of a time zone see `DayWindows`.
        """
        return replace(self, offset_ms=milliseconds(offset, "offset", at_least=-FAR_FUTURE_MS))

    @property
    def grid(self) -> RegularGrid:
        """When they begin and end."""
        first_ms = self.offset_ms % self.advance_ms
        return RegularGrid(first_ms - self.advance_ms if first_ms else 0, self.advance_ms, self.size_ms)

    def end_of(self, start: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64, when windows end that begin then (int64), ms."""
        return self.grid.end_of(start)

    @property
    def retention_ms(self) -> int:
        """How long after its start a window must be kept: its size and its grace period (Kafka's default)."""
        return self.size_ms + self.grace_period_ms

    def final_after_ms(self, semantics: Semantics) -> int:
        """How long after a window's end, in stream time, its result is final: a window that has closed is."""
        del semantics
        return self.grace_period_ms

    @property
    def key_suffix_words(self) -> int:
        """How many 64-bit integers follow the key's bytes in Kafka's windowed key: one, the start."""
        return 1

    @property
    def of_keys(self) -> KeyWindows:
        """What is known of the windows of a table's keys."""
        return KeyWindows("time", self.size_ms, self.grid if self.grid.origin_ms else None)

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        return {
            "windows": "time",
            "size_ms": self.size_ms,
            "advance_ms": self.advance_ms,
            "grace_period_ms": self.grace_period_ms,
            **({"offset_ms": self.offset_ms} if self.offset_ms else {}),
        }


@arguments_checked
@dataclass(frozen=True, slots=True)
class SessionWindows(KafkasNames):
    """Sessions: records of a key that are no further apart from their neighbours than the inactivity gap.

    A session holds the timestamps from its first to its last record, both inclusive. It closes when stream time passes
    its end plus the gap plus the grace period (Kafka's ``SessionWindows``; grace: KIP-328).

    Attributes:
        gap_ms: The longest time without records inside a session.
        grace_period_ms: How much longer than the gap a session still accepts out-of-order records.
    """

    gap_ms: int
    grace_period_ms: int

    @classmethod
    def with_(cls, inactivity_gap: timedelta) -> NoReturn:
        """Refused: Kafka's ``SessionWindows.with``, deprecated by KIP-633, silently sets a grace period.

        Raises:
            ConfigurationError: Always.
        """
        del inactivity_gap
        _refuse_without_grace(
            "SessionWindows", "of_inactivity_gap_and_grace(gap, grace)", "of_inactivity_gap_with_no_grace(gap)"
        )

    @classmethod
    def of_inactivity_gap_with_no_grace(cls, inactivity_gap: timedelta) -> SessionWindows:
        """Sessions that close when stream time is more than the gap past their end."""
        return cls(milliseconds(inactivity_gap, "inactivity_gap"), 0)

    @classmethod
    def of_inactivity_gap_and_grace(cls, inactivity_gap: timedelta, after_window_end: timedelta) -> SessionWindows:
        """Sessions that accept records until stream time is the gap and ``after_window_end`` past their end."""
        without = cls.of_inactivity_gap_with_no_grace(inactivity_gap)
        return replace(without, grace_period_ms=milliseconds(after_window_end, "grace"))

    def grace(self, after_window_end: timedelta) -> SessionWindows:
        """The same windows with this grace period (KIP-328)."""
        return replace(self, grace_period_ms=milliseconds(after_window_end, "grace"))

    @property
    def retention_ms(self) -> int:
        """How long after its end a session must be kept: the gap and the grace period (Kafka's default)."""
        return self.gap_ms + self.grace_period_ms

    def seen_ms(self, retention_ms: int, semantics: Semantics) -> int:
        """How long after its end a session is visible and stored, for a requested retention."""
        if semantics != "kip":
            return retention_ms
        return max(retention_ms, 2 * self.gap_ms + self.grace_period_ms + 1)

    def final_after_ms(self, semantics: Semantics) -> int:
        """How long after a session's end, in stream time, its result is forwarded as final.

        A session takes records at end + gap + grace sharp, so it is final a millisecond later; the shipped library does
        not wait for that.
        """
        return self.gap_ms + self.grace_period_ms + (semantics == "kip")

    @property
    def key_suffix_words(self) -> int:
        """How many 64-bit integers follow the key's bytes in Kafka's windowed key: two, the end and the start."""
        return 2

    @property
    def of_keys(self) -> KeyWindows:
        """What is known of the windows of a table's keys."""
        return SESSIONS

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        return {"windows": "session", "gap_ms": self.gap_ms, "grace_period_ms": self.grace_period_ms}


@arguments_checked
@dataclass(frozen=True, slots=True)
class UnlimitedWindows(KafkasNames):
    """One window with a start and no end, which never closes (Kafka's ``UnlimitedWindows``).

    Attributes:
        origin_ms: The start of the window. Earlier records are in no window.
    """

    origin_ms: int = 0

    @classmethod
    def of(cls) -> UnlimitedWindows:
        """One window for all times."""
        return cls()

    def start_on(self, start: datetime) -> UnlimitedWindows:
        """One window for all times from ``start`` on.

        Raises:
            ConfigurationError: It has no time zone, or is before 1970.
        """
        if start.tzinfo is None:
            raise ConfigurationError("the start has no time zone", next_step="say datetime(..., tzinfo=UTC)")
        start_ms = round(start.timestamp() * 1000)
        if not 0 <= start_ms < FAR_FUTURE_MS:
            raise ConfigurationError(f"windows cannot start on {start}", next_step="start in 1970 or later")
        return UnlimitedWindows(start_ms)

    def grace(self, after_window_end: timedelta) -> NoReturn:
        """Refused, as in Kafka: a window without an end needs no grace period.

        Raises:
            ConfigurationError: Always.
        """
        del after_window_end
        raise ConfigurationError(
            "UnlimitedWindows have no end, and so no grace period", next_step="leave it out: no record is ever late"
        )

    @property
    def size_ms(self) -> int:
        """To the end of time."""
        return FAR_FUTURE_MS - self.origin_ms

    @property
    def grid(self) -> RegularGrid:
        """When it begins and ends."""
        return RegularGrid(self.origin_ms, self.size_ms, self.size_ms)

    def end_of(self, start: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64, the end of time for each start (int64), ms."""
        return self.grid.end_of(start)

    @property
    def grace_period_ms(self) -> int:
        """The window takes all records anyway."""
        return 0

    @property
    def retention_ms(self) -> int:
        """The window is kept for ever."""
        return self.size_ms

    def final_after_ms(self, semantics: Semantics) -> int:
        """How long after the window's end its result would be final."""
        del semantics
        return 0

    @property
    def key_suffix_words(self) -> int:
        """How many 64-bit integers follow the key's bytes in Kafka's windowed key: one, the start."""
        return 1

    @property
    def of_keys(self) -> KeyWindows:
        """What is known of the windows of a table's keys."""
        return KeyWindows("time", self.size_ms)

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        return {"windows": "unlimited", "start_ms": self.origin_ms}


@arguments_checked
@dataclass(frozen=True, slots=True)
class SlidingWindows(KafkasNames):
    """Windows that slide with the records: one for each distinct set of records within the time difference.

    A window ends at a record or begins right after one. It holds the timestamps from its start to its end, both
    inclusive; its end is its start plus the time difference. It closes when stream time passes its end plus the grace
    period (Kafka's ``SlidingWindows``, KIP-450; grace: KIP-328).

    Attributes:
        time_difference_ms: The largest difference between two timestamps of a window.
        grace_period_ms: How long after its end a window still accepts out-of-order records.
    """

    time_difference_ms: int
    grace_period_ms: int

    @classmethod
    def of_time_difference_with_no_grace(cls, time_difference: timedelta) -> SlidingWindows:
        """Windows that close when stream time passes their end."""
        return cls(milliseconds(time_difference, "time_difference"), 0)

    @classmethod
    def of_time_difference_and_grace(cls, time_difference: timedelta, after_window_end: timedelta) -> SlidingWindows:
        """Windows that accept records until stream time is ``after_window_end`` past their end."""
        without = cls.of_time_difference_with_no_grace(time_difference)
        return replace(without, grace_period_ms=milliseconds(after_window_end, "grace"))

    def grace(self, after_window_end: timedelta) -> SlidingWindows:
        """The same windows with this grace period (KIP-328)."""
        return replace(self, grace_period_ms=milliseconds(after_window_end, "grace"))

    def end_of(self, start: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64, when windows end that begin then (int64), ms; the end belongs to them."""
        return start + self.time_difference_ms

    @property
    def retention_ms(self) -> int:
        """How long after its start a window must be kept: twice the difference and the grace (Kafka's default)."""
        return 2 * self.time_difference_ms + self.grace_period_ms

    def seen_ms(self, retention_ms: int, semantics: Semantics) -> int:
        """How long after its start a window is visible and stored, for a requested retention."""
        if semantics != "kip":
            return retention_ms
        return max(retention_ms, 3 * self.time_difference_ms + self.grace_period_ms + 2)

    def final_after_ms(self, semantics: Semantics) -> int:
        """How long after a window's end, in stream time, its result is forwarded as final.

        A window takes records at end + grace sharp, so it is final a millisecond later; the shipped library does not
        wait for that.
        """
        return self.grace_period_ms + (semantics == "kip")

    @property
    def key_suffix_words(self) -> int:
        """How many 64-bit integers follow the key's bytes in Kafka's windowed key: one, the start."""
        return 1

    @property
    def of_keys(self) -> KeyWindows:
        """What is known of the windows of a table's keys."""
        return KeyWindows("time", self.time_difference_ms)

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        return {
            "windows": "sliding",
            "time_difference_ms": self.time_difference_ms,
            "grace_period_ms": self.grace_period_ms,
        }


AlignedWindows = TimeWindows | DayWindows | UnlimitedWindows
"""Windows that begin at the same times for all keys."""
AnyWindows = AlignedWindows | SlidingWindows | SessionWindows
"""What a grouped stream can be windowed by."""


def windows_of(described: Mapping[str, Any]) -> AnyWindows:
    """The inverse of `TimeWindows.describe` and its like; what else is described does not matter."""
    kinds: dict[str, tuple[Callable[..., AnyWindows], tuple[str, ...]]] = {
        "time": (TimeWindows, ("size_ms", "advance_ms", "grace_period_ms")),
        "days": (DayWindows, ("zone", "grace_period_ms")),
        "session": (SessionWindows, ("gap_ms", "grace_period_ms")),
        "sliding": (SlidingWindows, ("time_difference_ms", "grace_period_ms")),
        "unlimited": (UnlimitedWindows, ("start_ms",)),
    }
    kind, names = kinds[described["windows"]]
    windows = kind(*(described[name] for name in names))
    if isinstance(windows, TimeWindows):
        return replace(windows, offset_ms=described.get("offset_ms", 0))
    return windows


def _refuse_without_grace(windows: str, with_grace: str, without: str) -> NoReturn:
    raise ConfigurationError(
        f"{windows} need a grace period: how long they wait for out-of-order records, before a result is final",
        next_step=f"use {with_grace}, or {without} if no record is out of order",
    )
