"""Aggregate functions of SQL: `count`, `sum_`, `min_`, `max_`, `mean_`.

They are columnar: a compiled kernel processes the updates. Each takes a mapper of the records
(`statelib.operators.mappers.mapping`) and, as in SQL, ignores nulls. If all values are null, the result is null, and
a count is 0. ``count()`` without a mapper counts records, including those with a null value, as Kafka Streams does.

With ``where=``, a mapper that gives booleans, a function sees only records for which that is true (SQL's ``FILTER``); a
null counts as false. Both mappers are asked about every record.

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
from typing import TYPE_CHECKING, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from statelib.calls import function_checked
from statelib.operators.mappers.mapping import evaluate, holds, mapper

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from statelib.operators.mappers.mapping import Mapper, MapperLike


Function: TypeAlias = Literal["count", "sum", "min", "max", "mean"]


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One aggregate function of SQL over a mapper.

    Attributes:
        function: Which.
        of: What it is of; None: records.
        where: Gives booleans; only records for which it is true are seen. None: all are.
    """

    function: Function
    of: Mapper | None = None
    where: Mapper | None = None

    @property
    def mappers(self) -> tuple[Mapper, ...]:
        """All that look at records."""
        return tuple(of for of in (self.of, self.where) if of is not None)

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        where = {} if self.where is None else {"where": self.where.describe()}
        return {"function": self.function, "of": None if self.of is None else self.of.describe(), **where}

    def column(self, records: pa.RecordBatch, node: str, sequence: NDArray[np.int64]) -> pa.Array | None:
        """What is aggregated of records, null for those that it does not see; None: each record counts.

        ``node`` and ``sequence`` as of `evaluate`, which says what is raised.
        """
        column = None if self.of is None else evaluate(self.of, records, node, sequence)
        if self.where is None:
            return column
        seen = pa.array(holds(self.where, records, node, sequence))
        column = pa.repeat(True, records.num_rows) if column is None else column
        return pc.if_else(seen, column, pa.scalar(None, column.type))


@function_checked
def count(of: MapperLike | None = None, *, where: MapperLike | None = None) -> Aggregation:
    """The number of records, or of those for which ``of`` is not null."""
    return _aggregation("count", of, where)


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


def _aggregation(function: Function, of: MapperLike | None, where: MapperLike | None) -> Aggregation:
    return Aggregation(function, _mapper(of), _mapper(where))


def _mapper(of: MapperLike | None) -> Mapper | None:
    return None if of is None else mapper(of)


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
