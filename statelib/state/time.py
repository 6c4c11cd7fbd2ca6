"""Points in time, as stores are asked for them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from statelib.errors.kinds import ConfigurationError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

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
    return (time - _EPOCH) // timedelta(milliseconds=1)
