"""Points in time, as stores are asked for them."""

from __future__ import annotations

from datetime import datetime
from typing import TypeAlias

from statelib.errors.kinds import ConfigurationError
from statelib.settings.durations import ms_since_1970

Time: TypeAlias = int | datetime
"""Milliseconds since 1970, or a `datetime` with a time zone."""


def epoch_ms(time: Time) -> int:
    """Milliseconds since 1970.

    Raises:
        ConfigurationError: A `datetime` has no time zone.
    """
    if isinstance(time, int):
        return time
    if time.tzinfo is None:
        raise ConfigurationError(f"{time} has no time zone", next_step="give milliseconds, or a datetime with one")
    return ms_since_1970(time)
