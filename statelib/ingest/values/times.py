"""Timestamps of rows: read as milliseconds since 1970 from times, dates, numbers of any unit, and text.

A number's unit is given, or follows from its size where all numbers of a sample are times from 1990 to 2100 in one
unit; what was found is always shown. Text is ISO 8601, a number, or has a format of strptime. A time without a zone
is of the zone that is given (UTC); of two times that an autumn's hour can mean it is the earlier one, and one that a
spring's hour leaves out is the next that there is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.times import A_SECOND, LAST_TIME_MS
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.job.lake_topic import TimeUnit

_FIRST_S, _LAST_S = 631_152_000, 4_102_444_800  # 1990 to 2100
_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_PYTHONS_OWN = ("%f", "%z", "%Z", "%p", "%b", "%B", "%a", "%A")
"""Of strptime's directives, those that are left to Python."""

_LENGTH_OF_DATE = len("2013-01-31")
_ZONES = ("Z", "+", "-")
_MICROSECONDS = pa.timestamp("us")
_A_DAY_US = 86_400_000_000
_ARROWS_LAST_US = 2_145_916_800_000_000  # 2038


@dataclass(frozen=True, slots=True)
class TimeRule:
    """How a field is read as a time.

    Attributes:
        unit: Of numbers; None: not known yet.
        format: Of text, for strptime; None: ISO 8601, or a number.
        timezone: Of times without one, such as ``America/New_York``.
    """

    unit: TimeUnit | None = None
    format: str | None = None
    timezone: str = "UTC"


class Times(NamedTuple):
    """Times of rows.

    Attributes:
        microseconds: int64, since 1970; 0 where there is none.
        known: bool: where there is one that a record can have.
    """

    microseconds: NDArray[np.int64]
    known: NDArray[np.bool_]


def resolved(rule: TimeRule, sample: pa.Array, field: str) -> TimeRule:
    """The rule with the unit that the values of a sample have, where they are numbers.

    Raises:
        ConfigurationError: They can be times in no unit, or in several; or they are nothing that tells times.
    """
    numbers = _numbers_of(sample)
    if numbers is None or rule.unit is not None or rule.format is not None:
        if not _tells_times(sample.type):
            step = "name a field with times (--timestamp), or text put together from several: '{date} {time}'"
            raise ConfigurationError(f"a field of type {sample.type} tells no times", field=field, next_step=step)
        return rule
    unit = _unit_of(numbers)
    if unit is None:
        shown = ", ".join(f"{number:g}" for number in numbers[:3])
        step = "say it: --timestamp-unit s, ms, us or ns; or a format of strptime: --timestamp-format %Y%m%d"
        what = f"it is not certain in which unit the numbers of a field are times, such as {shown or 'none'}"
        raise ConfigurationError(what, field=field, next_step=step)
    return replace(rule, unit=unit)


def described(rule: TimeRule, type_: pa.DataType) -> str:
    """In words, how a field of a type is read: ``seconds since 1970``."""
    if rule.unit is not None and not pa.types.is_temporal(type_):
        return f"{_NAMES[rule.unit]} since 1970"
    if rule.format is not None:
        return f"text, {rule.format} ({rule.timezone})"
    if pa.types.is_temporal(type_):
        zone = "" if pa.types.is_timestamp(type_) and type_.tz else f" ({rule.timezone})"
        return f"{type_}{zone}"
    return f"text, ISO 8601 ({rule.timezone})"


