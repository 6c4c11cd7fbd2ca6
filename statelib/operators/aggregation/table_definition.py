"""What can be aggregated of a table: every change takes its old value back and adds its new one (``KGroupedTable``).

`count`, `count_distinct`, `sum_`, `mean_`, `variance`, `stddev` and `quantiles` of
`statelib.operators.aggregation.sql_functions` are columnar here, too. The other functions cannot take a value back and
are refused. Any Python functions, an adder and a subtractor, are called for each change.
`statelib.operators.aggregation.function_states` says what is stored.

A count that has come to 0 stays 0, as in Kafka Streams. A single sum or mean of no values is null, and so leaves the
table. Sums of floats are subject to rounding: what is taken back may leave a trace until no value is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from statelib.errors.kinds import ConfigurationError
from statelib.operators.aggregation.definition import StoredAsResults
from statelib.operators.aggregation.function_states import results_of, stored_columns
from statelib.operators.aggregation.table_aggregators import ColumnarTableAggregator, PerChangeAggregator
from statelib.operators.aggregation.table_function_accumulators import SUBTRACTABLE
from statelib.operators.mappers.mapping import mapper

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from statelib.metrics.node_metrics import NodeMetrics
    from statelib.operators.aggregation.aggregator import Aggregator
    from statelib.operators.aggregation.sql_functions import Aggregation


@dataclass(frozen=True, slots=True)
class TableAggregations:
    """Named aggregations, whose results are the fields of a struct; or one without a name, whose result is the value.

    Attributes:
        functions: Names and aggregations; one with the name None, or any number with different names.

    Raises:
        ConfigurationError: A function cannot take values back, or there is none.
    """

    functions: tuple[tuple[str | None, Aggregation], ...]

    def __post_init__(self) -> None:
        if not self.functions:
            raise ConfigurationError("nothing to aggregate", next_step="give names to count(), sum_(of) or mean_(of)")
        for name, function in self.functions:
            if function.function not in SUBTRACTABLE:
                instead = "take count_distinct(of), which can, " if function.function == "approx_count_distinct" else ""
                raise ConfigurationError(
                    f"{function.function} over a table cannot take a value back when a row changes",
                    field=name,
                    next_step=f"{instead}keep what is needed in aggregate_with(initializer, adder, subtractor, type), "
                    f"or take the {function.function} of the changes: to_stream().group_by(key).{function.called}",
                )

    def build(self, node: str, metrics: NodeMetrics) -> Aggregator:
        """The running aggregation."""
        del metrics
        return ColumnarTableAggregator(self.functions, node)

    def results_of(self, stored: pa.Array) -> pa.Array:
        """See `AggregatorSpec`."""
        return results_of(self.functions, stored, of_table=True)

    def stored_columns(self, result: pa.DataType) -> pa.Schema:
        """See `AggregatorSpec`."""
        return stored_columns(self.functions, result, of_table=True)

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        return {"table_aggregations": [[name, function.describe()] for name, function in self.functions]}


@dataclass(frozen=True, slots=True)
class TableReduce(StoredAsResults):
    """Any Python functions of the aggregate and a value (Kafka's ``KTableReduce``).

    The first value is the aggregate as it is. A function that gives None deletes the aggregate. They must be pure and
    must not change their arguments.

    Attributes:
        adder: Of the aggregate and a new value.
        subtractor: Of the aggregate and an old value.
    """

    adder: Callable[[Any, Any], Any]
    subtractor: Callable[[Any, Any], Any]

    def build(self, node: str, metrics: NodeMetrics) -> Aggregator:
        """The running aggregation."""
        del metrics

        def add(key: object, value: object, aggregate: object) -> object:
            del key
            return value if aggregate is None else self.adder(aggregate, value)

        def take_back(key: object, value: object, aggregate: object) -> object:
            del key
            return self.subtractor(aggregate, value)

        return PerChangeAggregator(add, take_back, None, None, functions=[self.adder, self.subtractor], node=node)

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        return {"table_reduce": [mapper(self.adder).describe(), mapper(self.subtractor).describe()]}


@dataclass(frozen=True, slots=True)
class TableAggregate(StoredAsResults):
    """Any Python functions of key, value and aggregate (Kafka's ``KTableAggregate``), from an initial aggregate.

    A function that gives None deletes the aggregate. They must be pure and must not change their arguments.

    Attributes:
        initializer: Gives the aggregate before the first value.
        adder: Of key, new value and aggregate.
        subtractor: Of key, old value and aggregate.
        arrow_type: The type of an aggregate.
    """

    initializer: Callable[[], Any]
    adder: Callable[[Any, Any, Any], Any]
    subtractor: Callable[[Any, Any, Any], Any]
    arrow_type: pa.DataType

    def build(self, node: str, metrics: NodeMetrics) -> Aggregator:
        """The running aggregation."""
        del metrics

        def add(key: object, value: object, aggregate: object) -> object:
            return self.adder(key, value, self.initializer() if aggregate is None else aggregate)

        functions = [self.adder, self.subtractor, self.initializer]
        return PerChangeAggregator(
            add, self.subtractor, self.initializer, self.arrow_type, functions=functions, node=node
        )

    def describe(self) -> Mapping[str, object]:
        """As plain data."""
        functions = (self.initializer, self.adder, self.subtractor)
        return {
            "table_aggregate": [mapper(function).describe() for function in functions],
            "type": str(self.arrow_type),
        }
