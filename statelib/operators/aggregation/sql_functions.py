"""Aggregate functions of SQL, such as `count`, `sum_` and `max_`.

They are columnar: a compiled kernel processes the updates. Each takes a mapper of the records
(`statelib.operators.mappers.mapping`) and, as in SQL, ignores nulls. If all values are null, the result is null, and
a count is 0. ``count()`` without a mapper counts records, including those with a null value, as Kafka Streams does.

With ``where=``, a mapper that gives booleans, a function sees only records for which that is true (SQL's ``FILTER``); a
null counts as false. Both mappers are asked about every record.

=================== ============================ ============================================
function            of                           gives
=================== ============================ ============================================
count               anything                     int64
count_distinct      anything                     int64
approx_count_distinct anything                   int64
quantiles           integers, floats, decimals   a list of float64
sum_                integers                     int64; an overflow is an error
sum_                floats                       float64
sum_                decimals                     decimal128(38, s); an overflow is an error
min_, max_          what has an order            the same type; NaN is above all numbers
mean_               integers, floats             float64
mean_               decimals                     decimal128(38, s + 4), rounded half up
variance, stddev    integers, floats, decimals   float64
first, last         anything                     the same type
arg_min, arg_max    anything, by what has an     the same type
                    order
collect_list,       anything                     a list of the same type
collect_set
top_n               anything, by what has an     a list of the same type
                    order
=================== ============================ ============================================

`statelib.operators.aggregation.function_states` says what each stores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from statelib.calls import function_checked
from statelib.errors.kinds import ConfigurationError
from statelib.errors.user_lines import place_of_call
from statelib.operators.aggregation.accumulators.collecting import MOST as MOST_COLLECTED
from statelib.operators.aggregation.accumulators.top import MOST
from statelib.operators.mappers.fields import columns_for
from statelib.operators.mappers.mapping import evaluate, holds, mapper

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from statelib.operators.mappers.mapping import Mapper, MapperLike
    from statelib.records.batch import Batch


Function: TypeAlias = Literal[
    "count", "sum", "min", "max", "mean", "var_samp", "var_pop", "stddev_samp", "stddev_pop",
    "first", "last", "first_by_time", "last_by_time", "arg_min", "arg_max",
    "count_distinct", "approx_count_distinct", "quantiles", "collect_list", "collect_set", "top_n", "bottom_n",
]  # fmt: skip
"""As a store's settings have it."""


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One aggregate function of SQL over a mapper.

    Attributes:
        function: Which.
        of: What it is of; None: records.
        where: Gives booleans; only records for which it is true are seen. None: all are.
        by: Decides which records `arg_min`, `arg_max` and `top_n` pick.
        limit: How many records `top_n` picks, or values are collected.
        at: Which quantiles, 0 to 1.
    """

    function: Function
    of: Mapper | None = None
    where: Mapper | None = None
    by: Mapper | None = None
    limit: int | None = None
    at: tuple[float, ...] = ()

    @property
    def mappers(self) -> tuple[Mapper, ...]:
        """All that look at records."""
        return tuple(of for of in (self.of, self.where, self.by) if of is not None)

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        more = {name: of.describe() for name, of in (("where", self.where), ("by", self.by)) if of is not None}
        limit: dict[str, object] = {} if self.limit is None else {"limit": self.limit}
        limit |= {"at": list(self.at)} if self.at else {}
        return {"function": self.function, "of": None if self.of is None else self.of.describe(), **more, **limit}

    @property
    def is_count(self) -> bool:
        """Whether it counts: of nothing the result is 0, and not null."""
        return self.function in {"count", "count_distinct", "approx_count_distinct"}

    @property
    def called(self) -> str:
        """As the function is called in an aggregation of a stream."""
        if self.function in {"min", "max"}:
            return f"{self.function}(of)"
        arguments = {"first_by_time": "of, by_time=True", "last_by_time": "of, by_time=True"}
        by = {"arg_min": "of, by", "arg_max": "of, by", "top_n": "of, by, n", "bottom_n": "of, by, n, smallest=True"}
        name = self.function.removesuffix("_by_time").replace("bottom_n", "top_n")
        return f'aggregate({{"name": {name}({ {**arguments, **by}.get(self.function, "of") })}})'

    def inputs(
        self, records: pa.RecordBatch, node: str, sequence: NDArray[np.int64]
    ) -> tuple[pa.Array | None, pa.Array | None]:
        """What is aggregated of records, and what decides which of them is picked (None: nothing beside).

        Null for records that are not seen; None: each record counts. ``node`` and ``sequence`` as of `evaluate`, which
        says what is raised.
        """
        of, by = (None if one is None else evaluate(one, records, node, sequence) for one in (self.of, self.by))
        if self.where is None:
            return of, by
        seen = pa.array(holds(self.where, records, node, sequence))
        of = pa.repeat(True, records.num_rows) if of is None else of
        of, by = (
            None if column is None else pc.if_else(seen, column, pa.scalar(None, column.type)) for column in (of, by)
        )
        return of, by


Columns: TypeAlias = "tuple[pa.Array | None, pa.Array | None]"
"""What a function is of, and what decides which record it picks: see `Aggregation.inputs`."""


def inputs_of(functions: Sequence[Aggregation], batch: Batch, node: str) -> list[Columns]:
    """What several functions see of the same records."""
    records = columns_for([of for function in functions for of in function.mappers], batch)
    return [function.inputs(records, node, batch.sequence) for function in functions]


@function_checked
def count(of: MapperLike | None = None, *, where: MapperLike | None = None) -> Aggregation:
    """The number of records, or of those for which ``of`` is not null."""
    return _aggregation("count", of, where)


@function_checked
def count_distinct(of: MapperLike, *, where: MapperLike | None = None) -> Aggregation:
    """The number of distinct values of ``of``, exact: all of them are kept."""
    return _aggregation("count_distinct", of, where)


@function_checked
def approx_count_distinct(of: MapperLike, *, where: MapperLike | None = None) -> Aggregation:
    """About how many distinct values of ``of`` there are, in 4 KiB: a HyperLogLog sketch of Apache DataSketches.

    Up to 384 values it is exact, but for a chance of 1 in 1,000 that two look alike. Beyond, the standard error is
    1.6%.
    """
    return _aggregation("approx_count_distinct", of, where)


@function_checked
def quantiles(of: MapperLike, at: Sequence[float], *, where: MapperLike | None = None) -> Aggregation:
    """About the values of ``of`` at some quantiles: ``quantiles("ms", [0.5, 0.99])`` gives median and 99th percentile.

    Of n numbers in ascending order, the quantile q is the one at place floor(q * (n - 1)), counted from 0; what is
    given for it is off by 1 part in 256 at most. Whole numbers below 256 are exact.

    Source: DDSketch (Masson, Rim and Lee, "DDSketch: a fast and fully-mergeable quantile sketch with relative-error
    guarantees", 2019).

    Raises:
        ConfigurationError: A quantile is not from 0 to 1, or there is none.
    """
    if not at or not all(0 <= one <= 1 for one in at):
        raise ConfigurationError(
            f"quantiles() at {[*at]}", next_step="name some from 0 to 1, such as [0.5, 0.99]", **place_of_call()
        )
    return replace(_aggregation("quantiles", of, where), at=tuple(float(one) for one in at))


@function_checked
def sum_(of: MapperLike, *, where: MapperLike | None = None) -> Aggregation:
    """The sum of ``of``."""
    return _aggregation("sum", of, where)


@function_checked
def min_(of: MapperLike, *, where: MapperLike | None = None) -> Aggregation:
    """The minimum of ``of``."""
    return _aggregation("min", of, where)


@function_checked
def max_(of: MapperLike, *, where: MapperLike | None = None) -> Aggregation:
    """The maximum of ``of``."""
    return _aggregation("max", of, where)


@function_checked
def mean_(of: MapperLike, *, where: MapperLike | None = None) -> Aggregation:
    """The arithmetic mean of ``of``."""
    return _aggregation("mean", of, where)


@function_checked
def variance(of: MapperLike, *, population: bool = False, where: MapperLike | None = None) -> Aggregation:
    """The variance of ``of``: of a sample, which one value has none of, or of the whole population."""
    return _aggregation("var_pop" if population else "var_samp", of, where)


@function_checked
def stddev(of: MapperLike, *, population: bool = False, where: MapperLike | None = None) -> Aggregation:
    """The standard deviation of ``of``: of a sample, which one value has none of, or of the whole population."""
    return _aggregation("stddev_pop" if population else "stddev_samp", of, where)


@function_checked
def collect_list(of: MapperLike, *, limit: int = 1_000, where: MapperLike | None = None) -> Aggregation:
    """A list of the values of ``of``, in the order in which they came: the first ``limit`` of them.

    Those beyond are left out, and counted as ``collection-limit-drop``. Where sessions merge, the records of the
    earlier session have come first.

    Raises:
        ConfigurationError: ``limit`` is not from 1 to 10,000.
    """
    return _collection("collect_list", of, where, limit)


@function_checked
def collect_set(of: MapperLike, *, limit: int = 1_000, where: MapperLike | None = None) -> Aggregation:
    """A list of the values of ``of`` that differ, in the order in which they came first, as `collect_list`.

    0.0 and -0.0 are one value, as are all NaN.

    Raises:
        ConfigurationError: ``limit`` is not from 1 to 10,000.
    """
    return _collection("collect_set", of, where, limit)


def _collection(function: Function, of: MapperLike, where: MapperLike | None, limit: int) -> Aggregation:
    if not 1 <= limit <= MOST_COLLECTED:
        raise ConfigurationError(
            f"{function}() of {limit} values", next_step=f"collect from 1 to {MOST_COLLECTED:,}", **place_of_call()
        )
    return replace(_aggregation(function, of, where), limit=limit)


@function_checked
def first(of: MapperLike, *, by_time: bool = False, where: MapperLike | None = None) -> Aggregation:
    """The first value of ``of`` in the order of arrival, or, ``by_time``, that of the record with the least timestamp.

    Of equal timestamps the first counts. Where sessions merge, the records of the earlier session have come first.
    """
    return _aggregation("first_by_time" if by_time else "first", of, where)


@function_checked
def last(of: MapperLike, *, by_time: bool = False, where: MapperLike | None = None) -> Aggregation:
    """The last value of ``of`` in the order of arrival, or, ``by_time``, that of the record with the largest timestamp.

    Of equal timestamps the last counts. Where sessions merge, the records of the earlier session have come first.
    """
    return _aggregation("last_by_time" if by_time else "last", of, where)


@function_checked
def arg_min(of: MapperLike, by: MapperLike, *, where: MapperLike | None = None) -> Aggregation:
    """What ``of`` is in the record with the least ``by``; of several, in the first.

    Records whose ``by`` is null are ignored. The value may be null.
    """
    return _aggregation("arg_min", of, where, by)


@function_checked
def arg_max(of: MapperLike, by: MapperLike, *, where: MapperLike | None = None) -> Aggregation:
    """What ``of`` is in the record with the largest ``by``; of several, in the first.

    Records whose ``by`` is null are ignored. The value may be null.
    """
    return _aggregation("arg_max", of, where, by)


@function_checked
def top_n(
    of: MapperLike, by: MapperLike, n: int, *, smallest: bool = False, where: MapperLike | None = None
) -> Aggregation:
    """What ``of`` is in the ``n`` records with the largest, or ``smallest``, ``by``: a list, the best first.

    Of equal ones the first come first. Records whose ``by`` is null are ignored. Values may be null.

    Raises:
        ConfigurationError: ``n`` is not from 1 to 1,000.
    """
    if not 1 <= n <= MOST:
        raise ConfigurationError(f"top_n() of {n} records", next_step=f"take from 1 to {MOST:,}", **place_of_call())
    return replace(_aggregation("bottom_n" if smallest else "top_n", of, where, by), limit=n)


def _aggregation(
    function: Function, of: MapperLike | None, where: MapperLike | None, by: MapperLike | None = None
) -> Aggregation:
    return Aggregation(function, _mapper(of), _mapper(where), _mapper(by))


def _mapper(of: MapperLike | None) -> Mapper | None:
    return None if of is None else mapper(of)
