"""Which rows of a large table may fail its checks: so few that Great Expectations looks at those alone.

A check that asks one thing of every row (not null, between, in a set, ...) fails on the rows that a filter finds, and
uniqueness on rows that are there twice. A `Screen` is both in one, made from a table's checks; every row that can fail
one of them goes through it, and hardly any other. The verdict stays with Great Expectations: it runs the checks as
they were declared, over the rows that went through, and says the same of them as of the whole table.

Checks of any other kind (means, counts, conditions, SQL, ``mostly``) need the whole table.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from hindstream.spark.expectations.flat_tables import PARTITION, is_hex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from hindstream.spark.expectations.checks import Check


@dataclass(frozen=True, slots=True)
class Condition:
    """Rows fail that meet ``expression``, on ``columns``.

    ``is_bounded``: if a row meets it then the least value of its one column does, the greatest, a missing one or NaN.
    ``is_of_presence``: and of values that are neither missing nor NaN any one does.
    """

    expression: pc.Expression
    columns: tuple[str, ...]
    is_bounded: bool
    is_of_presence: bool


@dataclass(frozen=True, slots=True)
class Unique:
    """Rows fail that have the same values in ``columns`` as another row.

    ``left_out`` are rows that miss ``any`` of the values or ``all`` of them; with ``never`` every row counts.
    """

    columns: tuple[str, ...]
    left_out: str

    @property
    def is_within_partition(self) -> bool:
        """Whether rows of different partitions differ anyway."""
        return PARTITION.name in self.columns

    def counted(self) -> pc.Expression | None:
        """The rows that count; None: all."""
        if self.left_out == "never":
            return None
        present = [~_missing(column) for column in self.columns]
        return reduce(operator.or_ if self.left_out == "all" else operator.and_, present)


@dataclass(frozen=True, slots=True)
class Screen:
    """What to look for in each row, and over all of them.

    Attributes:
        failing: What rows meet that may fail a check by themselves.
        unique: Columns in which no two rows may agree.
    """

    failing: tuple[Condition, ...]
    unique: tuple[Unique, ...]


def screen_of(checks: Iterable[Check], schema: pa.Schema) -> tuple[Screen, list[Check], list[Check]]:
    """The screen for all checks that one can be made for.

    Args:
        checks: Of one table.
        schema: The table's flat columns.

    Returns:
        The screen, the checks that it is for, and those that need the whole table.
    """
    nothing = pa.table([pa.nulls(1, of) for of in schema.types], schema)
    failing: list[Condition] = []
    unique: list[Unique] = []
    screened: list[Check] = []
    whole: list[Check] = []
    for check in checks:
        looks_for = _looks_for(check, nothing)
        if looks_for is None:
            whole.append(check)
            continue
        screened.append(check)
        if isinstance(looks_for, Unique):
            unique.append(looks_for)
        else:
            kind, columns = _KINDS[check.type], tuple(_columns_of(check))
            failing += [Condition(found, columns, kind in _BOUNDED, kind in _OF_PRESENCE) for found in looks_for]
    return Screen(tuple(failing), tuple(dict.fromkeys(unique))), screened, whole


def _looks_for(check: Check, nothing: pa.Table) -> list[pc.Expression] | Unique | None:
    """Conditions of which a failing row meets one, or columns that must not agree; None: only the whole table tells."""
    kind = _KINDS.get(check.type)
    if kind is None:
        return None
    kwargs = {name: value for name, value in check.kwargs.items() if name != "mostly" or value != 1}
    try:
        looks_for = kind(**_with_types(kwargs, nothing.schema))
        types = [nothing.schema.field(column).type for column in _columns_of(check)]
        if kind in _PAIRS and len(set(types)) > 1:
            looks_for = kind(**kwargs, compared=_common(types))
        for condition in () if isinstance(looks_for, Unique) else looks_for:
            nothing.filter(condition)
    except (TypeError, ValueError, KeyError, OverflowError, pa.ArrowException):
        # A parameter, a type or a column that it cannot take.
        return None
    if kind in _COMPARING and any(is_hex(column_type) for column_type in types):
        return None  # Great Expectations sees hexadecimal text there
    return looks_for


def _with_types(kwargs: Mapping[str, Any], schema: pa.Schema) -> dict[str, Any]:
    """Parameters that are compared with a column's values as values of its type, which Arrow compares as they are."""
    result = dict(kwargs)
    for name in kwargs.keys() & {"min_value", "max_value"}:
        if kwargs[name] is not None:
            result[name] = pa.scalar(kwargs[name], schema.field(kwargs["column"]).type)
    if kwargs.get("value_set") is not None:
        of, values = schema.field(kwargs["column"]).type, list(kwargs["value_set"])
        if pa.types.is_floating(of) and 0.0 in values:
            values += [0.0, -0.0]  # Arrow's sets tell one from the other
        result["value_set"] = pa.array(values, of)
    return result


