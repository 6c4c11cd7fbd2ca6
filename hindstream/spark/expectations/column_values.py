"""Parameters of checks as values of the columns that they are about, so that every engine compares the same.

Great Expectations hands a bound to pandas, Spark or Arrow, and each of them has its own rules for a number that is not
of the column's type: doubles for integers, decimals beside doubles, text taken for a number. So a bound becomes a value
that the column can have: the least, or the greatest, that passes just the same rows. A value of a set becomes one of
the column's, and is left out where the column cannot have it.

==================  ==========================================  =====================================
column              a bound or a value may be                   and becomes
==================  ==========================================  =====================================
integers            a number                                    an int
decimals            a number, or text such as ``"1.10"``        a Decimal with the column's scale
doubles, floats     a number                                    the nearest that the column can have
timestamps          a datetime, a date or ISO 8601              a datetime in UTC; without a zone, UTC
dates               the same                                    a date
strings             a string                                    the same
bytes               bytes, or hexadecimal text                  hexadecimal text, as the frame has it
booleans            (in sets only) true or false                the same
==================  ==========================================  =====================================
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

if TYPE_CHECKING:
    from collections.abc import Mapping

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}
"""Of a unit of time; Python knows no shorter time than a microsecond."""
_FLOATS: dict[pa.DataType, type[np.floating[Any]]] = {
    pa.float16(): np.float16,
    pa.float32(): np.float32,
    pa.float64(): np.float64,
}
_BITS = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}


class ParameterError(ValueError):
    """A parameter does not fit the column that it is about; says so in words that follow the expectation's name."""


def values_of(column: str, of: pa.DataType, values: Any, *, drop: bool) -> list[Any]:
    """Those of a set that the column can have; all if they are not to be dropped."""
    if isinstance(values, (str, bytes)):
        raise ParameterError(f"has a value_set that is no list: {values!r}")
    fitting: dict[Any, None] = {}
    for value in values:
        if value is None:
            continue  # rows without a value are never asked
        exact = value_of(column, "value_set", of, value)
        if exact is not None:
            fitting[exact] = None
        elif not drop:
            raise ParameterError(f"wants {value!r} among the values of {column}, which is {of} and cannot have it")
    return list(fitting)


def value_of(column: str, name: str, of: pa.DataType, value: Any) -> Any:
    """The same as a value of the column; None: the column cannot have it."""
    if pt.is_boolean(of):
        if isinstance(value, bool):
            return value
        raise _misfit(column, name, of, value, "true or false")
    if not _is_discrete(of):
        return _other(column, name, of, value)
    units = _units(column, name, of, value)
    least, greatest = _range(of)
    return _of_units(of, int(units)) if units.denominator == 1 and least <= units <= greatest else None


