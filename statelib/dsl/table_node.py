"""A table below the DSL's classes: the node that forwards its changes, its store, and how one looks into it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.dsl.options import Materialized
from statelib.errors.kinds import InternalError
from statelib.operators.aggregation.operator import KeyAggregate
from statelib.operators.sessions.looked_into import SessionsLookedInto
from statelib.operators.sessions.operator import SessionAggregate
from statelib.operators.suppress.view import SuppressedView
from statelib.operators.tables.source import PlainTableSource, TableSource
from statelib.operators.tables.view import JoinedView, TableView
from statelib.operators.tables.writer import VersionedStore
from statelib.operators.windows.looked_into import WindowsLookedInto
from statelib.operators.windows.operator import WindowAggregate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.dsl.graph import Role
    from statelib.dsl.internal_builder import InternalStreamsBuilder
    from statelib.operators.aggregation.definition import AggregatorSpec
    from statelib.operators.sliding.operator import SlidingAggregate
    from statelib.operators.suppress.operator import Suppress
    from statelib.operators.tables.steps import TableStep
    from statelib.operators.tables.stored_latest import LookedInto
    from statelib.operators.tables.view import AnyView, JoinedValues
    from statelib.operators.tables.writer import PlainStore, TableStore
    from statelib.operators.windows.definition import AnyWindows
    from statelib.topology.nodes import Described


@dataclass(frozen=True, slots=True)
class TableNode:
    """A table.

    Attributes:
        builder: Shared by all streams and tables of a topology.
        node: What forwards the table's changes.
        store: The table's own; None: it has none.
        made_of: The table that it is made of, and by which step.
        versioned: Whether late updates are told from the latest ones.
        aggregator: What made it, if it is an aggregation.
        windows: Of its keys, where a windowed aggregation has made it, or it is made of the table of one, step by step.
        held_ms: How long time limits above hold a change of such a table back, ms.
    """

    builder: InternalStreamsBuilder
    node: str
    store: LookedInto | None = None
    made_of: tuple[TableNode, TableStep] | None = None
    versioned: bool = False
    aggregator: AggregatorSpec | None = None
    windows: AnyWindows | None = None
    held_ms: int = 0

    def view(self) -> tuple[tuple[str, ...], AnyView]:
        """How a join looks into this table (``KTableValueGetter``), and the nodes of the tables with the view's stores.

        This may give a topic's table its store.
        """
        if self.store is not None:
            return (self.node,), TableView(self.store, (), self.aggregator)
        if self.made_of is not None:
            above, step = self.made_of
            nodes, view = above.view()
            return nodes, view.then(step)
        raise InternalError("a table has neither a store nor another table above it", node=self.node)

    def store_names(self) -> tuple[str, ...]:
        """The stores in which one looks this table's values up."""
        return tuple(store.name for store in self.view()[1].stores)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressedTableNode(TableNode):
    """A suppressed table: what looks into it looks into the buffer and into the table above.

    Attributes:
        above: That table.
        suppress: The suppression.
    """

    above: TableNode
    suppress: Suppress

    def view(self) -> tuple[tuple[str, ...], AnyView]:
        """See `TableNode`."""
        self.builder.request_prior_values(self.above.node)
        nodes, view = self.above.view()
        return (self.node, *nodes), SuppressedView(self.node, self.suppress, view)


def table_node_of(
    builder: InternalStreamsBuilder,
    name: str,
    parent: str,
    materialized: Materialized | None,
    store_name: str,
    *,
    described: Sequence[Described] | None = None,
    role: Role | None = None,
) -> TableNode:
    """A table of what ``parent`` forwards (Kafka's ``KTableSource``).

    Args:
        builder: Collects the nodes.
        name: The table's.
        parent: What it is made of.
        materialized: Its store.
        store_name: The store's name, if it has one and no other name is given.
        described: See `Processor.described`.
        role: See `Role`.
    """
    options = materialized or Materialized()
    store = options.table_store(store_name)
    builder.claim_store(store.name)
    if isinstance(store, VersionedStore):
        versioned = TableSource(store.name, store.history_retention_ms, store.segment_interval_ms)
        builder.add_processor(name, [parent], versioned, stores=[store.name], described=described, role=role)
        return TableNode(builder, name, store, versioned=True)
    named = options.store_name is not None
    plain = PlainTableSource(store.name, materialized=named)
    stores = [store.name] if named else []
    builder.add_processor(name, [parent], plain, stores=stores, described=described, role=role)
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


def windowed_node(
    builder: InternalStreamsBuilder, name: str, spec: WindowAggregate | SlidingAggregate | SessionAggregate
) -> TableNode:
    """The table of a windowed aggregation, of which ``name`` is the node."""
    stored_ms = spec.stored_ms if isinstance(spec, WindowAggregate) else spec.seen_ms
    seen = (stored_ms("kip"), stored_ms("kafka-4.3"))
    kind = SessionsLookedInto if isinstance(spec, SessionAggregate) else WindowsLookedInto
    store = kind(spec.store, name, *seen)
    return TableNode(builder, name, store, aggregator=spec.aggregator, windows=spec.windows)
