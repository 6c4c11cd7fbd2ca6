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
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation, localcontext
from fractions import Fraction
from itertools import combinations
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

_BOUNDED = {
    "expect_column_values_to_be_between",
    "expect_column_max_to_be_between",
    "expect_column_min_to_be_between",
}
_NUMBERS = {"min_value", "max_value", "value", "threshold", "multiplier"}
"""Parameters of expectations whose bounds are not values of the column."""

_IN_SETS = {
    "expect_column_values_to_be_in_set",
    "expect_column_values_to_not_be_in_set",
    "expect_column_distinct_values_to_be_in_set",
    "expect_column_distinct_values_to_contain_set",
    "expect_column_distinct_values_to_equal_set",
    "expect_column_most_common_value_to_be_in_set",
}
_NEEDS_ALL_VALUES = {"expect_column_distinct_values_to_contain_set", "expect_column_distinct_values_to_equal_set"}
_NEEDS_A_SET = {"expect_column_distinct_values_to_be_in_set", "expect_column_most_common_value_to_be_in_set"}
_COMPARES_SEVERAL = {
    "expect_multicolumn_values_to_be_equal",
    "expect_select_column_values_to_be_unique_within_record",
    "expect_multicolumn_sum_to_equal",
}
_COMPARES_PAIRS = {"expect_column_pair_values_to_be_equal", "expect_column_pair_values_a_to_be_greater_than_b"}
_OF_TEXT = (
    "expect_column_values_to_match_",
    "expect_column_values_to_not_match_",
    "expect_column_value_lengths_",
    "expect_column_values_to_be_json_parseable",
    "expect_column_values_to_be_dateutil_parseable",
)
_OF_NUMBERS = {
    "expect_column_sum_to_be_between",
    "expect_column_mean_to_be_between",
    "expect_column_median_to_be_between",
    "expect_column_stdev_to_be_between",
    "expect_column_quantile_values_to_be_between",
    "expect_column_value_z_scores_to_be_less_than",
}
CONDITION_PARSER = "great_expectations"
"""That of ``row_condition`` where none is named."""

_DIGITS = 38
"""Of a decimal, at most."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}
"""Of a unit of time; Python knows no shorter time than a microsecond."""
_BITS = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}


class ParameterError(ValueError):
    """A parameter does not fit the column that it is about; says so in words that follow the expectation's name."""


def typed(expectation: str, kwargs: Mapping[str, Any], types: Mapping[str, pa.DataType]) -> dict[str, Any]:
    """The parameters of a check, those that are compared with values of a column as values of its type.

    Args:
        expectation: Great Expectations' name.
        kwargs: Its parameters.
        types: By the name that the parameters use, the type of each column.

    Raises:
        ParameterError: A parameter, or the check as such, does not fit the type of its column.
    """
    column = kwargs.get("column")
    if expectation not in _BOUNDED:
        _check_plain(kwargs)
    if expectation in _COMPARES_PAIRS:
        _check_pair([kwargs.get("column_A"), kwargs.get("column_B")], types)
    elif expectation in _COMPARES_SEVERAL:
        _check_several(expectation, kwargs, types)
    elif expectation == "expect_column_pair_values_to_be_in_set":
        return {**kwargs, "value_pairs_set": _pairs(kwargs, types)}
    if not isinstance(column, str) or column not in types:
        return dict(kwargs)
    return {**kwargs, **_of_column(expectation, kwargs, column, types[column])}


def _of_column(expectation: str, kwargs: Mapping[str, Any], column: str, of: pa.DataType) -> dict[str, Any]:
    """Parameters that are compared with the values of one column."""
    if expectation.startswith(_OF_TEXT) and not (pt.is_string(of) or _is_hex(of)):
        raise ParameterError(f"asks for text, and {column} is {of}")
    if expectation in _OF_NUMBERS and not _is_number(of):
        raise ParameterError(f"asks for numbers, and {column} is {of}")
    if expectation == "expect_column_values_to_not_be_outliers" and (not _is_number(of) or pt.is_decimal(of)):
        raise ParameterError(f"asks for integers or doubles, and {column} is {of}")
    if expectation == "expect_column_quantile_values_to_be_between":
        _check_quantiles(kwargs)
    if expectation in _BOUNDED:
        return _bounds(column, of, kwargs)
    if expectation not in _IN_SETS or kwargs.get("value_set") is None:
        return {}
    values = _values(column, of, kwargs["value_set"], drop=expectation not in _NEEDS_ALL_VALUES)
    if expectation in _NEEDS_A_SET and not values:
        raise ParameterError(f"has a value_set of which {column}, which is {of}, can have no value")
    return {"value_set": values}


