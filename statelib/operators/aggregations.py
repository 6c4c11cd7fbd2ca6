"""What can be aggregated, and how: `count`, `sum_`, `min_`, `max_`, `mean_`, several at once, or any Python function.

The functions of SQL are columnar: a compiled kernel walks the updates. Each is taken over a mapper of the records
(`statelib.operators.mapping`) and, as in SQL, ignores nulls; over nothing but nulls it is null, and a count is 0.
``count()`` without a mapper counts records, null values included, as Kafka Streams does.

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

`Reduce` and `Aggregate` call a Python function for each record: the slow way, a microsecond or more a record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.errors import ConfigurationError, InternalError
from statelib.operators.accumulators import accumulator
from statelib.operators.mapping import evaluate, mapper

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from statelib.batch import Batch
    from statelib.operators.accumulators import Accumulator
    from statelib.operators.mapping import Mapper, MapperLike

NONE_REMOVED = np.empty(0, dtype=np.bool_)
_BYTES_OF_AN_OBJECT = 64
"""What a small Python object and its place in a list take, roughly."""


class Aggregator(Protocol):
    """The running aggregation of one working set. Rows (of the batch) and slots are int64 arrays."""

    @property
    def schema(self) -> pa.Schema | None:
        """The columns of a stored row; None before the first batch."""

    @property
    def result_type(self) -> pa.DataType:
        """The type of a result; null before the first batch."""

    def prepare(self, batch: Batch) -> None:
        """Takes the batch whose rows `walk` will be about. It has at least one record."""

    def reserve(self, slots: int) -> None:
        """Makes room for ``slots`` slots; new ones are empty."""

    def keep(self, slots: NDArray[np.int64]) -> None:
        """Keeps only ``slots``, numbered anew in their order."""

    def restore(self, slots: NDArray[np.int64], rows: pa.StructArray) -> None:
        """Sets ``slots`` to stored rows."""

    def dump(self, slots: NDArray[np.int64]) -> pa.StructArray:
        """The rows of ``slots``, to be stored."""

    def results(self, slots: NDArray[np.int64]) -> pa.Array:
        """The present results of ``slots``."""

    def initial(self) -> pa.Array:
        """One element: the result before any record (Kafka's ``Initializer``)."""

    def walk(self, rows: NDArray[np.int64], slots: NDArray[np.int64]) -> tuple[pa.Array, NDArray[np.bool_]]:
        """Adds the records ``rows`` of the prepared batch to ``slots``, in order.

        Returns:
            The result after each update, and which updates remove the window (empty: none).
        """

    def memory_bytes(self) -> int:
        """Size of the state."""


class AggregatorSpec(Protocol):
    """What to aggregate: immutable and picklable."""

    def build(self, node: str) -> Aggregator:
        """The running aggregation; ``node`` is named in errors."""

    def describe(self) -> Mapping[str, object]:
        """As plain data, for the fingerprint."""


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One function of SQL over a mapper."""

    function: Literal["count", "sum", "min", "max", "mean"]
    of: Mapper | None = None

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        return {"function": self.function, "of": None if self.of is None else self.of.describe()}


def count(of: MapperLike | None = None) -> Aggregation:
    """How many records there are, or for how many ``of`` is not null."""
    return Aggregation("count", None if of is None else mapper(of))


def sum_(of: MapperLike) -> Aggregation:
    """The sum of ``of``."""
    return Aggregation("sum", mapper(of))


def min_(of: MapperLike) -> Aggregation:
    """The smallest of ``of``."""
    return Aggregation("min", mapper(of))


def max_(of: MapperLike) -> Aggregation:
    """The largest of ``of``."""
    return Aggregation("max", mapper(of))


def mean_(of: MapperLike) -> Aggregation:
    """The arithmetic mean of ``of``."""
    return Aggregation("mean", mapper(of))


@dataclass(frozen=True, slots=True)
class Aggregations:
    """Named aggregations, whose results are the fields of a struct; or one without a name, whose result is the value.

    Attributes:
        functions: Names and aggregations; one with the name None, or any number with different names.
    """

    functions: tuple[tuple[str | None, Aggregation], ...]

    def build(self, node: str) -> Aggregator:
        """The running aggregation."""
        return _Columnar(self, node)

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        return {"aggregations": [[name, function.describe()] for name, function in self.functions]}


def single(function: Aggregation) -> Aggregations:
    """The aggregation whose results are the values themselves."""
    return Aggregations(((None, function),))


def named(**functions: Aggregation) -> Aggregations:
    """The aggregations whose results are the fields of a struct: ``named(flights=count(), delay=mean_("delay"))``.

    Raises:
        ConfigurationError: There is none, or something is no aggregation.
    """
    given: dict[str, object] = dict(functions)
    wrong = [name for name, function in given.items() if not isinstance(function, Aggregation)]
    if wrong or not functions:
        raise ConfigurationError(
            f"{wrong[0]} is not an aggregation" if wrong else "nothing to aggregate",
            next_step="give names to count(), sum_(of), min_(of), max_(of) or mean_(of)",
        )
    return Aggregations(tuple(functions.items()))


@dataclass(frozen=True, slots=True)
class Reduce:
    """Any Python function of the aggregate and the next value (Kafka's ``Reducer``).

    The first value of a window is its aggregate as it is; a null one leaves the window as if it had not been there. A
    function that gives None removes the window. It must be pure and must not change its arguments.
    """

    function: Callable[[Any, Any], Any]

    def build(self, node: str) -> Aggregator:
        """The running aggregation."""
        del node

        def step(key: object, value: object, aggregate: object) -> object:
            del key
            return value if aggregate is None else self.function(aggregate, value)

        return _PerRecord(step, None, None)

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        return {"reduce": mapper(self.function).describe()}


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Any Python function of key, value and aggregate (Kafka's ``Aggregator``), from an initial aggregate.

    A function that gives None removes the window. It must be pure and must not change its arguments.

    Attributes:
        initializer: Gives the aggregate before the first record.
        function: Of key, value and aggregate.
        arrow_type: The type of an aggregate.
    """

    initializer: Callable[[], Any]
    function: Callable[[Any, Any, Any], Any]
    arrow_type: pa.DataType

    def build(self, node: str) -> Aggregator:
        """The running aggregation."""
        del node

        def step(key: object, value: object, aggregate: object) -> object:
            return self.function(key, value, self.initializer() if aggregate is None else aggregate)

        return _PerRecord(step, self.initializer, self.arrow_type)

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        return {
            "initializer": mapper(self.initializer).describe(),
            "aggregate": mapper(self.function).describe(),
            "type": str(self.arrow_type),
        }


class _Columnar:
    """`Aggregations` over accumulators; a mean is a sum and a count."""

    def __init__(self, spec: Aggregations, node: str) -> None:
        self._functions = spec.functions
        self._node = node
        self._types: list[pa.DataType | None] | None = None
        self._columns: list[pa.Array | None] = []
        self._accumulators: list[list[Accumulator]] = []
        self._reserved = 0
        self.schema: pa.Schema | None = None

    @property
    def result_type(self) -> pa.DataType:
        return self.initial().type if self.schema is not None else pa.null()

    def prepare(self, batch: Batch) -> None:
        records = batch.as_record_batch()
        self._columns = [
            None if function.of is None else evaluate(function.of, records, self._node)
            for _, function in self._functions
        ]
        types = [None if column is None else column.type for column in self._columns]
        if self._types is None:
            self._bind(types)
        elif types != self._types:
            raise ConfigurationError(
                f"the type of what is aggregated has changed from {_names(self._types)} to {_names(types)}",
                node=self._node,
                next_step="cast it to one type in a map_values()",
            )

    def _bind(self, types: list[pa.DataType | None]) -> None:
        fields = []
        for (name, function), type_ in zip(self._functions, types, strict=True):
            name_ = name or "value"
            parts = ["float_sum", "count"] if function.function == "mean" else [function.function]
            made = [accumulator(part, type_) for part in parts]
            names = [f"{name_}.sum", f"{name_}.count"] if len(parts) > 1 else [name_]
            fields += [pa.field(part, made_.type) for part, made_ in zip(names, made, strict=True)]
            self._accumulators.append(made)
        self._types = types
        self.schema = pa.schema(fields)
        self.reserve(self._reserved)

    @property
    def _flat(self) -> list[Accumulator]:
        return [part for parts in self._accumulators for part in parts]

    def reserve(self, slots: int) -> None:
        self._reserved = max(slots, 1)  # one even for nothing, which `initial` may look at
        for part in self._flat:
            part.reserve(self._reserved)

    def keep(self, slots: NDArray[np.int64]) -> None:
        for part in self._flat:
            part.keep(slots)

    def restore(self, slots: NDArray[np.int64], rows: pa.StructArray) -> None:
        for part, states in zip(self._flat, rows.flatten(), strict=True):
            part.set(slots, states)

    def dump(self, slots: NDArray[np.int64]) -> pa.StructArray:
        return pa.StructArray.from_arrays([part.get(slots) for part in self._flat], fields=list(self.schema or ()))

    def results(self, slots: NDArray[np.int64]) -> pa.Array:
        return self._shown([[part.get(slots) for part in parts] for parts in self._accumulators])

    def initial(self) -> pa.Array:
        fresh = [[pa.array([part.initial], part.type) for part in parts] for parts in self._accumulators]
        return self._shown(fresh)

    def walk(self, rows: NDArray[np.int64], slots: NDArray[np.int64]) -> tuple[pa.Array, NDArray[np.bool_]]:
        walked = [
            [part.walk(rows, slots, column) for part in parts]
            for parts, column in zip(self._accumulators, self._columns, strict=True)
        ]
        return self._shown(walked), NONE_REMOVED

    def _shown(self, states: list[list[pa.Array]]) -> pa.Array:
        columns = [pc.divide(*parts) if len(parts) > 1 else parts[0] for parts in states]
        names = [name for name, _ in self._functions]
        return columns[0] if names == [None] else pa.StructArray.from_arrays(columns, names)

    def memory_bytes(self) -> int:
        return sum(part.memory_bytes() for part in self._flat)


class _PerRecord:
    """`Reduce` and `Aggregate`: aggregates are Python objects; None is a window that is not there."""

    def __init__(
        self,
        step: Callable[[object, object, object], object],
        initializer: Callable[[], object] | None,
        arrow_type: pa.DataType | None,
    ) -> None:
        self._step = step
        self._initializer = initializer
        self._type = arrow_type
        self._aggregates: list[object] = []
        self._batch: Batch | None = None

    @property
    def schema(self) -> pa.Schema | None:
        return None if self._type is None else pa.schema([pa.field("value", self._type)])

    @property
    def result_type(self) -> pa.DataType:
        return self._type or pa.null()

    def prepare(self, batch: Batch) -> None:
        self._batch = batch
        self._type = self._type or batch.value.type

    def reserve(self, slots: int) -> None:
        self._aggregates += [None] * (slots - len(self._aggregates))

    def keep(self, slots: NDArray[np.int64]) -> None:
        self._aggregates = [self._aggregates[slot] for slot in slots]

    def restore(self, slots: NDArray[np.int64], rows: pa.StructArray) -> None:
        for slot, value in zip(slots.tolist(), rows.field(0).to_pylist(), strict=True):
            self._aggregates[slot] = value

    def dump(self, slots: NDArray[np.int64]) -> pa.StructArray:
        return pa.StructArray.from_arrays([self.results(slots)], fields=list(self.schema or ()))

    def results(self, slots: NDArray[np.int64]) -> pa.Array:
        return pa.array([self._aggregates[slot] for slot in slots], self.result_type)

    def initial(self) -> pa.Array:
        return pa.array([self._initializer() if self._initializer else None], self.result_type)

    def walk(self, rows: NDArray[np.int64], slots: NDArray[np.int64]) -> tuple[pa.Array, NDArray[np.bool_]]:
        batch = self._batch
        if batch is None:
            raise InternalError("an aggregation has no batch")
        chosen = pa.array(rows)
        keys = batch.key.take(chosen).to_pylist()
        values = batch.value.take(chosen).to_pylist()
        results = []
        for key, value, slot in zip(keys, values, slots.tolist(), strict=True):
            self._aggregates[slot] = self._step(key, value, self._aggregates[slot])
            results.append(self._aggregates[slot])
        column = pa.array(results, self.result_type)
        return column, np.asarray(column.is_null()) if column.null_count else NONE_REMOVED

    def memory_bytes(self) -> int:
        return len(self._aggregates) * _BYTES_OF_AN_OBJECT


def _names(types: list[pa.DataType | None]) -> str:
    return ", ".join("records" if type_ is None else str(type_) for type_ in types)