def _columns_of(check: Check) -> list[str]:
    """The columns of a frame that the check names."""
    named = [value for name, value in check.kwargs.items() if name.startswith("column") and name != "column_set"]
    return [column for value in named for column in ([value] if isinstance(value, str) else value)]


def _missing(column: str) -> pc.Expression:
    """pandas, on which the checks run, has NaN for null."""
    return pc.field(column).is_null(nan_is_null=True)


def _columns_match_set(column_set: Any, exact_match: bool = True) -> list[pc.Expression]:  # noqa: ARG001, FBT001, FBT002
    return []


def _not_null(column: str) -> list[pc.Expression]:
    return [_missing(column)]


def _null(column: str) -> list[pc.Expression]:
    return [~_missing(column)]


def _in_set(column: str, value_set: Any) -> list[pc.Expression]:
    return [~_missing(column) & ~pc.field(column).isin(value_set)]


def _not_in_set(column: str, value_set: Any) -> list[pc.Expression]:
    return [pc.field(column).isin(value_set)]


def _between(
    column: str,
    min_value: Any = None,
    max_value: Any = None,
    strict_min: bool = False,  # noqa: FBT001, FBT002 - Great Expectations' parameters
    strict_max: bool = False,  # noqa: FBT001, FBT002
) -> list[pc.Expression]:
    field = pc.field(column)
    below = None if min_value is None else (field <= min_value if strict_min else field < min_value)
    above = None if max_value is None else (field >= max_value if strict_max else field > max_value)
    return [condition for condition in (below, above) if condition is not None]


def _pair_equal(
    column_A: str,  # noqa: N803 - Great Expectations' names
    column_B: str,  # noqa: N803
    ignore_row_if: str = "both_values_are_missing",
    compared: pa.DataType | None = None,
) -> list[pc.Expression]:
    return [_as(column_A, compared) != _as(column_B, compared), *_missing_in_pair(column_A, column_B, ignore_row_if)]


def _pair_greater(
    column_A: str,  # noqa: N803
    column_B: str,  # noqa: N803
    or_equal: bool = False,  # noqa: FBT001, FBT002
    ignore_row_if: str = "both_values_are_missing",
    compared: pa.DataType | None = None,
) -> list[pc.Expression]:
    a, b = _as(column_A, compared), _as(column_B, compared)
    return [a < b if or_equal else a <= b, *_missing_in_pair(column_A, column_B, ignore_row_if)]


def _as(column: str, compared: pa.DataType | None) -> pc.Expression:
    """A column in the type in which it is compared with another; Arrow's own choice refuses integers over 2**53."""
    return pc.field(column) if compared is None else pc.field(column).cast(compared, safe=False)


def _common(types: Sequence[pa.DataType]) -> pa.DataType | None:
    """The type in which different columns of a pair are compared; None: Arrow finds it."""
    if any(map(pa.types.is_floating, types)):
        return pa.float64()
    if any(map(pa.types.is_decimal, types)):
        return pa.decimal256(76, max(getattr(of, "scale", 0) for of in types))
    return pa.timestamp("us", "UTC") if all(map(pa.types.is_timestamp, types)) else None


def _missing_in_pair(a: str, b: str, ignore_row_if: str) -> list[pc.Expression]:
    """The pairs that fail because a value is missing: nothing is equal to it, or greater."""
    if ignore_row_if == "either_value_is_missing":
        return []
    if ignore_row_if == "both_values_are_missing":
        return [_missing(a) != _missing(b)]
    return [_missing(a) | _missing(b)]


def _unique(column: str) -> Unique:
    return Unique((column,), "all")


_LEFT_OUT = {"all_values_are_missing": "all", "any_value_is_missing": "any", "never": "never"}


def _compound_unique(column_list: Any, ignore_row_if: str = "all_values_are_missing") -> Unique:
    return Unique(tuple(column_list), _LEFT_OUT[ignore_row_if])


_KINDS: dict[str, Callable[..., list[pc.Expression] | Unique]] = {
    "expect_table_columns_to_match_set": _columns_match_set,
    "expect_column_values_to_not_be_null": _not_null,
    "expect_column_values_to_be_null": _null,
    "expect_column_values_to_be_in_set": _in_set,
    "expect_column_values_to_not_be_in_set": _not_in_set,
    "expect_column_values_to_be_between": _between,
    "expect_column_pair_values_to_be_equal": _pair_equal,
    "expect_column_pair_values_a_to_be_greater_than_b": _pair_greater,
    "expect_column_values_to_be_unique": _unique,
    "expect_compound_columns_to_be_unique": _compound_unique,
}
_OF_PRESENCE = (_not_null, _null)
_BOUNDED = (*_OF_PRESENCE, _between)
_PAIRS = (_pair_equal, _pair_greater)
_COMPARING = (_in_set, _not_in_set, _between, _pair_equal, _pair_greater)
