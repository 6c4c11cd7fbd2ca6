"""How a table's rows are aggregated, grouped by another key (Kafka's ``KTableAggregate``, ``KTableReduce``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from statelib.calls import KafkasNames
from statelib.dsl.options import Materialized
from statelib.dsl.repartitioning import Grouping, table_names
from statelib.dsl.table_node import TableNode, aggregated_node
from statelib.operators.aggregation.definition import several
from statelib.operators.aggregation.sql_functions import count, mean_, sum_
from statelib.operators.aggregation.table_definition import TableAggregate, TableAggregations, TableReduce
from statelib.operators.aggregation.table_select import TableSelect

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    import pyarrow as pa

    from statelib.dsl.options import Grouped, Named
    from statelib.dsl.table import Table
    from statelib.operators.aggregation.definition import AggregatorSpec
    from statelib.operators.aggregation.sql_functions import Aggregation
    from statelib.operators.mappers.mapping import Mapper, MapperLike

Aggregated = TypeVar("Aggregated")
"""The table of the results."""


class GroupedRows(KafkasNames, Generic[Aggregated]):
    """The aggregations of a table's rows.

    With ``where=``, a function of SQL sees only the rows for which a mapper gives true.

    Args:
        grouping: Where the rows are.
    """

    def __init__(self, grouping: Grouping) -> None:
        self._grouping = grouping

    def count(
        self, materialized: Materialized | None = None, named: Named | None = None, *, where: MapperLike | None = None
    ) -> Aggregated:
        """The number of rows in each group; 0 once its last row has gone (``KTableAggregate``)."""
        return self._table("KTABLE-AGGREGATE", _single(count(where=where)), materialized, named)

    def sum(
        self,
        of: MapperLike,
        materialized: Materialized | None = None,
        named: Named | None = None,
        *,
        where: MapperLike | None = None,
    ) -> Aggregated:
        """The sum of ``of`` for each group; a group without values is deleted."""
        return self._table("KTABLE-AGGREGATE", _single(sum_(of, where=where)), materialized, named)

    def mean(
        self,
        of: MapperLike,
        materialized: Materialized | None = None,
        named: Named | None = None,
        *,
        where: MapperLike | None = None,
    ) -> Aggregated:
        """The arithmetic mean of ``of`` for each group; a group without values is deleted."""
        return self._table("KTABLE-AGGREGATE", _single(mean_(of, where=where)), materialized, named)

    def aggregate(
        self, functions: Mapping[str, Aggregation], materialized: Materialized | None = None, named: Named | None = None
    ) -> Aggregated:
        """Several aggregations at once: ``aggregate({"flights": count(), "delay": mean_("dep_delay")})``.

        Raises:
            ConfigurationError: One is a minimum or maximum, which cannot subtract a value; the error lists those that
                can.
        """
        spec = TableAggregations(several(**functions).functions)
        return self._table("KTABLE-AGGREGATE", spec, materialized, named)

    def reduce(
        self,
        adder: Callable[[Any, Any], Any],
        subtractor: Callable[[Any, Any], Any],
        materialized: Materialized | None = None,
        named: Named | None = None,
    ) -> Aggregated:
        """Combines values with Python functions. Slow: they are called for each change (``KTableReduce``).

        The first value is the first aggregate. A result of None deletes the aggregate.
        """
        return self._table("KTABLE-REDUCE", TableReduce(adder, subtractor), materialized, named)

    def aggregate_with(
        self,
        initializer: Callable[[], Any],
        adder: Callable[[Any, Any, Any], Any],
        subtractor: Callable[[Any, Any, Any], Any],
        arrow_type: pa.DataType,
        materialized: Materialized | None = None,
        named: Named | None = None,
    ) -> Aggregated:
        """Aggregates with Python functions of key, value and aggregate. Slow: they are called for each change."""
        spec = TableAggregate(initializer, adder, subtractor, arrow_type)
        return self._table("KTABLE-AGGREGATE", spec, materialized, named)

    def _table(
        self, kind: str, spec: AggregatorSpec, materialized: Materialized | None, named: Named | None
    ) -> Aggregated:
        """The table of an aggregation; ``kind``: what the node's name begins with, if it has none."""
        raise NotImplementedError

    def _node(
        self, kind: str, spec: AggregatorSpec, materialized: Materialized | None, named: Named | None
    ) -> TableNode:
        builder = self._grouping.builder
        store = (materialized or Materialized()).table_store(builder.store_name_of(materialized, "KTABLE-AGGREGATE"))
        given = named.name if named else None
        names = table_names(builder, given, self._grouping.name or store.name)
        name = builder.name_of(given, kind)
        source = self._grouping.through(names)
        return aggregated_node(builder, name, source, spec, store, of_table=True)


def grouped_rows(table: Table, key: Mapper, value: Mapper, grouped: Grouped | None) -> Grouping:
    """The rows of ``table``, grouped."""
    builder = table.builder
    given = grouped.name if grouped else None
    name = builder.name_of(given, "KTABLE-SELECT")
    builder.add_processor(name, [table.node], TableSelect(key, value))
    builder.request_prior_values(table.node)
    return Grouping(builder, name, given, needs_repartition=True, role=None)


def _single(function: Aggregation) -> TableAggregations:
    return TableAggregations(((None, function),))
