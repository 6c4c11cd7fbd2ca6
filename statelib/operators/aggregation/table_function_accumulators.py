"""Which accumulators the aggregate functions are made of where a table is aggregated, by the type of the values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.operators.aggregation.decimals import can_add, can_average, type_of_sum
from statelib.operators.aggregation.distinct_values import TableDistinct
from statelib.operators.aggregation.function_accumulators import no_such_function
from statelib.operators.aggregation.inputs import is_real
from statelib.operators.aggregation.table_accumulators import (
    TableAccumulator,
    TableCount,
    TableDecimalSum,
    TableMoments,
    TableSum,
)

if TYPE_CHECKING:
    from statelib.operators.aggregation.sql_functions import Function

SUBTRACTABLE: frozenset[Function] = frozenset(
    {"count", "count_distinct", "sum", "mean", "var_samp", "var_pop", "stddev_samp", "stddev_pop"}
)
"""The functions that can take values back."""


def table_accumulator(function: Function, of: pa.DataType | None) -> TableAccumulator:
    """The accumulator of a function over values of type ``of``; None: over rows.

    Raises:
        ConfigurationError: There is no such function of such values.
    """
    if of is not None and pa.types.is_null(of):
        of = pa.int64()
    match function, of:
        case "count", _:
            return TableCount()
        case _, None:
            pass
        case "count_distinct", of:
            return TableDistinct(of)
        case (("sum" | "mean"), of) if pa.types.is_floating(of) or (function == "mean" and pa.types.is_integer(of)):
            return TableSum(pa.float64())
        case (("sum" | "mean"), of) if can_average(of) or (function == "sum" and can_add(of)):
            return TableDecimalSum(type_of_sum(of))
        case "sum", of if pa.types.is_integer(of):
            return TableSum(pa.int64())
        case (("var_samp" | "var_pop" | "stddev_samp" | "stddev_pop"), of) if is_real(of):
            return TableMoments()
    raise no_such_function(function, of, instead="write it with aggregate_with()")
