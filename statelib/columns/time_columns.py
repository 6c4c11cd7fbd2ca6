"""Columns of times: which of them no topic can hold, and their values as Python's, whatever the year."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import is_any_list
from statelib.columns.lists import parents_of
from statelib.columns.times import A_SECOND, FIRST_TIME_MS, LAST_TIME_MS, instant_text, unit_hint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

_COARSE = ("s", "ms")
"""The units in which 64 bits can say more than in microseconds, which topics at rest have."""

_FIRST_YEAR_S, _END_OF_YEARS_S = -62_135_596_800, 253_402_300_800
"""Python's years: from 1 to before 10000."""

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - of times without zone


def out_of_reach(array: pa.Array) -> NDArray[np.bool_] | None:
    """bool[n]: which values are or hold a time that no topic can hold (`LAST_TIME_MS`); None: none is."""
    if not _holds_times(array.type, _COARSE) or len(array) == 0:
        return None
    bad = np.zeros(len(array), np.bool_)
    for rows, times in _times(array, np.arange(len(array))):
        if times.type.unit in _COARSE:
            numbers = times.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
            last = LAST_TIME_MS // (1_000 // A_SECOND[times.type.unit])
            bad[rows[(numbers > last) | (numbers < -last)]] = True
    return bad if bad.any() else None


def out_of_reach_reason(array: pa.Array, row: int) -> str:
    """Why a value of `out_of_reach` is: its first time that no topic can hold."""
    for _, times in _times(array.slice(row, 1), np.zeros(1, np.int64)):
        if times.type.unit not in _COARSE:
            continue
        for number in times.cast(pa.int64()).to_pylist():
            time_ms = None if number is None else number * (1_000 // A_SECOND[times.type.unit])
            if time_ms is not None and not FIRST_TIME_MS <= time_ms <= LAST_TIME_MS:
                return time_problem(time_ms)
    raise ValueError("all times are such as a topic can hold")


def time_problem(time_ms: int) -> str:
    """What is said of a time that no topic can hold."""
    shown = instant_text(time_ms) if -(1 << 63) <= time_ms < 1 << 63 else f"{time_ms} ms"
    return f"the time {time_ms} ms is out of reach: {shown}{unit_hint(time_ms)}"


def python_values(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """As ``to_pylist``; times of years that Python's datetimes do not have (1 to 9999) are texts in ISO 8601."""
    try:
        return list(array.to_pylist())
    except (ValueError, OverflowError):  # pyarrow says either
        chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
        return [value for chunk in chunks for value in _values(chunk)]


def time_texts(times: pa.Array, form: str) -> pa.Array:
    """Times as texts, as ``strftime`` forms them; of years that it does not know, in ISO 8601."""
    numbers = times.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    a_second = A_SECOND[times.type.unit]
    far = (numbers < _FIRST_YEAR_S * a_second) | (numbers >= _END_OF_YEARS_S * a_second)
    texts = pc.strftime(pc.if_else(far, pa.scalar(None, times.type), times) if far.any() else times, form)
    if not far.any():
        return texts
    rows = np.flatnonzero(far)
    return pc.replace_with_mask(texts, far, pa.array(_values(times.take(pa.array(rows))), pa.string()))


def far_time_text(array: pa.Array) -> str:
    """The first time in a column that Python's datetimes do not have; it has one."""
    times = (time for _, column in _times(array, np.arange(len(array))) for time in _values(column))
    return next(time for time in times if isinstance(time, str))


def _holds_times(type_: pa.DataType, units: tuple[str, ...]) -> bool:
    if isinstance(type_, pa.ExtensionType):
        type_ = type_.storage_type
    if pa.types.is_timestamp(type_):
        return type_.unit in units
    return any(_holds_times(type_.field(n).type, units) for n in range(type_.num_fields))


def _times(array: pa.Array, rows: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], pa.Array]]:
    """All arrays of times in ``array``, each with int64: of which of ``rows`` its values are."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    type_ = array.type
    if pa.types.is_timestamp(type_):
        yield rows, array
    elif pa.types.is_struct(type_):
        for column in array.flatten():
            yield from _times(column, rows)
    elif pa.types.is_map(type_):
        yield from _times(array.cast(pa.list_(pa.struct([type_.key_field, type_.item_field]))), rows)
    elif is_any_list(type_):
        yield from _times(array.flatten(), rows[parents_of(array)])


def _values(array: pa.Array) -> list[Any]:
    """One value at a time, as deep as there are times."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    type_ = array.type
    if pa.types.is_timestamp(type_):
        return [_time(number, type_) for number in array.cast(pa.int64()).to_pylist()]
    if pa.types.is_date(type_) or pa.types.is_duration(type_):
        return _days_or_durations(array)
    if pa.types.is_struct(type_):
        columns = [_values(column) for column in array.flatten()]
        names = [field.name for field in type_]
        valid = array.is_valid().to_pylist()
        return [
            dict(zip(names, items, strict=True)) if there else None
            for there, *items in zip(valid, *columns, strict=True)
        ]
    if pa.types.is_map(type_):
        entries = _values(array.cast(pa.list_(pa.struct([type_.key_field, type_.item_field]))))
        return [None if pairs is None else [tuple(pair.values()) for pair in pairs] for pairs in entries]
    if is_any_list(type_):
        return [None if not item.is_valid else _values(item.values) for item in array]
    return list(array.to_pylist())


def _days_or_durations(array: pa.Array) -> list[Any]:
    """One value at a time; days beyond Python's years and durations beyond its own are texts."""
    try:
        return list(array.to_pylist())
    except (ValueError, OverflowError):
        if pa.types.is_duration(array.type):
            unit = array.type.unit
            return [None if number is None else f"{number} {unit}" for number in array.cast(pa.int64()).to_pylist()]
        days = _values(array.cast(pa.timestamp("s")))
        return [day if day is None or isinstance(day, str) else day.date() for day in (_day(day) for day in days)]


def _day(day: Any) -> Any:
    return day.partition("T")[0] if isinstance(day, str) else day


def _time(number: int | None, type_: pa.DataType) -> Any:
    if number is None:
        return None
    a_second = A_SECOND[type_.unit]
    if type_.unit == "ns":
        return pa.scalar(number, type_).as_py()
    seconds, rest = divmod(number, a_second)
    micros = rest * (1_000_000 // a_second)
    try:
        time = _EPOCH + timedelta(seconds=seconds, microseconds=micros)
    except OverflowError:
        return _far_text(seconds, micros)
    if type_.tz is None:
        return time
    return pa.scalar(number, type_).as_py() if type_.tz != "UTC" else time.replace(tzinfo=UTC)


def _far_text(seconds: int, micros: int) -> str:
    whole = seconds * 1_000 + micros // 1_000
    if not -(1 << 63) <= whole < 1 << 63:
        return f"{seconds} s"
    text = instant_text(whole)
    return f"{text[:-1]}{micros % 1_000:03d}Z" if micros % 1_000 else text