def read_times(values: pa.Array, rule: TimeRule) -> Times:
    """The times of values; not known where there is none, or none that a record can have."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_null(values.type):
        return Times(np.zeros(len(values), np.int64), np.zeros(len(values), np.bool_))
    if rule.format is not None and _is_number_type(values.type):
        values = values.cast(pa.string())  # such as 20130131
    if pa.types.is_timestamp(values.type) or pa.types.is_date(values.type):
        found = _of_temporal(values, rule)
    elif _is_text(values.type):
        found = _of_text(values.cast(pa.string()), rule)
    else:
        found = _of_numbers(values, rule)
    known = found.is_valid().to_numpy(zero_copy_only=False)
    microseconds = found.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return Times(microseconds, known & (microseconds >= 0) & (microseconds <= LAST_TIME_MS * 1000))


def _of_temporal(values: pa.Array, rule: TimeRule) -> pa.Array:
    """Microseconds since 1970; null where there is none that 64 bits hold."""
    since = _microseconds(values)
    if pa.types.is_date(values.type) or values.type.tz is None:
        return _in_zone(since, rule)
    return since


def _microseconds(values: pa.Array) -> pa.Array:
    """Times and dates as they stand there, whatever their zone; null where 64 bits do not hold them."""
    type_ = values.type
    if pa.types.is_date32(type_):
        whole, a_unit = values.cast(pa.int32()).cast(pa.int64()), _A_DAY_US
    else:
        unit = "ms" if pa.types.is_date64(type_) else type_.unit
        whole, a_unit = values.cast(pa.int64()), 1_000_000 // A_SECOND[unit]
    if not a_unit:
        return _floored(whole)
    most = LAST_TIME_MS * 1000 // a_unit
    near = pc.and_(pc.greater_equal(whole, -most), pc.less_equal(whole, most))
    return pc.multiply(pc.if_else(near, whole, pa.scalar(None, pa.int64())), a_unit)


def _floored(nanoseconds: pa.Array) -> pa.Array:
    """Microseconds of nanoseconds; the last one before 1970 is before 1970."""
    whole = nanoseconds.fill_null(0).to_numpy(zero_copy_only=False)
    return pa.array(whole // 1000, mask=nanoseconds.is_null().to_numpy(zero_copy_only=False))


def _in_zone(microseconds: pa.Array, rule: TimeRule) -> pa.Array:
    """Microseconds since 1970 of those of clocks in the rule's time zone."""
    if rule.timezone == "UTC":
        return microseconds
    earlier = _earlier_by(microseconds.fill_null(0).to_numpy(zero_copy_only=False))
    clock = pc.subtract(microseconds, earlier).cast(_MICROSECONDS)
    there = pc.assume_timezone(clock, rule.timezone, ambiguous="earliest", nonexistent="latest")
    return pc.add(there.cast(pa.int64()), earlier)


def _earlier_by(microseconds: NDArray[np.int64]) -> NDArray[np.int64]:
    """By how much a time has to be earlier for Arrow, whose summer times end in 2037.

    From then on zones do each year as they do in one before with the same days of the week.
    """
    earlier = np.zeros(len(microseconds), np.int64)
    if not len(microseconds) or microseconds.max() < _ARROWS_LAST_US:
        return earlier
    years = microseconds.view("datetime64[us]").astype("datetime64[Y]")
    alike = {_calendar(year): year for year in np.arange("2010", "2038", dtype="datetime64[Y]")}
    for year in np.unique(years[microseconds >= _ARROWS_LAST_US]):
        days = year.astype("datetime64[D]") - alike[_calendar(year)].astype("datetime64[D]")
        earlier[years == year] = int(days.astype(np.int64)) * _A_DAY_US
    return earlier


def _calendar(year: np.datetime64) -> tuple[int, int]:
    """The day of the week that a year begins with, and how many days it has."""
    first, end = (int(one.astype("datetime64[D]").astype(np.int64)) for one in (year, year + 1))
    return first % 7, end - first


def _of_numbers(values: pa.Array, rule: TimeRule) -> pa.Array:
    a_unit = 1_000_000 // A_SECOND[rule.unit or "ms"]
    if pa.types.is_integer(values.type):
        whole = values.cast(pa.int64(), safe=False)
        if not a_unit:
            return _floored(whole)
        most = LAST_TIME_MS * 1000 // a_unit
        near = pc.and_(pc.greater_equal(whole, 0), pc.less_equal(whole, most))
        return pc.multiply(pc.if_else(near, whole, pa.scalar(None, pa.int64())), a_unit)
    numbers = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):
        micro = numbers * (a_unit or 0.001)
        near = np.isfinite(micro) & (micro >= 0) & (micro <= LAST_TIME_MS * 1000.0)
    return pa.array(np.where(near, np.round(micro), 0).astype(np.int64), mask=~near)


