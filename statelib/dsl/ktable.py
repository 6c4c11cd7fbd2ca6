"""Tables: what holds now for each key (Kafka's ``KTable``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from statelib.calls import KafkasNames, arguments_checked
from statelib.dsl import foreign_key_joins, grouped_table, kstream, table_joins
from statelib.dsl.closing import closing_windows
from statelib.dsl.options import Materialized, Named
from statelib.errors import ConfigurationError
from statelib.operators.derived_table import DerivedTable, ToStream
from statelib.operators.key_aggregate import KeyAggregate
from statelib.operators.mapping import mapper
from statelib.operators.suppress import Suppress
from statelib.operators.table_source import PlainTableSource, TableSource
from statelib.operators.table_steps import FilterStep, MapStep, TransformStep
from statelib.operators.table_view import JoinedValues, JoinedView, TableView
from statelib.operators.table_writer import PlainStore, VersionedStore
from statelib.windows import UnlimitedWindows

if TYPE_CHECKING:
    from statelib.dsl.internal_builder import InternalStreamsBuilder
    from statelib.dsl.options import Grouped
    from statelib.operators.aggregations import AggregatorSpec
    from statelib.operators.mapping import MapperLike
    from statelib.operators.table_steps import TableStep
    from statelib.operators.table_view import AnyView
    from statelib.operators.table_writer import TableStore
    from statelib.suppressed import Suppressed
    from statelib.windows import AnyWindows


class _Table(KafkasNames):
    """What every table can do, whether its keys have windows or not."""

    def __init__(self, builder: InternalStreamsBuilder, node: str) -> None:
        self._builder = builder
        self.node = node

    @property
    def builder(self) -> InternalStreamsBuilder:
        """Shared by all streams and tables of a topology."""
        return self._builder

    def to_stream(self, named: Named | None = None) -> kstream.KStream:
        """Its updates as a stream, deletions included as nulls."""
        name = self._builder.name_of(named, "KTABLE-TOSTREAM")
        self._builder.add_processor(name, [self.node], ToStream())
        return kstream.KStream(self._builder, name, key_changed=False)

    def _suppressed(
        self, suppressed: Suppressed, windows: AnyWindows | None, *, held_ms: int = 0, needs_prior: bool
    ) -> str:
        """The node of a suppression; ``held_ms``: how long those above hold updates back."""
        kind = "KTABLE-SUPPRESS"
        name = self._builder.new_name(kind) if suppressed.name is None else suppressed.name
        made = self._builder.new_store_name(kind) if suppressed.name is None else f"{name}-store"
        store = self._builder.claim_store(made)
        spec = Suppress(store, suppressed, windows, held_ms if suppressed.final_results else 0)
        if needs_prior or spec.knows_prior:
            self._builder.request_prior_values(self.node)
        return self._builder.add_processor(name, [self.node], spec, stores=[store])

    def _derived(
        self, kind: str, step: TableStep, named: Named | None, store: TableStore | None, *, versioned: bool
    ) -> str:
        """The node of a table that is made of this one."""
        knows_prior = False
        if step.is_filter and not versioned:  # it asks for old values, but not for a store
            knows_prior = self._builder.request_prior_values(self.node, materialize=False)
        spec = DerivedTable(step, store, needs_prior=knows_prior, versioned_parent=versioned)
        stores = [] if store is None else [self._builder.claim_store(store.name)]
        name = self._builder.name_of(named, kind)
        return self._builder.add_processor(name, [self.node], spec, stores=stores)


@arguments_checked
class KTable(_Table):
    """Made by `StreamsBuilder.table`, `KStream.to_table`, by aggregations and by the methods here.

    A *plain* table is what arrived last. A *versioned* one keeps the history of each key (KIP-889), and so does a table
    that is made of it and has no store of its own. Mappers see the columns ``key`` and ``value``.

    Args:
        builder: Shared by all streams and tables of a topology.
        node: What forwards the table's changes.
        store: The table's own; None: it has none.
        made_of: The table that it is made of, and by which step.
        versioned: Whether late updates are told from the latest ones.
        aggregator: What made it, if it is an aggregation.
    """

    def __init__(
        self,
        builder: InternalStreamsBuilder,
        node: str,
        *,
        store: TableStore | None = None,
        made_of: tuple[KTable, TableStep] | None = None,
        versioned: bool = False,
        aggregator: AggregatorSpec | None = None,
    ) -> None:
        super().__init__(builder, node)
        self.store = store
        self.versioned = versioned
        self._made_of = made_of
        self._aggregator = aggregator

    def filter(
        self, predicate: MapperLike, named: Named | None = None, materialized: Materialized | None = None
    ) -> KTable:
        """The keys for whose value ``predicate`` is true; what does not pass any more is deleted (``KTableFilter``)."""
        return self._step("KTABLE-FILTER", FilterStep(mapper(predicate)), named, materialized)

    def filter_not(
        self, predicate: MapperLike, named: Named | None = None, materialized: Materialized | None = None
    ) -> KTable:
        """The keys for whose value ``predicate`` is not true: false, or null."""
        return self._step("KTABLE-FILTER", FilterStep(mapper(predicate), negated=True), named, materialized)

    def map_values(
        self, value: MapperLike, named: Named | None = None, materialized: Materialized | None = None
    ) -> KTable:
        """The same keys with other values (``KTableMapValues``)."""
        return self._step("KTABLE-MAPVALUES", MapStep(mapper(value)), named, materialized)

    def transform_values(
        self, value: MapperLike, named: Named | None = None, materialized: Materialized | None = None
    ) -> KTable:
        """As `map_values`, but the mapper is asked for null, too (``KTableTransformValues``)."""
        return self._step("KTABLE-TRANSFORMVALUES", TransformStep(mapper(value)), named, materialized)

    def join(
        self,
        other: KTable,
        joiner: MapperLike,
        named: Named | None = None,
        materialized: Materialized | None = None,
        *,
        foreign_key: MapperLike | None = None,
    ) -> KTable:
        """The keys that both tables have, with values made of both (Kafka's ``KTableKTableInnerJoin``).

        Each change of either table makes one of the join, at the later timestamp of both. Late updates of a versioned
        table are dropped and counted (KIP-914).

        With a ``foreign_key`` each row of this table is joined with the row of the other that it refers to (KIP-213). A
        change of either side then makes a result for each row concerned; subscriptions and answers are repartitioned.

        Args:
            other: The table on the right; by key it must have as many partitions as this one.
            joiner: A mapper over the columns ``key``, ``left``, ``right``, ``timestamp``.
            named: The node's name; with a foreign key the names of nodes and topics begin with it.
            materialized: The store of the joined table; without a name there is none.
            foreign_key: Makes the key of the other table of this one's columns ``key`` and ``value``. A row for which
                it is null is dropped and counted.
        """
        joined = JoinedValues(mapper(joiner))
        return self._join(other, joined, named, materialized, foreign_key)

    def left_join(
        self,
        other: KTable,
        joiner: MapperLike,
        named: Named | None = None,
        materialized: Materialized | None = None,
        *,
        foreign_key: MapperLike | None = None,
    ) -> KTable:
        """As `join`, but with all keys of this table; ``right`` is null where the other has nothing."""
        joined = JoinedValues(mapper(joiner), keeps_left=True)
        return self._join(other, joined, named, materialized, foreign_key)

    def outer_join(
        self,
        other: KTable,
        joiner: MapperLike,
        named: Named | None = None,
        materialized: Materialized | None = None,
    ) -> KTable:
        """As `join`, but with all keys of either table; what is not there is null (``KTableKTableOuterJoin``)."""
        joined = JoinedValues(mapper(joiner), keeps_left=True, keeps_right=True)
        return table_joins.joined_table(self._builder, self, other, joined, named, materialized)

    def group_by(
        self, key: MapperLike, value: MapperLike = "value", grouped: Grouped | None = None
    ) -> grouped_table.KGroupedTable:
        """Groups the rows by another key, to be aggregated (``KTableRepartitionMap``); repartitions.

        A row that changes is taken back from its group and added to the one that it belongs to from then on.

        Args:
            key: Makes the group of a row's columns ``key`` and ``value``; a row whose group is null is in none.
            value: Makes what is aggregated of them; a row without is in no group.
            grouped: The name of the repartition topic, which all aggregations then share.
        """
        return grouped_table.grouped_table(self._builder, self, mapper(key), mapper(value), grouped)

    def suppress(self, suppressed: Suppressed) -> KTable:
        """Holds updates back for a time, or until the windows close that the table's keys have (KIP-328).

        Raises:
            ConfigurationError: The table is versioned, as Kafka Streams says: what it tells of the past would be lost
                in the buffer, which keeps one value a key. Or see `closing_windows`.
        """
        if self.versioned:
            raise ConfigurationError(
                "suppress() is only supported for tables that are not versioned",
                store=None if self.store is None else self.store.name,
                node=suppressed.name,
                next_step="suppress a plain table or an aggregation, or leave the table's updates as they are",
            )
        if suppressed.final_results:
            closing = closing_windows(self._builder.declared, self.node, suppressed.name)
            node = self._suppressed(suppressed, closing.windows, held_ms=closing.held_ms, needs_prior=True)
            return KTable(self._builder, node)
        return KTable(self._builder, self._suppressed(suppressed, None, needs_prior=True))

    def view(self) -> tuple[tuple[str, ...], AnyView]:
        """How a join looks into this table (``KTableValueGetter``), and the nodes of the tables with the view's stores.

        Raises:
            ConfigurationError: There is no such store.
        """
        if self.store is not None:
            return (self.node,), TableView(self.store, (), self._aggregator)
        if self._made_of is not None:
            above, step = self._made_of
            nodes, view = above.view()
            return nodes, view.then(step)
        raise ConfigurationError(
            "a suppressed table cannot be looked into",
            node=self.node,
            next_step="put to_stream().to_table() between",
        )

    def store_names(self) -> tuple[str, ...]:
        """The stores in which one looks this table's values up; a suppressed table has none."""
        try:
            return tuple(store.name for store in self.view()[1].stores)
        except ConfigurationError:
            return ()

    def _join(
        self,
        other: KTable,
        joined: JoinedValues,
        named: Named | None,
        materialized: Materialized | None,
        foreign_key: MapperLike | None,
    ) -> KTable:
        self._builder.check_same(other.builder)
        if foreign_key is None:
            return table_joins.joined_table(self._builder, self, other, joined, named, materialized)
        return foreign_key_joins.foreign_key_joined_table(
            self._builder, self, other, mapper(foreign_key), joined, named, materialized
        )

    def _step(self, kind: str, step: TableStep, named: Named | None, materialized: Materialized | None) -> KTable:
        store = None
        if materialized is not None and materialized.store_name is not None:
            store = materialized.table_store(materialized.store_name)
        elif materialized is not None and not isinstance(step, TransformStep):  # Kafka counts the store it leaves out
            self._builder.new_store_name(kind)
        if isinstance(store, VersionedStore) and step.is_filter and not self.versioned:
            raise ConfigurationError(
                "what a filter leaves out of a plain table has no history to be kept",
                store=store.name,
                next_step="filter a versioned table, or put to_stream().to_table() behind the filter",
            )
        node = self._derived(kind, step, named, store, versioned=self.versioned)
        versioned = self.versioned if store is None else isinstance(store, VersionedStore)
        made_of = (self, step) if store is None else None
        return KTable(self._builder, node, store=store, made_of=made_of, versioned=versioned)


@arguments_checked
class TopicTable(KTable):
    """A topic's table without a store of its own, until something looks into it."""

    def __init__(self, builder: InternalStreamsBuilder, node: str, store: PlainStore) -> None:
        super().__init__(builder, node)
        self._generated = store

    def view(self) -> tuple[tuple[str, ...], AnyView]:
        """See `KTable`; gives the table its store."""
        self._builder.materialize(self.node)
        return (self.node,), TableView(self._generated)


@arguments_checked
class JoinedTable(KTable):
    """A join of two tables without a store of its own: what looks into it looks into both."""

    def __init__(
        self, builder: InternalStreamsBuilder, node: str, left: KTable, right: KTable, joined: JoinedValues
    ) -> None:
        super().__init__(builder, node)
        self._left = left
        self._right = right
        self._joined = joined

    def view(self) -> tuple[tuple[str, ...], AnyView]:
        """See `KTable`."""
        of_left, left = self._left.view()
        of_right, right = self._right.view()
        return (*of_left, *of_right), JoinedView(left, right, self._joined)


def table_of(
    builder: InternalStreamsBuilder, name: str, parent: str, materialized: Materialized | None, store_name: str
) -> KTable:
    """A table of what ``parent`` forwards (Kafka's ``KTableSource``); ``store_name``: if it has a store."""
    options = materialized or Materialized()
    store = options.table_store(store_name)
    builder.claim_store(store.name)
    if isinstance(store, VersionedStore):
        versioned = TableSource(store.name, store.history_retention_ms, store.segment_interval_ms)
        builder.add_processor(name, [parent], versioned, stores=[store.name])
        return KTable(builder, name, store=store, versioned=True)
    named = options.store_name is not None
    plain = PlainTableSource(store.name, materialized=named)
    builder.add_processor(name, [parent], plain, stores=[store.name] if named else [])
    return KTable(builder, name, store=store) if named else TopicTable(builder, name, store)


def aggregated_table(
    builder: InternalStreamsBuilder,
    name: str,
    parent: str,
    aggregator: AggregatorSpec,
    store: TableStore,
    *,
    of_table: bool,
) -> KTable:
    """The table of an aggregation by key."""
    spec = KeyAggregate(store, aggregator, of_table=of_table)
    builder.add_processor(name, [parent], spec, stores=[builder.claim_store(store.name)])
    versioned = isinstance(store, VersionedStore)
    return KTable(builder, name, store=store, versioned=versioned, aggregator=aggregator)


@arguments_checked
class WindowedKTable(_Table):
    """A table with windowed keys (Kafka's ``KTable<Windowed<K>, V>``).

    Made by the aggregations of `TimeWindowedKStream` and `SessionWindowedKStream`.

    Mappers see the columns ``key``, ``value``, ``window_start`` and ``window_end``.

    Args:
        builder: Shared by all streams and tables of a topology.
        node: What forwards the table's changes.
        windows: Of its keys.
        held_ms: How long time limits above hold a change back, ms.
    """

    def __init__(self, builder: InternalStreamsBuilder, node: str, *, windows: AnyWindows, held_ms: int = 0) -> None:
        super().__init__(builder, node)
        self._windows = windows
        self._held_ms = held_ms

    def filter(self, predicate: MapperLike, named: Named | None = None) -> Self:
        """The windows for whose value ``predicate`` is true; what does not pass any more is deleted."""
        return self._step("KTABLE-FILTER", FilterStep(mapper(predicate)), named)

    def filter_not(self, predicate: MapperLike, named: Named | None = None) -> Self:
        """The windows for whose value ``predicate`` is not true: false, or null."""
        return self._step("KTABLE-FILTER", FilterStep(mapper(predicate), negated=True), named)

    def map_values(self, value: MapperLike, named: Named | None = None) -> Self:
        """The same windows with other values."""
        return self._step("KTABLE-MAPVALUES", MapStep(mapper(value)), named)

    def transform_values(self, value: MapperLike, named: Named | None = None) -> Self:
        """As `map_values`, but the mapper is asked for null, too."""
        return self._step("KTABLE-TRANSFORMVALUES", TransformStep(mapper(value)), named)

    def group_by(
        self, key: MapperLike, value: MapperLike = "value", grouped: Grouped | None = None
    ) -> grouped_table.KGroupedTable:
        """Groups the windows by another key, which takes the window off: see `KTable.group_by`.

        Args:
            key: Makes the group of a row's columns ``key``, ``value``, ``window_start`` and ``window_end``.
            value: Makes what is aggregated of them.
            grouped: The name of the repartition topic, which all aggregations then share.
        """
        return grouped_table.grouped_table(self._builder, self, mapper(key), mapper(value), grouped)

    def suppress(self, suppressed: Suppressed) -> WindowedKTable:
        """Holds updates back: until windows close, or for a time (KIP-328).

        Raises:
            ConfigurationError: There would never be a final result.
        """
        if suppressed.final_results and isinstance(self._windows, UnlimitedWindows):
            raise ConfigurationError(
                "a window without end never closes, so it has no final result",
                node=suppressed.name,
                next_step="suppress with until_time_limit, or aggregate by TimeWindows",
            )
        counted = suppressed.buffer.byte_limit is not None  # as shipped, prior values count too
        node = self._suppressed(suppressed, self._windows, held_ms=self._held_ms, needs_prior=counted)
        held_ms = max(self._held_ms, suppressed.time_limit_ms or 0)
        return WindowedKTable(self._builder, node, windows=self._windows, held_ms=held_ms)

    def _step(self, kind: str, step: TableStep, named: Named | None) -> Self:
        node = self._derived(kind, step, named, None, versioned=False)
        return type(self)(self._builder, node, windows=self._windows, held_ms=self._held_ms)
