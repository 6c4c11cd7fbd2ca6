"""Durations at the API are `datetime.timedelta`; inside the engine they are whole milliseconds."""

from __future__ import annotations

from datetime import timedelta

from statelib.errors.kinds import ConfigurationError

_MILLISECOND = timedelta(milliseconds=1)


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
        raise ConfigurationError(f"a duration is a datetime.timedelta, not {duration!r}", setting=setting)
    if duration % _MILLISECOND:
        raise ConfigurationError(f"{duration} is no whole number of milliseconds", setting=setting)
    result = duration // _MILLISECOND
    if result < at_least:
        raise ConfigurationError(f"{result} ms is less than {at_least} ms", setting=setting)
    return result
