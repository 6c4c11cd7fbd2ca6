"""Where the slices of a backfill end."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo, available_timezones

from statelib.errors.did_you_mean import next_to
from statelib.errors.kinds import ConfigurationError
from statelib.settings.durations import LAST_INSTANT_MS

Every = Literal["hour", "day", "week", "month"]

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_STEPS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}


def time_zone(name: str) -> ZoneInfo:
    """The time zone of a name such as ``America/New_York``.

    Raises:
        ConfigurationError: There is none.
    """
    known = available_timezones()
    if name in known:
        return ZoneInfo(name)
    step = next_to(name, known, 1) or "name one of the tz database, such as America/New_York"
    raise ConfigurationError(f"there is no time zone {name!r}", setting="--timezone", next_step=step)


def time_of(option: str, text: str | datetime, zone: ZoneInfo | None) -> datetime:
    """The time that an option of the command line, or an argument, gives.

    Args:
        option: The option's name, for errors.
        text: A time, or ISO 8601; without an offset it is a time of ``zone``.
        zone: The zone that slices are of, and the result is in; None: that of each time's own offset.

    Raises:
        ConfigurationError: It is no time, or does not say of which time zone.
    """
    try:
        time = text if isinstance(text, datetime) else datetime.fromisoformat(text)
    except ValueError as error:
        step = "write it like 2013-01-01T00:00Z"
        raise ConfigurationError(f"{text!r} is no time", setting=f"--{option}", next_step=step) from error
    if zone is None:
        return time
    return time.replace(tzinfo=zone) if time.tzinfo is None else time.astimezone(zone)


def time_ms(option: str, text: str) -> int:
    """The time that an option gives, in milliseconds since 1970.

    Args:
        option: The option's name, for errors.
        text: ISO 8601 with an offset, a date for its beginning in UTC, or a number of milliseconds since 1970.

    Raises:
        ConfigurationError: It is no time, later than any record's, or does not say of which time zone.
    """
    if text.isdecimal():
        if int(text) > LAST_INSTANT_MS:
            what = f"no record has a time as late as {text} ms"
            raise ConfigurationError(what, setting=f"--{option}", next_step="write it like 2013-01-01T00:00Z")
        return int(text)
    time = time_of(option, text, ZoneInfo("UTC") if _DATE.fullmatch(text) else None)
    if time.tzinfo is None:
        step = "write it like 2013-06-01T12:00Z, or give milliseconds"
        raise ConfigurationError("the time has no time zone", setting=f"--{option}", next_step=step)
    return _ms(time)


def slice_ends_ms(start: datetime, end: datetime, every: Every) -> list[int]:
    """The ends, in ms, of the slices that cover ``start`` to ``end``; the last one ends at ``end``.

    Days, weeks and months are those of the time zone of ``start``: a day of 25 hours is one slice.

    Args:
        start: Where the first slice begins; with a time zone.
        end: Where the last one ends; with a time zone.
        every: The length of a slice. Months begin on the day of ``start``, the last one of a shorter month.

    Raises:
        ConfigurationError: A time lacks its zone, or ``end`` is not after ``start``.
    """
    for name, time in (("from", start), ("to", end)):
        if time.tzinfo is None:
            step = "write it like 2013-01-01T00:00Z, or name its zone: --timezone America/New_York"
            raise ConfigurationError("the time has no time zone", setting=f"--{name}", next_step=step)
    if _ms(end) <= _ms(start):  # datetimes of one zone compare by the clock on the wall, which strikes some hours twice
        raise ConfigurationError("the backfill ends before it begins", setting="--to", next_step="give a later time")
    ends: list[int] = []
    count = 1
    while (after := _after_ms(start, every, count)) < _ms(end):
        if not ends or after > ends[-1]:  # else it is of a day that the zone's calendar skips
            ends.append(after)
        count += 1
    return [*ends, _ms(end)]


def _after_ms(start: datetime, every: Every, count: int) -> int:
    """When ``start`` plus ``count`` slices is, ms; beyond what a `datetime` can be no backfill ends."""
    try:
        return _ms(_after(start, every, count))
    except (OverflowError, ValueError):
        return _ms(datetime.max.replace(tzinfo=UTC))


def _after(start: datetime, every: Every, count: int) -> datetime:
    """``start`` plus ``count`` slices."""
    if every == "hour":  # hours are physical time
        return datetime.fromtimestamp(start.timestamp() + 3600 * count, start.tzinfo)
    if every != "month":
        return start + count * _STEPS[every]
    years, month = divmod(start.month - 1 + count, 12)
    day = min(start.day, monthrange(start.year + years, month + 1)[1])  # a month may be shorter
    return start.replace(year=start.year + years, month=month + 1, day=day)


def _ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)
