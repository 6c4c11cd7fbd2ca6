"""Which parameters a check may have, by its expectation and the types of its columns.

What the engines would answer each in its own way, or not at all, is refused. What is compared with a column's values
becomes values of that column (`hindstream.spark.expectations.column_values`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pyarrow.types as pt

from hindstream.spark.expectations.column_values import (
    ParameterError,
    bounds_of,
    check_order,
    is_hex,
    value_of,
    values_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

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
    if expectation.startswith(_OF_TEXT) and not (pt.is_string(of) or is_hex(of)):
        raise ParameterError(f"asks for text, and {column} is {of}")
    if expectation in _OF_NUMBERS and not _is_number(of):
        raise ParameterError(f"asks for numbers, and {column} is {of}")
    if expectation == "expect_column_values_to_not_be_outliers" and (not _is_number(of) or pt.is_decimal(of)):
        raise ParameterError(f"asks for integers or doubles, and {column} is {of}")
    if expectation == "expect_column_quantile_values_to_be_between":
        _check_quantiles(kwargs)
    if expectation in _BOUNDED:
        return bounds_of(column, of, kwargs)
    if expectation not in _IN_SETS or kwargs.get("value_set") is None:
        return {}
    values = values_of(column, of, kwargs["value_set"], drop=expectation not in _NEEDS_ALL_VALUES)
    if expectation in _NEEDS_A_SET and not values:
        raise ParameterError(f"has a value_set of which {column}, which is {of}, can have no value")
    return {"value_set": values}


def _check_plain(kwargs: Mapping[str, Any]) -> None:
    """Parameters that mean the same whatever the column is."""
    for name in _NUMBERS & kwargs.keys():
        if not (kwargs[name] is None or isinstance(kwargs[name], Decimal) or _is_plain_number(kwargs[name])):
            raise ParameterError(f"has {name} {kwargs[name]!r}: give a number")
    if None not in (low := kwargs.get("min_value"), high := kwargs.get("max_value")):
        check_order(kwargs, low, high)
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
            None if value is None else value_of(name, "value_pairs_set", types[name], value)
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
    return "bytes" if is_hex(of) else str(of)


def _is_number(of: pa.DataType) -> bool:
    return bool(pt.is_integer(of) or pt.is_floating(of) or pt.is_decimal(of))