def bounds_of(column: str, of: pa.DataType, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """``min_value``, ``max_value`` and whether they are strict, so that the same rows pass."""
    lower, upper = kwargs.get("min_value"), kwargs.get("max_value")
    if pt.is_boolean(of):
        raise ParameterError(f"has bounds, and {column} is {of}: name a value_set")
    if not _is_discrete(of):
        low, high = (
            None if bound is None else _other(column, name, of, bound)
            for name, bound in (("min_value", lower), ("max_value", upper))
        )
        check_order(kwargs, low, high)
        return {name: bound for name, bound in (("min_value", low), ("max_value", high)) if bound is not None}
    least, greatest = _range(of)
    found: dict[str, Any] = {}
    first, last = least, greatest
    low, high = (
        None if bound is None else _units(column, name, of, bound)
        for name, bound in (("min_value", lower), ("max_value", upper))
    )
    check_order(kwargs, low, high)
    if low is not None:
        first = max(least, math.floor(low) + 1 if kwargs.get("strict_min") else math.ceil(low))
    if high is not None:
        last = min(greatest, math.ceil(high) - 1 if kwargs.get("strict_max") else math.floor(high))
    if first > last:  # no value passes
        value = _of_units(of, min(max(first, least), greatest))
        return {"min_value": value, "max_value": value, "strict_min": True, "strict_max": True}
    if low is not None:
        found |= {"min_value": _of_units(of, first), "strict_min": False}
    if high is not None:
        found |= {"max_value": _of_units(of, last), "strict_max": False}
    return found


def check_order(kwargs: Mapping[str, Any], low: Any, high: Any) -> None:
    """Looks whether the one bound is above the other, where there are two.

    Raises:
        ParameterError: It is.
    """
    if low is not None and high is not None and low > high:
        raise ParameterError(f"has a min_value above its max_value: {kwargs['min_value']!r} > {kwargs['max_value']!r}")


def _is_discrete(of: pa.DataType) -> bool:
    """Whether values are multiples of a unit: then a bound between two of them is moved to one."""
    return bool(pt.is_signed_integer(of) or pt.is_decimal(of) or pt.is_timestamp(of) or pt.is_date(of))


def _range(of: pa.DataType) -> tuple[int, int]:
    """The least value of a type and the greatest, in units; of times as far as Python's go."""
    if of in _BITS:
        return -(1 << (_BITS[of] - 1)), (1 << (_BITS[of] - 1)) - 1
    if pt.is_decimal(of):
        return 1 - 10**of.precision, 10**of.precision - 1
    years = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    ends = [(end - _EPOCH) // timedelta(microseconds=1) for end in years]
    unit = _unit(of)
    return -(-ends[0] // unit), ends[1] // unit


def _unit(of: pa.DataType) -> int:
    """Microseconds in a unit of a type of times."""
    return _MICROSECONDS[of.unit] if pt.is_timestamp(of) else 86_400_000_000


def _units(column: str, name: str, of: pa.DataType, value: Any) -> Fraction:
    """A bound or value in units of the column: of its last decimal place, its unit of time, days."""
    if pt.is_timestamp(of) or pt.is_date(of):
        time = _time(column, name, of, value)
        return Fraction((time - _EPOCH) // timedelta(microseconds=1), _unit(of))
    if pt.is_decimal(of) and isinstance(value, str):
        try:
            value = Decimal(value)
        except InvalidOperation:
            raise _misfit(column, name, of, value, "a number") from None
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)) or value != value:  # noqa: PLR0124 - NaN
        raise _misfit(column, name, of, value, "a number")
    if value in (math.inf, -math.inf):  # beyond whatever the column can have
        least, greatest = _range(of)
        return Fraction(greatest + 1 if value > 0 else least - 1)
    exact = Fraction(repr(value)) if isinstance(value, float) else Fraction(value)  # 1.1 is what was written
    return exact * 10 ** (of.scale if pt.is_decimal(of) else 0)


def _of_units(of: pa.DataType, units: int) -> Any:
    if pt.is_decimal(of):
        with localcontext(prec=100):
            return Decimal(units).scaleb(-of.scale)
    if pt.is_timestamp(of) or pt.is_date(of):
        time = _EPOCH + timedelta(microseconds=units * _unit(of))
        return time if pt.is_timestamp(of) else time.date()
    return units


def _time(column: str, name: str, of: pa.DataType, value: Any) -> datetime:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise _misfit(column, name, of, value, "a time in ISO 8601") from None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if not isinstance(value, datetime):
        raise _misfit(column, name, of, value, "a datetime, a date or a time in ISO 8601")
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _other(column: str, name: str, of: pa.DataType, value: Any) -> Any:
    """A value for a column whose values are no multiples of a unit."""
    if pt.is_floating(of):
        if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)) or value != value:  # noqa: PLR0124
            raise _misfit(column, name, of, value, "a number")
        try:
            near = float(value)
        except OverflowError:
            near = math.inf if value > 0 else -math.inf
        with np.errstate(over="ignore"):  # infinite, in a column of fewer bits
            return float(_FLOATS[of](near)) + 0.0  # not -0.0, which some sets tell from 0.0
    if pt.is_string(of):
        if not isinstance(value, str):
            raise _misfit(column, name, of, value, "a string")
    elif is_hex(of):
        if not isinstance(value, (str, bytes)):
            raise _misfit(column, name, of, value, "bytes or hexadecimal text")
        return value.hex().upper() if isinstance(value, bytes) else value.upper()
    return value


def _misfit(column: str, name: str, of: pa.DataType, value: Any, wanted: str) -> ParameterError:
    return ParameterError(f"has {name} {value!r}, and {column} is {of}: give {wanted}")


def is_hex(of: pa.DataType) -> bool:
    """Whether the frame has the column as hexadecimal text."""
    return bool(pt.is_binary(of) or pt.is_fixed_size_binary(of))
