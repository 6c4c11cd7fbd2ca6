"""Aggregate functions of SQL: `count`, `sum_`, `min_`, `max_`, `mean_`.

They are columnar: a compiled kernel processes the updates. Each takes a mapper of the records
(`statelib.operators.mappers.mapping`) and, as in SQL, ignores nulls. If all values are null, the result is null, and
a count is 0. ``count()`` without a mapper counts records, including those with a null value, as Kafka Streams does.

======== ============================ ============================================ ==========================
function of                           gives                                        stored
======== ============================ ============================================ ==========================
count    anything                     int64                                        int64
sum_     integers                     int64; an overflow is an error               int64
sum_     floats                       float64                                      float64
min_     integers, floats, dates,     the same type; NaN is above all numbers      the same type
max_     times, timestamps, durations
mean_    integers, floats             float64                                      sum float64, count int64
======== ============================ ============================================ ==========================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.compute as pc

from statelib.calls import function_checked
from statelib.operators.mappers.mapping import mapper

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from statelib.operators.mappers.mapping import Mapper, MapperLike


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One aggregate function of SQL over a mapper."""

    function: Literal["count", "sum", "min", "max", "mean"]
    of: Mapper | None = None

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        return {"function": self.function, "of": None if self.of is None else self.of.describe()}


@function_checked
def count(of: MapperLike | None = None) -> Aggregation:
    """The number of records, or of those for which ``of`` is not null."""
    return Aggregation("count", None if of is None else mapper(of))


@function_checked
def sum_(of: MapperLike) -> Aggregation:
    """The sum of ``of``."""
    return Aggregation("sum", mapper(of))


@function_checked
def min_(of: MapperLike) -> Aggregation:
    """The minimum of ``of``."""
    return Aggregation("min", mapper(of))


@function_checked
def max_(of: MapperLike) -> Aggregation:
    """The maximum of ``of``."""
    return Aggregation("max", mapper(of))


@function_checked
def mean_(of: MapperLike) -> Aggregation:
    """The arithmetic mean of ``of``."""
    return Aggregation("mean", mapper(of))


def parts_of(function: Aggregation) -> list[str]:
    """The accumulators that a function is made of."""
    return ["float_sum", "count"] if function.function == "mean" else [function.function]


def shown(functions: Sequence[tuple[str | None, Aggregation]], states: Iterable[pa.Array]) -> pa.Array:
    """The results of ``functions``, given the states of all their accumulators in order."""
    rest = iter(states)
    columns = []
    for _, function in functions:
        first, *others = (next(rest) for _ in parts_of(function))
        columns.append(pc.divide(first, *others) if others else first)
    names = [name for name, _ in functions]
    return columns[0] if names == [None] else pa.StructArray.from_arrays(columns, names)
