"""What Python functions of a user take and give, record by record, as Arrow columns."""

from __future__ import annotations

import copy
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.time_columns import far_time_text
from statelib.columns.times import A_SECOND
from statelib.columns.windowed import Windowed
from statelib.errors.kinds import ConfigurationError, InputError
from statelib.errors.user_lines import defined_at
from statelib.records.key_column import WindowedKeys

_SHOWN = 200
"""Characters of a value."""

_FIRST_S, _END_S = -62_135_596_800, 253_402_300_800
"""Python's datetimes, in seconds since 1970: from the first of the year 1 to before the first of the year 10,000."""

_UNCHANGING = frozenset({int, float, bool, str, bytes, type(None), datetime, date, time, timedelta, Decimal})
"""Types of values that nobody can change, so that they need no copy."""

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from statelib.records.key_column import KeyColumn


def items_of(column: pa.Array) -> list[Any]:
    """The values of a column as Python's, for a user's functions.

    Raises:
        InputError: One is or holds a time that Python's datetimes do not have: they end with the year 9999.
    """
    try:
        return _items(column)
    except (ValueError, OverflowError):  # pyarrow says either
        what = (
            f"Python's functions cannot be given the time {far_time_text(column)}: its datetimes end with the year 9999"
        )
        step = "leave such records out before (filter with a column expression), or set them apart: max_future"
        raise InputError(what, next_step=step) from None


def own(item: Any) -> Any:
    """A value as it is now, whatever a function does to its own later: lists, dicts and what is in them are copied.

    Values are mostly plain ones, for which `copy.deepcopy` takes twenty times as long.
    """
    kind = type(item)
    if kind is list:
        return [part if type(part) in _UNCHANGING else own(part) for part in item]
    if kind is dict:
        return {name: part if type(part) in _UNCHANGING else own(part) for name, part in item.items()}
    return item if kind in _UNCHANGING else copy.deepcopy(item)


def copier_of(kind: pa.DataType) -> Callable[[Any], Any]:
    """As `own`, for what becomes a value of an Arrow type, in half the time: of most types no value can change."""
    return _copier_of(kind) or as_it_is


def _copier_of(kind: pa.DataType) -> Callable[[Any], Any] | None:
    """None: no value of that type can change."""
    if pa.types.is_struct(kind) and not any(_copier_of(field.type) for field in kind):
        return lambda item: item.copy() if type(item) is dict else own(item)
    if pa.types.is_list(kind):
        part_of = _copier_of(kind.value_type)
        if part_of is None:
            return lambda item: item.copy() if type(item) is list else own(item)
        return lambda item: [part_of(part) for part in item] if type(item) is list else own(item)
    can_change = pa.types.is_nested(kind) or not (_is_number(kind) or pa.types.is_string(kind) or _is_time(kind))
    return own if can_change else None


def as_it_is(item: Any) -> Any:
    """The value itself: no copy of it is needed."""
    return item


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_temporal(kind))


def column_of(
    items: Sequence[Any],
    arrow_type: pa.DataType,
    *,
    who: str,
    next_step: str,
    functions: Sequence[object] = (),
    sequence_of: Callable[[int], int | None] | None = None,
) -> pa.Array:
    """Python values as a column.

    Args:
        items: The values; None is null.
        arrow_type: Of the column.
        who: Whose values they are and what was done: ``"a processor forwarded the key"``.
        next_step: For the error.
        functions: What has given them; the error says where the first of the user's own is defined.
        sequence_of: Gives the sequence of the record that one comes from, by its place; None: not known.

    Raises:
        ConfigurationError: One is not of that type; it is shown, and its own type.
    """
    try:
        return pa.array(items, arrow_type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        wrong = next((place for place, item in enumerate(items) if not _fits(item, arrow_type)), None)
        what = f"{who} what is not of type {arrow_type}: {error}"
        if wrong is not None:
            given = items[wrong]
            what = f"{who} {_shortened(repr(given))}, which is not of type {arrow_type} but {type(given).__name__}"
        told = ConfigurationError(what, next_step=next_step, **defined_at(functions))
        told.sequence = None if wrong is None or sequence_of is None else sequence_of(wrong)
        raise told from error


def python_keys(keys: KeyColumn, chosen: pa.Array | None = None) -> list[Any]:
    """Keys as Python values, windowed ones as `Windowed`; ``chosen``: the indices (int64) of some, null for none."""
    if not isinstance(keys, WindowedKeys):
        return items_of(keys.plain if chosen is None else keys.plain.take(chosen))
    rows = range(len(keys)) if chosen is None else chosen.to_pylist()
    inner, start, end = python_keys(keys.without_windows), keys.windows.start.tolist(), keys.windows.end.tolist()
    return [None if row is None or inner[row] is None else Windowed(inner[row], start[row], end[row]) for row in rows]


def _items(column: pa.Array) -> list[Any]:
    """``column.to_pylist()``, which takes three microseconds for each time, in a sixth of that."""
    kind = column.type
    if not _has_times(kind):
        return list(column.to_pylist())
    if pa.types.is_struct(kind):
        rows = list(map(dict, map(zip, repeat(kind.names), zip(*map(_items, column.flatten()), strict=True))))
        return _with_nulls(rows, column)
    if pa.types.is_list(kind):
        bounds = column.offsets.to_numpy()
        first = int(bounds[0])
        values, ends = _items(column.values.slice(first, int(bounds[-1]) - first)), (bounds - first).tolist()
        return _with_nulls([values[begin:end] for begin, end in pairwise(ends)], column)
    numbers, a_second = column.cast(pa.int64()).fill_null(0).to_numpy(), A_SECOND[kind.unit]
    if len(numbers) and not _FIRST_S * a_second <= numbers.min() <= numbers.max() < _END_S * a_second:
        return list(column.to_pylist())  # which fails
    items: list[Any] = numbers.view(f"datetime64[{kind.unit}]").astype("datetime64[us]").tolist()
    if kind.tz is not None:
        zone = pa.scalar(0, kind).as_py().tzinfo
        items = [item.replace(tzinfo=zone) for item in items]
    return _with_nulls(items, column)


def _has_times(kind: pa.DataType) -> bool:
    """Whether it is or has timestamps in UTC or without a zone, no finer than Python's."""
    if pa.types.is_struct(kind):
        return len(set(kind.names)) == kind.num_fields and any(_has_times(field.type) for field in kind)
    if pa.types.is_list(kind):
        return _has_times(kind.value_type)
    return bool(pa.types.is_timestamp(kind) and kind.unit != "ns" and kind.tz in {None, "UTC"})


def _with_nulls(items: list[Any], column: pa.Array) -> list[Any]:
    """The items, None in place of those that are null in the column."""
    if column.null_count:
        for row in np.flatnonzero(~valid_of(column)).tolist():
            items[row] = None
    return items


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _fits(item: Any, arrow_type: pa.DataType) -> bool:
    try:
        pa.array([item], arrow_type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return True