def _of_text(text: pa.StringArray, rule: TimeRule) -> pa.Array:
    """By distinct values where Arrow cannot read them all at once: logs have few, and they repeat."""
    if rule.format is None:
        with_zone = len(text) > 0 and str(text[0].as_py() or "")[_LENGTH_OF_DATE:].rstrip("0123456789:").endswith(
            _ZONES
        )
        in_utc = pa.timestamp("us", "UTC")
        for type_ in (in_utc, _MICROSECONDS) if with_zone else (_MICROSECONDS, in_utc):
            try:
                return _of_temporal(text.cast(type_), rule)
            except pa.ArrowException:
                continue
    elif not any(directive in rule.format for directive in _PYTHONS_OWN):
        return _of_temporal(pc.strptime(text, rule.format, "us", error_is_null=True), rule)
    distinct = text.dictionary_encode()
    read = [_one(value, rule) for value in distinct.dictionary.to_pylist()]
    since = pa.array([None if one is None or one.is_clock else one.microseconds for one in read], pa.int64())
    clocks = pa.array([one.microseconds if one is not None and one.is_clock else None for one in read], pa.int64())
    return pc.coalesce(since, _in_zone(clocks, rule)).take(distinct.indices)


class _Time(NamedTuple):
    """Microseconds since 1970, or of a clock in a zone that is not said."""

    microseconds: int
    is_clock: bool


def _one(text: str, rule: TimeRule) -> _Time | None:
    try:
        if rule.format is not None:
            time = datetime.strptime(text, rule.format)  # noqa: DTZ007 - the zone follows
        elif rule.unit is not None and _is_number(text):
            number = _of_numbers(pa.array([float(text)] if "." in text else [int(text)]), rule)[0].as_py()
            return None if number is None else _Time(number, is_clock=False)
        else:
            time = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        return None
    since = (time if time.tzinfo is not None else time.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    microseconds = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return _Time(microseconds, is_clock=time.tzinfo is None)


def _numbers_of(sample: pa.Array) -> NDArray[np.float64] | None:
    """The numbers of a sample, of text those that it is; None: it is none."""
    if pa.types.is_dictionary(sample.type):
        sample = sample.dictionary_decode()
    if _is_number_type(sample.type):
        return np.asarray(sample.drop_null().cast(pa.float64(), safe=False))
    if _is_text(sample.type):
        texts = [text for text in sample.cast(pa.string()).to_pylist() if text]
        numbers = [float(text) for text in texts if _is_number(text) and len(text) > len("20130101")]
        return np.array(numbers) if numbers and len(numbers) * 2 > len(texts) else None
    return None


def _unit_of(numbers: NDArray[np.float64]) -> TimeUnit | None:
    numbers = numbers[numbers != 0]
    fitting = [
        unit
        for unit, in_a_second in A_SECOND.items()
        if len(numbers) and np.mean((numbers >= _FIRST_S * in_a_second) & (numbers < _LAST_S * in_a_second)) > 0.9  # noqa: PLR2004 - a few may be wrong
    ]
    return fitting[0] if len(fitting) == 1 else None  # type: ignore[return-value]


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).lstrip("-").isdecimal()


def _is_number_type(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_))


def _tells_times(type_: pa.DataType) -> bool:
    if pa.types.is_dictionary(type_):
        return _tells_times(type_.value_type)
    is_time = pa.types.is_timestamp(type_) or pa.types.is_date(type_)
    return bool(_is_number_type(type_) or is_time or _is_text(type_) or pa.types.is_null(type_))
