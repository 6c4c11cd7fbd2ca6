"""Verdicts without Great Expectations: of checks that no row of a table can fail.

A `Screen` finds every row that can fail one of its checks. Where it finds none, Great Expectations would pass them all,
and its verdict is known before it is imported, which takes longer than most audits.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from hindstream.spark.expectations.plain import plain
from hindstream.spark.screening.screen import screen_of
from statelib.documents.manifests import AuditCheck

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from hindstream.spark.expectations.checks import Check, Suite
    from hindstream.spark.screening.screen import Screen

_COLUMNS = "expect_table_columns_to_match_set"


@dataclass(frozen=True, slots=True)
class Decidable:
    """The checks of a table that all pass if none of its rows is suspect.

    Attributes:
        screen: Finds each row that may fail a check.
        passed: The results, if there is none.
    """

    screen: Screen
    passed: tuple[AuditCheck, ...]


def decidable(suite: Suite, schema: pa.Schema, rows: int) -> Decidable | None:
    """The checks of a suite as ones that its screen decides; None: only Great Expectations can tell.

    Args:
        suite: The checks of a table.
        schema: The table's flat columns.
        rows: How many it has.
    """
    screen, _, others = screen_of(map(_strict, suite.checks), schema)
    if not all(_is_right(check, rows) for check in others):
        return None
    if not all(_matches(check, schema) for check in suite.checks if check.type == _COLUMNS):
        return None
    return Decidable(screen, tuple(_passed(suite, check, schema, rows) for check in suite.checks))


def _strict(check: Check) -> Check:
    """A check of most rows as one of all: what passes this passes that."""
    return replace(check, kwargs={name: value for name, value in check.kwargs.items() if name != "mostly"})


def has_suspects(table: pa.Table, screen: Screen) -> bool:
    """Whether a row of a small table may fail a check."""
    if screen.unique:
        return True
    conditions = [condition.expression for condition in screen.failing]
    return bool(conditions) and table.filter(reduce(operator.or_, conditions)).num_rows > 0


def _matches(check: Check, schema: pa.Schema) -> bool:
    expected, found = set(check.kwargs["column_set"] or ()), set(schema.names)
    return expected == found or (not check.kwargs.get("exact_match", True) and bool(expected) and expected <= found)


def _is_right(check: Check, rows: int) -> bool:
    """Whether a check is of the number of rows, and passes."""
    is_right = _OF_ROW_COUNT.get(check.type)
    try:
        return is_right is not None and is_right(rows, **check.kwargs)
    except TypeError:  # a parameter that it does not know, or cannot take
        return False


def _between(
    rows: int,
    min_value: float | None = None,
    max_value: float | None = None,
    strict_min: bool = False,  # noqa: FBT001, FBT002 - Great Expectations' parameters
    strict_max: bool = False,  # noqa: FBT001, FBT002
) -> bool:
    if min_value is None and max_value is None:
        return False  # a mistake, which it tells
    is_enough = min_value is None or (rows > min_value if strict_min else rows >= min_value)
    return is_enough and (max_value is None or (rows < max_value if strict_max else rows <= max_value))


def _equal(rows: int, value: int) -> bool:
    return rows == value


_OF_ROW_COUNT: dict[str, Callable[..., bool]] = {
    "expect_table_row_count_to_be_between": _between,
    "expect_table_row_count_to_equal": _equal,
}


def _passed(suite: Suite, check: Check, schema: pa.Schema, rows: int) -> AuditCheck:
    observed: object = None
    if check.type == _COLUMNS:
        observed = [suite.names.get(name, name) for name in sorted(schema.names)]
    elif check.type in _OF_ROW_COUNT:
        observed = rows
    return AuditCheck(
        topic=suite.name,
        expectation=check.type,
        parameters=plain(dict(check.shown)),
        success=True,
        observed=observed,
        severity=check.severity,
        share=suite.share,
    )
