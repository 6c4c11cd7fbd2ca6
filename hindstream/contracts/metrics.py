"""The standard's library of metrics as expectations.

================  ==================================================================================================
metric            what can be said
================  ==================================================================================================
nullValues        none, or at most (less than) so many percent
missingValues     none
invalidValues     none, or at most (less than) so many percent of the values that are there: a set or a pattern
duplicateValues   none: of a property, or of several together
rowCount          any bounds, of a slice
================  ==================================================================================================
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Said = tuple[str, dict[str, Any]]

_OPERATORS = (
    "mustBe",
    "mustNotBe",
    "mustBeGreaterThan",
    "mustBeGreaterOrEqualTo",
    "mustBeLessThan",
    "mustBeLessOrEqualTo",
    "mustBeBetween",
    "mustNotBeBetween",
)
_ROWS = "expect_table_row_count_to_be_between"


class NotExpressibleError(Exception):
    """A rule of a contract that no expectation says; the text is the reason."""


def of_metric(rule: Any, column: str | None, columns: Mapping[str, str]) -> Iterator[Said]:
    """The expectations of a rule of the library, as types and parameters.

    Args:
        rule: Of the standard's own model.
        column: The archive's, of the property that the rule is about; None: it is about all.
        columns: The archive's by the names in the contract.

    Raises:
        NotExpressibleError: None says it.
    """
    metric, arguments = rule.metric or rule.rule, rule.arguments or {}
    operators = {name: value for name in _OPERATORS if (value := getattr(rule, name)) is not None}
    if not operators:
        raise NotExpressibleError("it has no operator, such as mustBe")
    if metric == "rowCount":
        yield _row_count(operators)
    elif metric == "duplicateValues":
        yield _unique(column, arguments, columns, _none(operators, rule.unit))
    elif column is None:
        raise NotExpressibleError(
            f"{metric} is a metric of properties" if metric in _OF_COLUMNS else f"{metric} is unknown"
        )
    elif metric == "nullValues":
        yield from _not_null(column, operators, rule.unit)
    elif metric == "missingValues":
        yield from _not_missing(column, arguments, _none(operators, rule.unit))
    elif metric == "invalidValues":
        yield from _valid(column, arguments, operators, rule.unit)
    else:
        raise NotExpressibleError(f"{metric} is none of the standard's metrics")


_OF_COLUMNS = ("nullValues", "missingValues", "invalidValues")


def _none(operators: Mapping[str, Any], unit: str | None) -> bool:
    """Whether there must be none; of rows, less than one is none."""
    return operators in ({"mustBe": 0}, {"mustBeLessOrEqualTo": 0}) or (
        unit != "percent" and operators == {"mustBeLessThan": 1}
    )


def _row_count(operators: Mapping[str, Any]) -> Said:
    if set(operators) == {"mustBe"}:
        return "expect_table_row_count_to_equal", {"value": operators["mustBe"]}
    kwargs: dict[str, Any] = {}
    for name, value in operators.items():
        if name == "mustBeBetween":  # the standard: "the equivalent to mustBeGreaterThan and mustBeLessThan"
            kwargs |= {"min_value": value[0], "max_value": value[1], "strict_min": True, "strict_max": True}
        elif name in {"mustBeGreaterThan", "mustBeGreaterOrEqualTo"}:
            kwargs |= {"min_value": value} | ({"strict_min": True} if name == "mustBeGreaterThan" else {})
        elif name in {"mustBeLessThan", "mustBeLessOrEqualTo"}:
            kwargs |= {"max_value": value} | ({"strict_max": True} if name == "mustBeLessThan" else {})
        else:
            raise NotExpressibleError(f"no expectation says {name} of a number of rows")
    return _ROWS, kwargs


def _unique(
    column: str | None,
    arguments: Mapping[str, Any],
    columns: Mapping[str, str],
    is_none: bool,  # noqa: FBT001
) -> Said:
    if not is_none:
        raise NotExpressibleError("values are unique or not: only mustBe 0 can be said of duplicateValues")
    if column is not None:
        return "expect_column_values_to_be_unique", {"column": column}
    named = [columns.get(name, name) for name in arguments.get("properties") or ()]
    if not named:
        raise NotExpressibleError("it names no properties")
    if len(named) == 1:
        return "expect_column_values_to_be_unique", {"column": named[0]}
    return "expect_compound_columns_to_be_unique", {"column_list": named}


def _not_null(column: str, operators: Mapping[str, Any], unit: str | None) -> Iterator[Said]:
    yield "expect_column_values_to_not_be_null", {"column": column, **_mostly(operators, unit)}


def _not_missing(column: str, arguments: Mapping[str, Any], is_none: bool) -> Iterator[Said]:  # noqa: FBT001
    missing = arguments.get("missingValues")
    if not missing:
        raise NotExpressibleError("it does not say which values are missing")
    if not is_none:
        raise NotExpressibleError("only mustBe 0 can be said of missingValues; say more of nullValues or invalidValues")
    if None in missing:
        yield "expect_column_values_to_not_be_null", {"column": column}
    if values := [value for value in missing if value is not None]:
        yield "expect_column_values_to_not_be_in_set", {"column": column, "value_set": values}


def _valid(column: str, arguments: Mapping[str, Any], operators: Mapping[str, Any], unit: str | None) -> Iterator[Said]:
    mostly = _mostly(operators, unit)
    known = {"validValues", "pattern"} & {name for name, value in arguments.items() if value is not None}
    if not known or (mostly and len(known) > 1):
        why = (
            "it says neither validValues nor a pattern"
            if not known
            else "a share of a set and a pattern cannot be said"
        )
        raise NotExpressibleError(why)
    if "validValues" in known:
        yield "expect_column_values_to_be_in_set", {"column": column, "value_set": arguments["validValues"], **mostly}
    if "pattern" in known:
        yield "expect_column_values_to_match_regex", {"column": column, "regex": arguments["pattern"], **mostly}


def _mostly(operators: Mapping[str, Any], unit: str | None) -> dict[str, float]:
    """The parameter of that name; none where all have to be right. Less than so many wrong are a little more right."""
    if _none(operators, unit):
        return {}
    if unit == "percent" and set(operators) == {"mustBeLessOrEqualTo"}:
        return {"mostly": _rest(operators["mustBeLessOrEqualTo"])}
    if unit == "percent" and set(operators) == {"mustBeLessThan"} and operators["mustBeLessThan"] > 0:
        return {"mostly": math.nextafter(_rest(operators["mustBeLessThan"]), 1)}
    if unit == "percent":
        raise NotExpressibleError(f"no expectation says {', '.join(operators)} of a share: say mustBeLessOrEqualTo")
    raise NotExpressibleError("a number of rows is not the same in each slice: give it in percent, or as mustBe 0")


def _rest(percent: float) -> float:
    """What is left of the whole, as a fraction; 1 percent leaves 0.99, and not 0.9900000000000001."""
    if not 0 <= percent <= 100:  # noqa: PLR2004
        raise NotExpressibleError(f"{percent} is no share in percent")
    return float(1 - Decimal(str(percent)) / 100)


def percent_of(mostly: float) -> float:
    """The percent that may be wrong where ``mostly`` are right; the opposite of what a rule is read as."""
    rest = (1 - Decimal(str(mostly))) * 100
    return int(rest) if rest == int(rest) else float(rest)
