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
    """

    functions: tuple[tuple[str | None, Aggregation], ...]

    def build(self, node: str, metrics: NodeMetrics) -> Aggregator:
        """The running aggregation."""
        return ColumnarAggregator(self.functions, node, metrics)

    def results_of(self, stored: pa.Array) -> pa.Array:
        """See `AggregatorSpec`."""
        return results_of(self.functions, stored)

    def stored_columns(self, result: pa.DataType) -> pa.Schema:
        """See `AggregatorSpec`."""
        return stored_columns(self.functions, result)

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        return {"aggregations": [[name, function.describe()] for name, function in self.functions]}


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


def fields_of_aggregator(aggregator: AggregatorSpec) -> Fields:
    """The fields of the values that an aggregation looks at."""
    if isinstance(aggregator, Aggregations):
        return both(fields_of_mapper(of) for _, function in aggregator.functions for of in function.mappers)
    return ALL
