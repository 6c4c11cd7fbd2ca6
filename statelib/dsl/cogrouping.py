"""Several grouped streams that are aggregated together (Kafka's ``CogroupedStreamAggregateBuilder``, KIP-150).

Kafka Streams has a node for each stream, which aggregates its records in the store that all of them share, and a node
behind them that merges what they forward. Here the former pass records on, and the latter aggregates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from statelib.dsl.repartitioning import add_repartition, stream_names
from statelib.errors.kinds import ConfigurationError
from statelib.operators.aggregation.definition import Aggregate, Aggregations, CogroupedAggregate, several
from statelib.operators.stateless.merge import Merge
from statelib.topology.nodes import Described

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import pyarrow as pa

    from statelib.dsl.internal_builder import InternalStreamsBuilder
    from statelib.dsl.options import Materialized, Named
    from statelib.dsl.repartitioning import Grouping
    from statelib.operators.aggregation.definition import AggregatorSpec
    from statelib.operators.aggregation.sql_functions import Aggregation
    from statelib.operators.base import OperatorSpec

StreamAggregator: TypeAlias = "Mapping[str, Aggregation] | Callable[[Any, Any, Any], Any]"
"""What a stream gives to the aggregate: named functions of SQL, or a Python function of key, value and aggregate."""

_KIND = "COGROUPKSTREAM-AGGREGATE"
_MIXED = "a cogroup has aggregations of columns for some of its streams, and Python functions for others"


@dataclass(slots=True)
class Cogrouping:
    """The streams, in the order in which they were named, and where the records of each are.

    Attributes:
        builder: Shared by all streams and tables of a topology.
        aggregators: By stream, what it gives.
    """

    builder: InternalStreamsBuilder
    aggregators: dict[Grouping, StreamAggregator] = field(default_factory=dict)
    _parents: dict[Grouping, str] = field(default_factory=dict)

    def add(self, grouping: Grouping, aggregator: StreamAggregator) -> None:
        """Adds a stream; one that is there already gets another aggregator."""
        self.builder.check_same(grouping.builder)
        self.aggregators[grouping] = aggregator

    def functions(self) -> AggregatorSpec:
        """What ``aggregate()`` computes.

        Raises:
            ConfigurationError: Some streams have Python functions, or two of them results of one name.
        """
        named = [
            several(**aggregator).functions
            for aggregator in self.aggregators.values()
            if isinstance(aggregator, Mapping)
        ]
        if len(named) < len(self.aggregators):
            step = "call aggregate_with(initializer, ..., arrow_type)"
            what = "a cogroup of Python functions needs an initializer" if not named else _MIXED
            raise ConfigurationError(what, next_step="give all streams the same" if named else step)
        functions = tuple(function for of_stream in named for function in of_stream)
        streams = tuple(number for number, of_stream in enumerate(named) for _ in of_stream)
        names = [name for name, _ in functions]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ConfigurationError(
                f"two streams of a cogroup have a result called {twice}", next_step="give each of them its own name"
            )
        return Aggregations(functions, streams if len(named) > 1 else ())

    def python_functions(
        self,
        initializer: Callable[[], Any],
        arrow_type: pa.DataType,
        merger: Callable[[Any, Any, Any], Any] | None = None,
    ) -> AggregatorSpec:
        """What ``aggregate_with()`` computes.

        Raises:
            ConfigurationError: Some streams have aggregations of columns.
        """
        functions = [function for function in self.aggregators.values() if not isinstance(function, Mapping)]
        if len(functions) < len(self.aggregators):
            what = "a cogroup of aggregations of columns takes no initializer" if not functions else _MIXED
            raise ConfigurationError(what, next_step="give all streams the same" if functions else "call aggregate()")
        if len(functions) == 1:
            return Aggregate(initializer, functions[0], arrow_type, merger)
        return CogroupedAggregate(initializer, tuple(functions), arrow_type, merger)

    def new_store_name(self, materialized: Materialized | None) -> str:
        """The store's name given, else a new one."""
        return self.builder.store_name_of(materialized, _KIND)

    def add_aggregation(self, spec: OperatorSpec, store: str, named: Named | None) -> str:
        """Adds the nodes of an aggregation and gives the name of the last one, which makes the table."""
        builder, given = self.builder, None if named is None else named.name
        builder.claim_store(store)
        parents = self._repartitioned(store)
        names = []
        for number, parent in enumerate(parents):
            name = builder.suffixed(given, f"-cogroup-agg-{number}", _KIND)
            builder.add_processor(name, [parent], Merge(), described=[Described(name, (parent,), (store,))])
            names.append(name)
        table = builder.suffixed(given, "-cogroup-merge", "COGROUPKSTREAM-MERGE")
        builder.add_processor(table, names, spec, stores=[store], described=[Described(table, tuple(names))])
        return table

    def _repartitioned(self, store: str) -> list[str]:
        """The nodes whose records are aggregated. Aggregations share the repartition topics of the first one."""
        for grouping in self.aggregators:
            if not grouping.needs_repartition:
                self._parents[grouping] = grouping.node
                continue
            names = stream_names(self.builder, grouping.name or store)  # which count, whether they are used or not
            if grouping in self._parents:
                continue
            self._parents[grouping] = add_repartition(self.builder, grouping.node, names, role="repartition")
        return [self._parents[grouping] for grouping in self.aggregators]
