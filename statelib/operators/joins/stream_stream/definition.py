"""Which records of two streams are joined: the window of a stream-stream join."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from statelib.calls import KafkasNames, arguments_checked
from statelib.errors.kinds import ConfigurationError
from statelib.settings.durations import milliseconds

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

_ANY_MS = -(1 << 62)


@arguments_checked
@dataclass(frozen=True, slots=True)
class JoinWindows(KafkasNames):
    """Records with the same key join if their timestamps are close enough (Kafka's ``JoinWindows``; grace: KIP-633).

    A right record joins a left record with timestamp ``t`` if its own timestamp is between ``t - before`` and
    ``t + after``, both inclusive. One of the two may be negative: with ``before(-5 s)`` and ``after(10 s)``, right
    records join that are 5 to 10 seconds later.

    Attributes:
        before_ms: How much earlier than the left record the right record may be.
        after_ms: How much later it may be.
        grace_period_ms: How much longer than before and after a record waits for out-of-order records.
        unmatched_at_once: Whether a left or outer join emits a record without a match as soon as it arrives.
    """

    before_ms: int
    after_ms: int
    grace_period_ms: int
    unmatched_at_once: bool = False

    def __post_init__(self) -> None:
        if self.size_ms < 0:
            raise ConfigurationError(
                f"no record is both at most {self.before_ms} ms earlier and at most {self.after_ms} ms later",
                setting="join windows",
                next_step="make before and after together 0 or more",
            )

    @classmethod
    def of(cls, time_difference: timedelta) -> NoReturn:
        """Refused: Kafka's ``JoinWindows.of``, deprecated by KIP-633, silently emits unmatched records too early.

        Raises:
            ConfigurationError: Always.
        """
        del time_difference
        raise ConfigurationError(
            "JoinWindows need a grace period: how long a record waits for matches that are out of order",
            next_step="use of_time_difference_and_grace(difference, grace), or of_time_difference_with_no_grace("
            "difference); to match an application that uses of(), add emit_unmatched_at_once()",
        )

    @classmethod
    def of_time_difference_with_no_grace(cls, time_difference: timedelta) -> JoinWindows:
        """Records join if their timestamps are at most ``time_difference`` apart."""
        difference_ms = milliseconds(time_difference, "time_difference")
        return cls(difference_ms, difference_ms, 0)

    @classmethod
    def of_time_difference_and_grace(cls, time_difference: timedelta, after_window_end: timedelta) -> JoinWindows:
        """As `of_time_difference_with_no_grace`, with a grace period."""
        return cls.of_time_difference_with_no_grace(time_difference).grace(after_window_end)

    def before(self, time_difference: timedelta) -> JoinWindows:
        """The same windows, with right records at most this much earlier; negative: at least this much later.

        Raises:
            ConfigurationError: The window is empty.
        """
        return replace(self, before_ms=milliseconds(time_difference, "before", at_least=_ANY_MS))

    def after(self, time_difference: timedelta) -> JoinWindows:
        """The same windows, with right records at most this much later; negative: at least this much earlier.

        Raises:
            ConfigurationError: The window is empty.
        """
        return replace(self, after_ms=milliseconds(time_difference, "after", at_least=_ANY_MS))

    def grace(self, after_window_end: timedelta) -> JoinWindows:
        """The same windows with this grace period."""
        return replace(self, grace_period_ms=milliseconds(after_window_end, "grace"))

    def emit_unmatched_at_once(self) -> JoinWindows:
        """The same windows, but a record without a match emits its result as soon as it arrives.

        A later record still joins it, so a result without a match may be wrong. Applications that still use the
        deprecated ``JoinWindows.of`` get these results (KAFKA-10847).
        """
        return replace(self, unmatched_at_once=True)

    @property
    def size_ms(self) -> int:
        """From the earliest to the latest time of a match."""
        return self.before_ms + self.after_ms

    @property
    def retention_ms(self) -> int:
        """How long each side's records are kept: size and grace period."""
        return self.size_ms + self.grace_period_ms

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        return {
            "windows": "join",
            "before_ms": self.before_ms,
            "after_ms": self.after_ms,
            "grace_period_ms": self.grace_period_ms,
            "unmatched_at_once": self.unmatched_at_once,
        }


def retention_of(described: Mapping[str, Any]) -> int:
    """`JoinWindows.retention_ms` of windows that were described, ms."""
    retention_ms: int = sum(described[name] for name in ("before_ms", "after_ms", "grace_period_ms"))
    return retention_ms
