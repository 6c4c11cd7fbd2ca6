"""Which accumulators the aggregate functions are made of, by the type of the values."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from statelib.errors.kinds import ConfigurationError
from statelib.operators.aggregation.accumulators.collecting import CollectAccumulator, DistinctAccumulator
from statelib.operators.aggregation.accumulators.decimals import can_add, can_average, type_of_sum
from statelib.operators.aggregation.accumulators.hyperloglog import SketchAccumulator
from statelib.operators.aggregation.accumulators.inputs import has_numbers, is_ordered, is_real
from statelib.operators.aggregation.accumulators.kernel import running_extreme, running_float_sum, running_int_sum
from statelib.operators.aggregation.accumulators.numbers import (
    Accumulator,
    CountAccumulator,
    DecimalAccumulator,
    MomentsAccumulator,
    NumberAccumulator,
)
from statelib.operators.aggregation.accumulators.picks import PickAccumulator
from statelib.operators.aggregation.accumulators.quantiles import QuantilesAccumulator
from statelib.operators.aggregation.accumulators.top import TopAccumulator

if TYPE_CHECKING:
    from collections.abc import Callable

    from statelib.operators.aggregation.sql_functions import Aggregation, Function

    Made: TypeAlias = list[Accumulator] | None
    """None: there is no such function of such values."""


BY_ANOTHER: frozenset[Function] = frozenset({"arg_min", "arg_max", "top_n", "bottom_n"})
"""Functions that pick records by something else than the value."""


def accumulators(aggregation: Aggregation, of: pa.DataType | None, by: pa.DataType | None) -> list[Accumulator]:
    """The accumulators of a function, whose states together are the function's.

    Args:
        aggregation: The function.
        of: The type of what it is of; None: records.
        by: The type of what decides which record it picks.

    Raises:
        ConfigurationError: There is no such function of such values.
    """
    if of is None:
        return [CountAccumulator()]
    of, by = (pa.int64() if kind is None or pa.types.is_null(kind) else kind for kind in (of, by))
    function, limit = aggregation.function, aggregation.limit
    if function == "quantiles":
        made: Made = [QuantilesAccumulator(of, aggregation.at)] if is_real(of) else None
    elif limit is not None and function in {"collect_list", "collect_set"}:
        made = [CollectAccumulator(of, once=function == "collect_set", limit=limit)]
    elif limit is not None:
        made = [TopAccumulator(of, by, limit, largest=function == "top_n")] if is_ordered(by) else None
    else:
        made = _MADE[function](of, by)
    if made is None:
        raise no_such_function(function, by if function in BY_ANOTHER else of)
    return made


def no_such_function(
    function: Function,
    of: pa.DataType | None,
    instead: str = "write it with aggregate_with()",
) -> ConfigurationError:
    """The error that there is no such function of such values; ``instead``: what else can be done."""
    what = {"var": "variance"}.get(function.partition("_")[0], function.removesuffix("_samp").removesuffix("_pop"))
    return ConfigurationError(
        f"there is no {what} {'by' if function in BY_ANOTHER else 'of'} {of}",
        next_step=f"cast it to a number in a map_values(), or {instead}",
    )


def _sum(of: pa.DataType, _: pa.DataType) -> Made:
    if pa.types.is_floating(of):
        return [NumberAccumulator(pa.float64(), running_float_sum)]
    if can_add(of):
        return [DecimalAccumulator(type_of_sum(of))]
    return [NumberAccumulator(pa.int64(), running_int_sum)] if pa.types.is_integer(of) else None


def _mean(of: pa.DataType, _: pa.DataType) -> Made:
    if can_average(of):
        return [DecimalAccumulator(type_of_sum(of)), CountAccumulator()]
    if not (pa.types.is_integer(of) or pa.types.is_floating(of)):
        return None
    return [NumberAccumulator(pa.float64(), running_float_sum), CountAccumulator()]


def _extreme(of: pa.DataType, _: pa.DataType, *, largest: bool) -> Made:
    if has_numbers(of):
        return [NumberAccumulator(of, partial(running_extreme, largest))]
    return [PickAccumulator(of, "value", largest=largest, by=of)] if is_ordered(of) else None


def _moments(of: pa.DataType, _: pa.DataType) -> Made:
    return [MomentsAccumulator()] if is_real(of) else None


def _arg(of: pa.DataType, by: pa.DataType, *, largest: bool) -> Made:
    return [PickAccumulator(of, "by", largest=largest, by=by)] if is_ordered(by) else None


_MADE: dict[Function, Callable[[pa.DataType, pa.DataType], Made]] = {
    "count": lambda _of, _by: [CountAccumulator()],
    "sum": _sum,
    "min": partial(_extreme, largest=False),
    "max": partial(_extreme, largest=True),
    "mean": _mean,
    "var_samp": _moments,
    "var_pop": _moments,
    "stddev_samp": _moments,
    "stddev_pop": _moments,
    "first": lambda of, _: [PickAccumulator(of, "arrival")],
    "last": lambda of, _: [PickAccumulator(of, "arrival", later=True)],
    "first_by_time": lambda of, _: [PickAccumulator(of, "time")],
    "last_by_time": lambda of, _: [PickAccumulator(of, "time", largest=True, later=True)],
    "arg_min": partial(_arg, largest=False),
    "arg_max": partial(_arg, largest=True),
    "count_distinct": lambda of, _: [DistinctAccumulator(of)],
    "approx_count_distinct": lambda of, _: [SketchAccumulator(of)],
}
