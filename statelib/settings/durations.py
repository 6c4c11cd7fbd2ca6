"""Durations at the API are `datetime.timedelta`; inside the engine they are whole milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from statelib.errors.kinds import ConfigurationError

MILLISECOND = timedelta(milliseconds=1)

LAST_INSTANT_MS = (2**63 - 1) // 1000
"""The last time that a setting may name: no record has a later one (`statelib.columns.times`)."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def ms_since_1970(time: datetime) -> int:
    """Whole milliseconds since 1970 of a time that has a time zone."""
    return (time - _EPOCH) // MILLISECOND


def milliseconds(duration: timedelta, setting: str, *, at_least: int = 0) -> int:
    """A duration in milliseconds.

    Args:
        duration: A whole number of milliseconds.
        setting: What the duration is for, named in the error.
        at_least: The smallest value that makes sense, in milliseconds.

    Raises:
        ConfigurationError: The duration is no `timedelta`, has microseconds or is too short.
    """
    if not isinstance(duration, timedelta):
        step = "write timedelta(seconds=1)"
        raise ConfigurationError(
            f"a duration is a datetime.timedelta, not {duration!r}", setting=setting, next_step=step
        )
    if duration % MILLISECOND:
        what = f"{duration} is no whole number of milliseconds"
        raise ConfigurationError(what, setting=setting, next_step="leave its microseconds out")
    result = duration // MILLISECOND
    if result < at_least:
        what = f"{result} ms is less than {at_least} ms"
        raise ConfigurationError(what, setting=setting, next_step=f"give {at_least} ms or more")
    return result
