"""What can be aggregated, and how: functions of SQL, one or several by name, or any Python function.

Functions of SQL (`statelib.operators.aggregation.sql_functions`) are columnar. `Reduce` and `Aggregate` call a Python
function for each record: the slow way, a microsecond or more a record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from statelib.errors.kinds import ConfigurationError
from statelib.operators.aggregation.columnar_aggregator import ColumnarAggregator
from statelib.operators.aggregation.function_states import results_of, stored_columns
from statelib.operators.aggregation.per_record_aggregator import PerRecordAggregator
from statelib.operators.aggregation.sql_functions import Aggregation
from statelib.operators.mappers.fields import ALL, both, fields_of_mapper
from statelib.operators.mappers.mapping import mapper
from statelib.stores.stored_rows import StoredStates

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from statelib.metrics.node_metrics import NodeMetrics
    from statelib.operators.aggregation.aggregator import Aggregator
    from statelib.operators.mappers.fields import Fields


class AggregatorSpec(StoredStates, Protocol):
    """What to aggregate: immutable and picklable."""

    def build(self, node: str, metrics: NodeMetrics) -> Aggregator:
        """The running aggregation; ``node`` is named in errors, ``metrics`` are its."""

    def describe(self) -> Mapping[str, object]:
        """As plain data, for the fingerprint."""


@dataclass(frozen=True, slots=True)
class Aggregations:
    """Named aggregations, whose results are the fields of a struct; or one without a name, whose result is the value.

    Attributes:
        functions: Names and aggregations; one with the name None, or any number with different names.
        streams: Of several streams that are aggregated together (`statelib.operators.aggregation.cogroup`), the number
            of the one that each function is of; empty: there is one.
    """

    functions: tuple[tuple[str | None, Aggregation], ...]
    streams: tuple[int, ...] = ()

    def build(self, node: str, metrics: NodeMetrics) -> Aggregator:
        """The running aggregation."""
        return ColumnarAggregator(self.functions, node, metrics, self.streams)

    def results_of(self, stored: pa.Array) -> pa.Array:
        """See `AggregatorSpec`."""
        return results_of(self.functions, stored)

    def stored_columns(self, result: pa.DataType) -> pa.Schema:
        """See `AggregatorSpec`."""
        return stored_columns(self.functions, result)

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        streams = {"streams": list(self.streams)} if self.streams else {}
        return {"aggregations": [[name, function.describe()] for name, function in self.functions], **streams}


def single(function: Aggregation) -> Aggregations:
    """The aggregation whose results are the values themselves."""
    return Aggregations(((None, function),))


def several(**functions: Aggregation) -> Aggregations:
    """The aggregations whose results are the fields of a struct: ``several(flights=count(), delay=mean_("delay"))``.

    Raises:
        ConfigurationError: There is none, or something is no aggregation.
    """
    given: dict[str, object] = dict(functions)
    wrong = [name for name, function in given.items() if not isinstance(function, Aggregation)]
    if wrong or not functions:
        raise ConfigurationError(
            f"{wrong[0]} is not an aggregation" if wrong else "nothing to aggregate",
            next_step="give names to functions such as count(), sum_(of) and max_(of)",
        )
    return Aggregations(tuple(functions.items()))


class StoredAsResults:
    """Base of aggregations whose states are their results."""

    __slots__ = ()

    def results_of(self, stored: pa.Array) -> pa.Array:
        """See `AggregatorSpec`."""
        return stored

    def stored_columns(self, result: pa.DataType) -> pa.Schema:
        """See `AggregatorSpec`."""
        return pa.schema([("value", result)])


@dataclass(frozen=True, slots=True)
class Reduce(StoredAsResults):
    """Any Python function of the aggregate and the next value (Kafka's ``Reducer``).

    The first value of a window is its aggregate as it is; a null one leaves the window as if it had not been there. A
    function that gives None removes the window. It must be pure and must not change its arguments. Sessions that merge
    are reduced by it, too.
    """

    function: Callable[[Any, Any], Any]

    def build(self, node: str, metrics: NodeMetrics) -> Aggregator:
        """The running aggregation."""
        del metrics

        def step(key: object, value: object, aggregate: object) -> object:
            del key
            return value if aggregate is None else self.function(aggregate, value)

        def merge(key: object, one: object, other: object) -> object:
            return step(key, other, one)

        return PerRecordAggregator(step, None, merge, None, functions=[self.function], node=node)

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        return {"reduce": mapper(self.function).describe()}


@dataclass(frozen=True, slots=True)
class Aggregate(StoredAsResults):
    """Any Python function of key, value and aggregate (Kafka's ``Aggregator``), from an initial aggregate.

    A function that gives None removes the window. It must be pure and must not change its arguments.

    Attributes:
        initializer: Gives the aggregate before the first record.
        function: Of key, value and aggregate.
        arrow_type: The type of an aggregate.
        merger: For sessions: of key and two aggregates, the first of which is the initial one or that of the session
            before (Kafka's ``Merger``).
    """

    initializer: Callable[[], Any]
    function: Callable[[Any, Any, Any], Any]
    arrow_type: pa.DataType
    merger: Callable[[Any, Any, Any], Any] | None = None

    def build(self, node: str, metrics: NodeMetrics) -> Aggregator:
        """The running aggregation."""
        del metrics
        functions = [self.function, self.initializer, self.merger]

        def step(key: object, value: object, aggregate: object) -> object:
            return self.function(key, value, self.initializer() if aggregate is None else aggregate)

        return PerRecordAggregator(step, self.initializer, self.merger, self.arrow_type, functions=functions, node=node)

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        merger = {} if self.merger is None else {"merger": mapper(self.merger).describe()}
        return {
            "initializer": mapper(self.initializer).describe(),
            "aggregate": mapper(self.function).describe(),
            "type": str(self.arrow_type),
            **merger,
        }


@dataclass(frozen=True, slots=True)
class CogroupedAggregate(StoredAsResults):
    """As `Aggregate`, of several streams: a Python function for each (KIP-150).

    Attributes:
        functions: By stream: of key, value and aggregate.
    """

    initializer: Callable[[], Any]
    functions: tuple[Callable[[Any, Any, Any], Any], ...]
    arrow_type: pa.DataType
    merger: Callable[[Any, Any, Any], Any] | None = None

    def build(self, node: str, metrics: NodeMetrics) -> Aggregator:
        """The running aggregation."""
        del metrics
        functions = [*self.functions, self.initializer, self.merger]

        def step(key: object, value: Any, aggregate: object) -> object:
            stream, own_value = value
            return self.functions[stream](key, own_value, self.initializer() if aggregate is None else aggregate)

        return PerRecordAggregator(
            step, self.initializer, self.merger, self.arrow_type, functions=functions, node=node, of_streams=True
        )

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        merger = {} if self.merger is None else {"merger": mapper(self.merger).describe()}
        return {
            "initializer": mapper(self.initializer).describe(),
            "aggregates": [mapper(function).describe() for function in self.functions],
            "type": str(self.arrow_type),
            **merger,
        }


def count_of_streams(aggregator: AggregatorSpec) -> int:
    """How many streams are aggregated together."""
    if isinstance(aggregator, CogroupedAggregate):
        return len(aggregator.functions)
    return 1 + max(aggregator.streams, default=0) if isinstance(aggregator, Aggregations) else 1


def fields_of_aggregator(aggregator: AggregatorSpec, stream: int = 0) -> Fields:
    """The fields of the values that an aggregation looks at; ``stream``: of several, in which."""
    if isinstance(aggregator, Aggregations):
        functions = aggregator.functions
        if aggregator.streams:
            functions = tuple(each for each, of in zip(functions, aggregator.streams, strict=True) if of == stream)
        return both(fields_of_mapper(of) for _, function in functions for of in function.mappers)
    return ALL
