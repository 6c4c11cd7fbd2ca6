"""What each aggregate function stores, and the results that its states stand for.

A state is one column or several. The only one is called as the result is, or ``value``; of several, each has a suffix:
``mean.sum``, ``mean.count``. Names and types are what stores hold: they do not change.

=============== ===================================================================================================
function        stored
=============== ===================================================================================================
count           int64
sum             int64 of integers; float64 of floats; of decimals their type with 38 digits
min, max        the type of the values
mean            sum float64, or of decimals their type with 38 digits; count int64
var_*, stddev_* count int64, mean float64, m2 float64: the sum of the squared differences from the mean
first, last     the type of the values
*_by_time       value, of the type of the values; time int64, its timestamp in ms
top_n, bottom_n value, a list of values; by binary: the list of what decides
count_distinct  count int64; values binary, null of none: `accumulators.collecting`
approx_...      count int64; sketch binary, null of none: `accumulators.hyperloglog`
quantiles       value, a list of float64; sketch binary, null of none: `accumulators.quantiles`
collect_*       a list of values
arg_min/arg_max value, of the type of the values; by binary (`accumulators.tagged_bytes`)
=============== ===================================================================================================

Aggregations of tables store beside a sum how many values there are: ``total.sum``, ``total.count``. Then it is known
when there are none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from statelib.operators.aggregation.accumulators.decimals import means, type_of_averaged_sum

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from statelib.operators.aggregation.sql_functions import Aggregation, Function

    Functions = Sequence[tuple[str | None, Aggregation]]
    """Names of the results' fields, None for a result that is the value itself; and the functions."""

_MOMENTS = ("count", "mean", "m2")
_SUFFIXES: dict[Function, tuple[str, ...]] = {
    "mean": ("sum", "count"),
    "var_samp": _MOMENTS,
    "var_pop": _MOMENTS,
    "stddev_samp": _MOMENTS,
    "stddev_pop": _MOMENTS,
    "first_by_time": ("value", "time"),
    "last_by_time": ("value", "time"),
    "arg_min": ("value", "by"),
    "arg_max": ("value", "by"),
    "top_n": ("value", "by"),
    "bottom_n": ("value", "by"),
    "count_distinct": ("count", "values"),
    "approx_count_distinct": ("count", "sketch"),
    "quantiles": ("value", "sketch"),
}
_TYPES = {
    "sum": pa.float64(),
    "count": pa.int64(),
    "mean": pa.float64(),
    "m2": pa.float64(),
    "time": pa.int64(),
    "by": pa.binary(),
    "values": pa.binary(),
    "sketch": pa.binary(),
}
"""By suffix; a ``value`` has the type of the result."""


def names_of(name: str | None, function: Aggregation) -> list[str]:
    """The names of a function's stored columns."""
    return _names(name, _SUFFIXES.get(function.function, ()))


def table_names_of(name: str | None, function: Aggregation) -> list[str]:
    """As `names_of`, of an aggregation of a table."""
    return _names(name, _table_suffixes(function))


def stored_columns(functions: Functions, result: pa.DataType, *, of_table: bool = False) -> pa.Schema:
    """The columns of a stored state, given the type of a result; ``of_table``: of an aggregation of a table."""
    fields = []
    for name, function in functions:
        of = result if name is None else result.field(name).type
        suffixes = _table_suffixes(function) if of_table else _SUFFIXES.get(function.function, ())
        types = [_type(function.function, suffix, of) for suffix in suffixes or ("value",)]
        fields += [pa.field(*column) for column in zip(_names(name, suffixes), types, strict=True)]
    return pa.schema(fields)


def by_function(functions: Functions, columns: Iterable[pa.Array]) -> Iterator[list[pa.Array]]:
    """The states of each function, of the stored columns of all."""
    rest = iter(columns)
    for name, function in functions:
        yield [next(rest) for _ in names_of(name, function)]


def shown(functions: Functions, states: Iterable[Sequence[pa.Array]]) -> pa.Array:
    """The results of ``functions``, given the state of each. Columns that do not show in the result may be left out."""
    columns = [_result(function.function, state) for (_, function), state in zip(functions, states, strict=True)]
    return _as_one(functions, columns)


def table_shown(functions: Functions, states: Iterable[Sequence[pa.Array]]) -> pa.Array:
    """As `shown`, of an aggregation of a table."""
    columns = []
    for (_, function), state in zip(functions, states, strict=True):
        if function.function in {"sum", "mean"}:
            total, count = state
            total = pc.if_else(pc.equal(count, 0), None, total)
            columns.append(total if function.function == "sum" else _result("mean", [total, count]))
        else:
            columns.append(_result(function.function, state))
    return _as_one(functions, columns)


def results_of(functions: Functions, stored: pa.Array, *, of_table: bool = False) -> pa.Array:
    """The results that stored values stand for: a lone column is kept as it is, several as a struct."""
    names = [(table_names_of if of_table else names_of)(name, function) for name, function in functions]
    columns = iter([stored] if names == [["value"]] else stored.flatten())
    states = [[next(columns) for _ in some] for some in names]
    return (table_shown if of_table else shown)(functions, states)


def _names(name: str | None, suffixes: Sequence[str]) -> list[str]:
    return [f"{name or 'value'}.{suffix}" for suffix in suffixes] or [name or "value"]


def _table_suffixes(function: Aggregation) -> Sequence[str]:
    return ("sum", "count") if function.function == "sum" else _SUFFIXES.get(function.function, ())


def _type(function: Function, suffix: str, result: pa.DataType) -> pa.DataType:
    if suffix == "sum" and (function == "sum" or pa.types.is_decimal(result)):
        return result if function == "sum" else type_of_averaged_sum(result)
    return _TYPES.get(suffix, result)


def _as_one(functions: Functions, columns: list[pa.Array]) -> pa.Array:
    names = [name for name, _ in functions]
    return columns[0] if names == [None] else pa.StructArray.from_arrays(columns, names)


def _result(function: Function, state: Sequence[pa.Array]) -> pa.Array:
    match function:
        case "mean" if pa.types.is_decimal(state[0].type):
            return means(*state)
        case "mean":
            return pc.divide(*state)
        case "var_samp" | "stddev_samp":
            return _spread(function, pc.subtract(state[0], 1), state[2])
        case "var_pop" | "stddev_pop":
            return _spread(function, state[0], state[2])
        case _:
            return state[0]


def _spread(function: Function, of: pa.Array, m2: pa.Array) -> pa.Array:
    """Variance or deviation; null where there are too few values for one."""
    variance = pc.divide(m2, pc.if_else(pc.greater(of, 0), of, None))
    return variance if function.startswith("var") else pc.sqrt(variance)