def _check_plain(kwargs: Mapping[str, Any]) -> None:
    """Parameters that mean the same whatever the column is."""
    for name in _NUMBERS & kwargs.keys():
        if not (kwargs[name] is None or isinstance(kwargs[name], Decimal) or _is_plain_number(kwargs[name])):
            raise ParameterError(f"has {name} {kwargs[name]!r}: give a number")
    if None not in (low := kwargs.get("min_value"), high := kwargs.get("max_value")):
        _check_order(kwargs, low, high)
    for name in ("regex", "regex_list"):
        for regex in [kwargs[name]] if isinstance(kwargs.get(name), str) else kwargs.get(name) or ():
            try:
                re.compile(regex)
            except (re.error, TypeError) as error:
                raise ParameterError(f"has a regular expression that cannot be read, {regex!r}: {error}") from None


def _check_pair(names: Sequence[Any], types: Mapping[str, pa.DataType]) -> None:
    """Two columns are compared as what both are; decimals and doubles have no such thing that keeps both exact."""
    found = [types[name] for name in names if isinstance(name, str) and name in types]
    if len(found) < len(names):
        return
    places = [(of.precision, of.scale) if pt.is_decimal(of) else (19, 0) for of in found]
    digits = max(precision - scale for precision, scale in places) + max(scale for _, scale in places)
    are_of_one_kind = len({_kind(of) for of in found}) == 1 or _are_doubles(*found)
    if not are_of_one_kind or (any(map(pt.is_decimal, found)) and digits > _DIGITS):
        what = "one kind" if not are_of_one_kind else f"numbers that {_DIGITS} digits can hold"
        raise ParameterError(f"compares two columns of {what}, and {names[0]} is {found[0]}, {names[1]} is {found[1]}")


def _check_several(expectation: str, kwargs: Mapping[str, Any], types: Mapping[str, pa.DataType]) -> None:
    """All columns can be compared with each other, or added up."""
    names = kwargs.get("column_list")
    if isinstance(names, str) or not isinstance(names, Sequence) or len(names) < 2:  # noqa: PLR2004
        raise ParameterError(f"asks for a column_list of two columns or more, and it is {names!r}")
    for pair in combinations(names, 2):
        _check_pair(pair, types)
    if expectation != "expect_multicolumn_sum_to_equal":
        return
    for name in names:
        if name in types and not _is_number(types[name]):
            raise ParameterError(f"asks for numbers, and {name} is {types[name]}")
    total = kwargs.get("sum_total")
    if isinstance(total, bool) or not isinstance(total, (int, float, Decimal)) or total != total:  # noqa: PLR0124 - NaN
        raise ParameterError(f"has sum_total {total!r}: give a number")


def _check_quantiles(kwargs: Mapping[str, Any]) -> None:
    """Great Expectations looks at them when it runs."""
    ranges = kwargs.get("quantile_ranges")
    wanted = 'give {"quantiles": [0.5, ...], "value_ranges": [[least, greatest], ...]}, as many of one as of the other'
    if not isinstance(ranges, Mapping) or ranges.keys() != {"quantiles", "value_ranges"}:
        raise ParameterError(f"has quantile_ranges {ranges!r}: {wanted}")
    quantiles, bounds = ranges["quantiles"], ranges["value_ranges"]
    if len(quantiles) != len(bounds) or not all(_is_fraction(quantile) for quantile in quantiles):
        raise ParameterError(f"has quantile_ranges {ranges!r}: {wanted}")
    for pair in bounds:
        given = [bound for bound in pair if bound is not None]
        if len(pair) != 2 or not all(_is_plain_number(bound) for bound in given) or sorted(given) != given:  # noqa: PLR2004
            raise ParameterError(f"has a value range {pair!r}: give the least and the greatest, None for no bound")
    error = kwargs.get("allow_relative_error", False)
    if error is not False and not _is_fraction(error):
        raise ParameterError(f"has allow_relative_error {error!r}: give False, or a number from 0 to 1")


def _is_plain_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value  # noqa: PLR0124 - NaN


def _is_fraction(value: Any) -> bool:
    return _is_plain_number(value) and 0 <= value <= 1


