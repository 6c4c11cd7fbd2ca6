"""The operators of a table that return a table: filters, mappers, joins, suppression."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Self

from statelib.calls import KafkasNames
from statelib.dsl.foreign_key_joins import foreign_key_joined_table
from statelib.dsl.grace_search import closing_windows
from statelib.dsl.options import TableJoined
from statelib.dsl.processing import add_transform
from statelib.dsl.table_joins import joined_table
from statelib.dsl.table_node import SuppressedTableNode, TableNode, table_node_of
from statelib.errors.kinds import ConfigurationError
from statelib.operators.mappers.mapping import mapper
from statelib.operators.suppress.operator import Suppress
from statelib.operators.tables.derived import DerivedTable
from statelib.operators.tables.steps import FilterStep, MapStep, TransformStep
from statelib.operators.tables.view import JoinedValues
from statelib.operators.tables.writer import VersionedStore
from statelib.operators.windows.definition import UnlimitedWindows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from statelib.dsl.internal_builder import InternalStreamsBuilder
    from statelib.dsl.options import Materialized, Named
    from statelib.operators.mappers.mapping import MapperLike
    from statelib.operators.processors.definition import ValueTransformerSupplierLike
    from statelib.operators.suppress.definition import Suppressed
    from statelib.operators.tables.steps import TableStep
    from statelib.operators.tables.stored_latest import LookedInto
    from statelib.operators.tables.writer import TableStore
    from statelib.operators.windows.definition import AnyWindows


class Table(KafkasNames):
    """A table.

    Args:
        of: Its node.
    """

    def __init__(self, of: TableNode) -> None:
        self._builder = of.builder
        self.node = of.node
        self.of = of

    @property
    def builder(self) -> InternalStreamsBuilder:
        """Shared by all streams and tables of a topology."""
        return self._builder

    @property
    def queryable_store_name(self) -> str | None:
        """The name of its store, also where it was generated; None: it has none."""
        return self._builder.store_of_table(self.node)

    @property
    def store(self) -> LookedInto | None:
        """The table's own store; None: it has none."""
        return self.of.store

    @property
    def versioned(self) -> bool:
        """Whether the table distinguishes late updates from the latest ones (KIP-889)."""
        return self.of.versioned

    def filter(
        self, predicate: MapperLike, named: Named | None = None, materialized: Materialized | None = None
    ) -> Self:
        """The keys for which ``predicate`` is true; a key that no longer passes is deleted (``KTableFilter``)."""
        return self._step("KTABLE-FILTER", FilterStep(mapper(predicate)), named, materialized)

    def filter_not(
        self, predicate: MapperLike, named: Named | None = None, materialized: Materialized | None = None
    ) -> Self:
        """The keys for which ``predicate`` is false or null."""
        return self._step("KTABLE-FILTER", FilterStep(mapper(predicate), negated=True), named, materialized)

    def map_values(
        self, value: MapperLike, named: Named | None = None, materialized: Materialized | None = None
    ) -> Self:
        """Replaces the value of each key (``KTableMapValues``)."""
        return self._step("KTABLE-MAPVALUES", MapStep(mapper(value)), named, materialized)

    def transform_values(
        self, value: MapperLike, named: Named | None = None, materialized: Materialized | None = None
    ) -> Self:
        """As `map_values`, but the mapper is also called for null values (``KTableTransformValues``)."""
        return self._step("KTABLE-TRANSFORMVALUES", TransformStep(mapper(value)), named, materialized)

    def transform_values_with(
        self,
        transformer_supplier: ValueTransformerSupplierLike,
        named: Named | None = None,
        materialized: Materialized | None = None,
        *,
        store_names: Sequence[str] = (),
        value_type: pa.DataType | None = None,
    ) -> Self:
        """As `transform_values`, by a `ValueTransformerWithKey`, which has stores. Slow: it is called for each change.

        Without a store, the table gets one if an operator looks its values up or needs old values. (Kafka calls the
        transformer once more instead, which may then find other values in its stores.)

        Args:
            transformer_supplier: The transformer's class, or a function or `ValueTransformerWithKeySupplier` that
                returns a new one.
            named: The node's name.
            materialized: The table's store.
            store_names: Stores that it uses: see `KStream.process`.
            value_type: Arrow type of the new values; None: as in this table.

        Raises:
            ConfigurationError: This table is versioned, and the new one is not; or a store is not there.
        """
        builder = self._builder
        if self.versioned and not (materialized and isinstance(materialized.table_store("s"), VersionedStore)):
            raise ConfigurationError(
                "a versioned table is transformed with stores into one that is not",
                node=None if named is None else named.name,
                next_step="give the new table a versioned store, or use transform_values()",
            )
        name = builder.name_of(named, "KTABLE-TRANSFORMVALUES")
        store = None if materialized is None else materialized.store_name
        above = add_transform(builder, self.node, transformer_supplier, store_names, value_type, name, store)
        generated = store or f"{name}-STATE-STORE"
        return self._made(table_node_of(builder, name, above, materialized, generated, described=()))

    def join(
        self,
        other: Table,
        joiner: MapperLike,
        named: Named | TableJoined | None = None,
        materialized: Materialized | None = None,
        *,
        foreign_key: MapperLike | None = None,
    ) -> Self:
        """The keys that both tables have, with values computed from both (Kafka's ``KTableKTableInnerJoin``).

        Each change of either table changes the result, with the later of the two timestamps. Late updates of a
        versioned table are dropped and counted (KIP-914).

        With a ``foreign_key``, each row of this table is joined with the row of the other table that it refers to
        (KIP-213). A change on either side then emits a result for each affected row. Subscriptions and responses go
        through repartition topics.

        Args:
            other: The table on the right. Without a foreign key, it must have as many partitions as this one.
            joiner: A mapper over the columns ``key``, ``left``, ``right``, ``timestamp``.
            named: The node's name; with a foreign key, the prefix of the names of nodes and topics, and, in a
                `TableJoined`, the partitioners of both tables.
            materialized: The store of the joined table; without a name there is no store.
            foreign_key: Mapper from this table's columns ``key`` and ``value`` to the other table's key. A row for
                which it is null is dropped and counted. If the other table's keys have windows, it gives ``key``,
                ``window_start`` and ``window_end`` (integers, ms).
        """
        joined = JoinedValues(mapper(joiner))
        return self._join(other, joined, named, materialized, foreign_key)

    def left_join(
        self,
        other: Table,
        joiner: MapperLike,
        named: Named | TableJoined | None = None,
        materialized: Materialized | None = None,
        *,
        foreign_key: MapperLike | None = None,
    ) -> Self:
        """As `join`, but with all keys of this table; ``right`` is null where the other table has no value."""
        joined = JoinedValues(mapper(joiner), keeps_left=True)
        return self._join(other, joined, named, materialized, foreign_key)

    def outer_join(
        self,
        other: Table,
        joiner: MapperLike,
        named: Named | None = None,
        materialized: Materialized | None = None,
    ) -> Self:
        """As `join`, but with all keys of either table; a missing side is null (``KTableKTableOuterJoin``)."""
        joined = JoinedValues(mapper(joiner), keeps_left=True, keeps_right=True)
        return self._join(other, joined, named, materialized, None)

    def suppress(self, suppressed: Suppressed) -> Self:
        """Holds updates back for a time, or until the windows in the table's keys close (KIP-328).

        While updates of a key are held back, a join with the suppressed table finds the value that was last forwarded,
        and otherwise the value of this table.

        Raises:
            ConfigurationError: The table is versioned. As in Kafka Streams this is refused: the buffer keeps one value
                per key, so the history would be lost. Or there would never be a final result. Or see `closing_windows`.
        """
        if self.versioned:
            raise ConfigurationError(
                "suppress() is only supported for tables that are not versioned",
                store=None if self.store is None else self.store.name,
                node=suppressed.name,
                next_step="suppress a plain table or an aggregation, or leave the table's updates as they are",
            )
        if self.of.windows is not None:
            return self._suppressed_windows(suppressed, self.of.windows)
        if suppressed.final_results:
            closing = closing_windows(self._builder.declared, self.node, suppressed.name)
            return self._suppressed(suppressed, closing.windows, held_ms=closing.held_ms, needs_prior=True)
        return self._suppressed(suppressed, None, needs_prior=True)

    def _suppressed_windows(self, suppressed: Suppressed, windows: AnyWindows) -> Self:
        """Of a table whose windows are known; the buffer has them beside the key."""
        if suppressed.final_results and isinstance(windows, UnlimitedWindows):
            raise ConfigurationError(
                "a window without end never closes, so it has no final result",
                node=suppressed.name,
                next_step="suppress with until_time_limit, or aggregate by TimeWindows",
            )
        counted = suppressed.buffer.byte_limit is not None  # as shipped, prior values count too
        return self._suppressed(suppressed, windows, held_ms=self.of.held_ms, needs_prior=counted)

    def _suppressed(
        self, suppressed: Suppressed, windows: AnyWindows | None, *, held_ms: int = 0, needs_prior: bool
    ) -> Self:
        """The suppressed table; ``held_ms``: how long suppressions above hold updates back."""
        kind = "KTABLE-SUPPRESS"
        name = self._builder.new_name(kind) if suppressed.name is None else suppressed.name
        made = self._builder.new_store_name(kind) if suppressed.name is None else f"{name}-store"
        store = self._builder.claim_store(made)
        spec = Suppress(store, suppressed, windows, held_ms if suppressed.final_results else 0)
        if needs_prior or spec.knows_prior:
            self._builder.request_prior_values(self.node)
        node = self._builder.add_processor(name, [self.node], spec, stores=[store])
        held_ms = max(self.of.held_ms, suppressed.time_limit_ms or 0)
        return self._made(
            SuppressedTableNode(
                self._builder, node, above=self.of, suppress=spec, windows=self.of.windows, held_ms=held_ms
            )
        )

    def _join(
        self,
        other: Table,
        joined: JoinedValues,
        named: Named | TableJoined | None,
        materialized: Materialized | None,
        foreign_key: MapperLike | None,
    ) -> Self:
        self._builder.check_same(other.builder)
        if foreign_key is not None:
            by = mapper(foreign_key)
            return self._made(
                foreign_key_joined_table(self._builder, self.of, other.of, by, joined, named, materialized)
            )
        if isinstance(named, TableJoined):
            raise ConfigurationError(
                "a TableJoined is of a join by a foreign key, and there is none",
                node=named.name,
                next_step='add foreign_key=..., or write Named.as_("name")',
            )
        return self._made(joined_table(self._builder, self.of, other.of, joined, named, materialized))

    def _step(self, kind: str, step: TableStep, named: Named | None, materialized: Materialized | None) -> Self:
        store = None
        if materialized is not None and materialized.store_name is not None:
            store = materialized.table_store(materialized.store_name)
        elif materialized is not None and not isinstance(step, TransformStep):  # Kafka counts the store it leaves out
            self._builder.new_store_name(kind)
        node = self._derived(kind, step, named, store)
        versioned = self.versioned if store is None else isinstance(store, VersionedStore)
        made_of = (self.of, step) if store is None else None
        of = TableNode(self._builder, node, store, made_of, versioned)
        return self._made(replace(of, windows=self.of.windows, held_ms=self.of.held_ms))

    def _derived(self, kind: str, step: TableStep, named: Named | None, store: TableStore | None) -> str:
        """The node of a table that is made of this one."""
        knows_prior = False
        if step.is_filter and not self.versioned:  # it asks for old values, but not for a store
            knows_prior = self._builder.request_prior_values(self.node, materialize=False)
        elif step.is_filter and self._builder.changes_with_prior_values(self.node):
            self._builder.request_prior_values(self.node, materialize=False)
        spec = DerivedTable(step, store, needs_prior=knows_prior, versioned_parent=self.versioned)
        stores = [] if store is None else [self._builder.claim_store(store.name)]
        name = self._builder.name_of(named, kind)
        return self._builder.add_processor(name, [self.node], spec, stores=stores)

    def _made(self, of: TableNode) -> Self:
        return type(self)(of)
