"""A table below the DSL's classes: the node that forwards its changes, its store, and how one looks into it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.dsl.options import Materialized
from statelib.errors.kinds import ConfigurationError
from statelib.operators.aggregation.operator import KeyAggregate
from statelib.operators.tables.source import PlainTableSource, TableSource
from statelib.operators.tables.view import JoinedView, TableView
from statelib.operators.tables.writer import VersionedStore

if TYPE_CHECKING:
    from statelib.dsl.internal_builder import InternalStreamsBuilder
    from statelib.operators.aggregation.definition import AggregatorSpec
    from statelib.operators.tables.steps import TableStep
    from statelib.operators.tables.view import AnyView, JoinedValues
    from statelib.operators.tables.writer import PlainStore, TableStore


@dataclass(frozen=True, slots=True)
class TableNode:
    """A table whose keys have no windows.

    Attributes:
        builder: Shared by all streams and tables of a topology.
        node: What forwards the table's changes.
        store: The table's own; None: it has none.
        made_of: The table that it is made of, and by which step.
        versioned: Whether late updates are told from the latest ones.
        aggregator: What made it, if it is an aggregation.
    """

    builder: InternalStreamsBuilder
    node: str
    store: TableStore | None = None
    made_of: tuple[TableNode, TableStep] | None = None
    versioned: bool = False
    aggregator: AggregatorSpec | None = None

    def view(self) -> tuple[tuple[str, ...], AnyView]:
        """How a join looks into this table (``KTableValueGetter``), and the nodes of the tables with the view's stores.

        Raises:
            ConfigurationError: There is no such store.
        """
        if self.store is not None:
            return (self.node,), TableView(self.store, (), self.aggregator)
        if self.made_of is not None:
            above, step = self.made_of
            nodes, view = above.view()
            return nodes, view.then(step)
        raise ConfigurationError(
            "a suppressed table has no values to look up",
            node=self.node,
            next_step="put to_stream().to_table() after the suppression",
        )

    def store_names(self) -> tuple[str, ...]:
        """The stores in which one looks this table's values up; a suppressed table has none."""
        try:
            return tuple(store.name for store in self.view()[1].stores)
        except ConfigurationError:
            return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicTableNode(TableNode):
    """A topic's table without a store of its own, until something looks into it.

    Attributes:
        generated: The store that it then has.
    """

    generated: PlainStore

    def view(self) -> tuple[tuple[str, ...], AnyView]:
        """See `TableNode`; gives the table its store."""
        self.builder.materialize(self.node)
        return (self.node,), TableView(self.generated)


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedTableNode(TableNode):
    """A join of two tables without a store of its own: what looks into it looks into both.

    Attributes:
        left: The table on the left.
        right: The other.
        joined: How their values become one.
    """

    left: TableNode
    right: TableNode
    joined: JoinedValues

    def view(self) -> tuple[tuple[str, ...], AnyView]:
        """See `TableNode`."""
        of_left, left = self.left.view()
        of_right, right = self.right.view()
        return (*of_left, *of_right), JoinedView(left, right, self.joined)


def table_node_of(
    builder: InternalStreamsBuilder, name: str, parent: str, materialized: Materialized | None, store_name: str
) -> TableNode:
    """A table of what ``parent`` forwards (Kafka's ``KTableSource``); ``store_name``: if it has a store."""
    options = materialized or Materialized()
    store = options.table_store(store_name)
    builder.claim_store(store.name)
    if isinstance(store, VersionedStore):
        versioned = TableSource(store.name, store.history_retention_ms, store.segment_interval_ms)
        builder.add_processor(name, [parent], versioned, stores=[store.name])
        return TableNode(builder, name, store, versioned=True)
    named = options.store_name is not None
    plain = PlainTableSource(store.name, materialized=named)
    builder.add_processor(name, [parent], plain, stores=[store.name] if named else [])
    return TableNode(builder, name, store) if named else TopicTableNode(builder, name, generated=store)


def aggregated_node(
    builder: InternalStreamsBuilder,
    name: str,
    parent: str,
    aggregator: AggregatorSpec,
    store: TableStore,
    *,
    of_table: bool,
) -> TableNode:
    """The table of an aggregation by key."""
    spec = KeyAggregate(store, aggregator, of_table=of_table)
    builder.add_processor(name, [parent], spec, stores=[builder.claim_store(store.name)])
    versioned = isinstance(store, VersionedStore)
    return TableNode(builder, name, store, versioned=versioned, aggregator=aggregator)