def _pairs(kwargs: Mapping[str, Any], types: Mapping[str, pa.DataType]) -> Any:
    """Those pairs of a set that two columns can have, as their values."""
    pairs = kwargs.get("value_pairs_set")
    names: list[Any] = [kwargs.get("column_A"), kwargs.get("column_B")]
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise ParameterError(f"has a value_pairs_set that is no list: {pairs!r}")
    if not all(isinstance(name, str) and name in types for name in names):
        return pairs
    fitting: dict[tuple[Any, ...], None] = {}
    for pair in pairs:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:  # noqa: PLR2004
            raise ParameterError(f"has {pair!r} in its value_pairs_set: give pairs of values")
        exact = tuple(
            None if value is None else _value(name, "value_pairs_set", types[name], value)
            for name, value in zip(names, pair, strict=True)
        )
        if not any(made is None and given is not None for made, given in zip(exact, pair, strict=True)):
            fitting[exact] = None
    if not fitting:
        raise ParameterError(f"has a value_pairs_set of which {names[0]} and {names[1]} can have no pair")
    return [list(pair) for pair in fitting]


def _are_doubles(a: pa.DataType, b: pa.DataType) -> bool:
    """Whether an integer and a double are compared, as doubles."""
    return all(pt.is_integer(of) or pt.is_floating(of) for of in (a, b))


def _kind(of: pa.DataType) -> str:
    if pt.is_integer(of) or pt.is_decimal(of):
        return "exact number"
    if pt.is_floating(of):
        return "floating-point number"
    if pt.is_timestamp(of):
        return "time"
    return "bytes" if _is_hex(of) else str(of)


def _is_number(of: pa.DataType) -> bool:
    return bool(pt.is_integer(of) or pt.is_floating(of) or pt.is_decimal(of))


def _is_hex(of: pa.DataType) -> bool:
    return bool(pt.is_binary(of) or pt.is_fixed_size_binary(of))


def _values(column: str, of: pa.DataType, values: Any, *, drop: bool) -> list[Any]:
    """Those of a set that the column can have; all if they are not to be dropped."""
    if isinstance(values, (str, bytes)):
        raise ParameterError(f"has a value_set that is no list: {values!r}")
    fitting: dict[Any, None] = {}
    for value in values:
        if value is None:
            continue  # rows without a value are never asked
        exact = _value(column, "value_set", of, value)
        if exact is not None:
            fitting[exact] = None
        elif not drop:
            raise ParameterError(f"wants {value!r} among the values of {column}, which is {of} and cannot have it")
    return list(fitting)


def _value(column: str, name: str, of: pa.DataType, value: Any) -> Any:
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


def _bounds(column: str, of: pa.DataType, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """``min_value``, ``max_value`` and whether they are strict, so that the same rows pass."""
    lower, upper = kwargs.get("min_value"), kwargs.get("max_value")
    if pt.is_boolean(of):
        raise ParameterError(f"has bounds, and {column} is {of}: name a value_set")
    if not _is_discrete(of):
        low, high = (
            None if bound is None else _other(column, name, of, bound)
            for name, bound in (("min_value", lower), ("max_value", upper))
        )
        _check_order(kwargs, low, high)
        return {name: bound for name, bound in (("min_value", low), ("max_value", high)) if bound is not None}
    least, greatest = _range(of)
    found: dict[str, Any] = {}
    first, last = least, greatest
    low, high = (
        None if bound is None else _units(column, name, of, bound)
        for name, bound in (("min_value", lower), ("max_value", upper))
    )
    _check_order(kwargs, low, high)
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


def _check_order(kwargs: Mapping[str, Any], low: Any, high: Any) -> None:
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
        return pa.scalar(near, of).as_py() + 0.0  # not -0.0, which some sets tell from 0.0
    if pt.is_string(of):
        if not isinstance(value, str):
            raise _misfit(column, name, of, value, "a string")
    elif _is_hex(of):
        if not isinstance(value, (str, bytes)):
            raise _misfit(column, name, of, value, "bytes or hexadecimal text")
        return value.hex().upper() if isinstance(value, bytes) else value.upper()
    return value


def _misfit(column: str, name: str, of: pa.DataType, value: Any, wanted: str) -> ParameterError:
    return ParameterError(f"has {name} {value!r}, and {column} is {of}: give {wanted}")
