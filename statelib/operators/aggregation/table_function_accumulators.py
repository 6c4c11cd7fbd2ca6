"""Which accumulators the aggregate functions are made of where a table is aggregated, by the type of the values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.operators.aggregation.accumulators.decimals import can_add, can_average, type_of_sum
from statelib.operators.aggregation.accumulators.distinct_values import TableDistinct
from statelib.operators.aggregation.accumulators.inputs import is_real
from statelib.operators.aggregation.accumulators.quantiles import TableQuantiles
from statelib.operators.aggregation.accumulators.table_numbers import (
    TableAccumulator,
    TableCount,
    TableDecimalSum,
    TableMoments,
    TableSum,
)
from statelib.operators.aggregation.function_accumulators import no_such_function

if TYPE_CHECKING:
    from statelib.operators.aggregation.sql_functions import Aggregation, Function

SUBTRACTABLE: frozenset[Function] = frozenset(
    {"count", "count_distinct", "quantiles", "sum", "mean", "var_samp", "var_pop", "stddev_samp", "stddev_pop"}
)
"""The functions that can take values back."""


def table_accumulator(aggregation: Aggregation, of: pa.DataType | None) -> TableAccumulator:
    """The accumulator of a function over values of type ``of``; None: over rows.

    Raises:
        ConfigurationError: There is no such function of such values.
    """
    if of is not None and pa.types.is_null(of):
        of = pa.int64()
    function = aggregation.function
    made: TableAccumulator | None = None
    match function, of:
        case "count", _:
            made = TableCount()
        case "count_distinct", pa.DataType():
            made = TableDistinct(of)
        case "quantiles", pa.DataType() if is_real(of):
            made = TableQuantiles(of, aggregation.at)
        case (("sum" | "mean"), pa.DataType()) if pa.types.is_floating(of) or (
            function == "mean" and pa.types.is_integer(of)
        ):
            made = TableSum(pa.float64())
        case (("sum" | "mean"), pa.DataType()) if can_average(of) or (function == "sum" and can_add(of)):
            made = TableDecimalSum(type_of_sum(of))
        case "sum", pa.DataType() if pa.types.is_integer(of):
            made = TableSum(pa.int64())
        case (("var_samp" | "var_pop" | "stddev_samp" | "stddev_pop"), pa.DataType()) if is_real(of):
            made = TableMoments()
    if made is None:
        raise no_such_function(function, of, instead="write it with aggregate_with()")
    return made
