"""Streams, tables and grouped streams and tables, whose methods return each other.

Methods that return the same kind are in `statelib.dsl.stream` and `statelib.dsl.table`, aggregations in
`statelib.dsl.stream_aggregations` and `statelib.dsl.table_aggregations`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, overload

from statelib.calls import arguments_checked
from statelib.dsl.branched import BranchedKStream
from statelib.dsl.cogrouped import CogroupedKStream
from statelib.dsl.cogrouping import Cogrouping
from statelib.dsl.options import Materialized, Named
from statelib.dsl.repartitioning import Grouping
from statelib.dsl.stream import Stream
from statelib.dsl.stream_aggregations import StreamAggregations, windowed_spec
from statelib.dsl.table import Table
from statelib.dsl.table_aggregations import GroupedRows, grouped_rows
from statelib.dsl.table_node import aggregated_node, table_node_of, windowed_node
from statelib.errors.kinds import ConfigurationError
from statelib.operators.aggregation.definition import Aggregate
from statelib.operators.deduplication.distinct import Distinct
from statelib.operators.mappers.mapping import mapper
from statelib.operators.tables.derived import ToStream
from statelib.operators.windows.day_windows import DayWindows
from statelib.operators.windows.definition import SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows
from statelib.operators.windows.emit_strategy import EmitStrategy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    import pyarrow as pa

    from statelib.dsl.options import Grouped
    from statelib.operators.aggregation.definition import AggregatorSpec
    from statelib.operators.aggregation.sql_functions import Aggregation
    from statelib.operators.mappers.mapping import MapperLike
    from statelib.operators.windows.definition import AlignedWindows, AnyWindows


@arguments_checked
class KStream(Stream):
    """Kafka's ``KStream``, made by `StreamsBuilder.stream`. Each method returns a new stream or table.

    Mappers are paths, expressions or functions: see `statelib.operators.mappers.mapping`.
    """

    def split(self, named: Named | None = None) -> BranchedKStream[KStream]:
        """Splits the stream into branches. Each record goes to at most one of them (KIP-418).

        For example::

            late = pc.field("value", "delay") > 60
            branches = flights.split(Named.as_("to-")).branch(late, Branched.as_("apologise"))
            branches.default_branch(Branched.as_("ignore"))  # {"to-apologise": ..., "to-ignore": ...}
        """

        def stream_of(node: str) -> KStream:
            return KStream(self._builder, node, key_changed=self._key_changed)

        return BranchedKStream(self._builder, self.node, named, stream_of=stream_of)

    def to_table(self, named: Named | None = None, materialized: Materialized | None = None) -> KTable:
        """Takes the stream's records as updates of a table. A null value deletes the key (KIP-523).

        A stream whose keys were changed is repartitioned first.
        """
        kind = "KSTREAM-TOTABLE"
        name = self._builder.name_of(named, kind)
        store = self._builder.store_name_of(materialized, kind)
        stream = self._through(name, role="repartition") if self._key_changed else self
        return KTable(table_node_of(self._builder, name, stream.node, materialized, store))

    def group_by_key(self, grouped: Grouped | None = None) -> KGroupedStream:
        """Groups records by their key."""
        name = grouped.name if grouped else None
        return KGroupedStream(Grouping(self._builder, self.node, name, needs_repartition=self._key_changed))

    def group_by(self, key: MapperLike, grouped: Grouped | None = None) -> KGroupedStream:
        """Groups records by another key, which repartitions the stream."""
        return self.select_key(key, Named(grouped.name) if grouped and grouped.name else None).group_by_key(grouped)


@arguments_checked
class KTable(Table):
    """Kafka's ``KTable``, made by `StreamsBuilder.table`, `KStream.to_table`, aggregations and the methods here.

    A *plain* table holds the value of each key that arrived last. A *versioned* table keeps the history of each key
    (KIP-889); so does a table derived from it that has no store of its own. Mappers see the columns ``key`` and
    ``value``; of windowed keys also ``window_start`` and ``window_end``.
    """

    def to_stream(self, key: MapperLike | None = None, named: Named | None = None) -> KStream:
        """Its updates as a stream, deletions included as nulls; with ``key`` under another key (`select_key`)."""
        name = self.builder.name_of(named, "KTABLE-TOSTREAM")
        self.builder.add_processor(name, [self.node], ToStream())
        stream = KStream(self.builder, name, key_changed=False)
        return stream if key is None else stream.select_key(key)

    def group_by(self, key: MapperLike, value: MapperLike = "value", grouped: Grouped | None = None) -> KGroupedTable:
        """Groups the rows by another key for an aggregation, which repartitions the table (``KTableRepartitionMap``).

        When a row changes, its old value is subtracted from its old group and its new value added to its new group.
        Groups have no windows.

        Args:
            key: Mapper from the columns ``key`` and ``value`` to the group. A row whose group is null is in no group.
            value: Mapper from the same columns to the value to aggregate. A row whose value is null is in no group.
            grouped: The name of the repartition topic, which all aggregations then share.
        """
        return KGroupedTable(grouped_rows(self, mapper(key), mapper(value), grouped))


@arguments_checked
class WindowedKTable(KTable):
    """A table with windowed keys (Kafka's ``KTable<Windowed<K>, V>``), which can do all that any table can.

    Made by the aggregations of `TimeWindowedKStream` and `SessionWindowedKStream`. It has a row for each key and window
    in its store: one that is out of retention is gone, without a deletion that anybody is told of.

    Mappers see the columns ``key``, ``value``, ``window_start`` and ``window_end``.
    """


@arguments_checked
class KGroupedStream(StreamAggregations["KTable"]):
    """Kafka's ``KGroupedStream``, made by `KStream.group_by_key` and `KStream.group_by`."""

    @overload
    def windowed_by(self, windows: AlignedWindows | SlidingWindows) -> TimeWindowedKStream: ...
    @overload
    def windowed_by(self, windows: SessionWindows) -> SessionWindowedKStream: ...
    def windowed_by(self, windows: AnyWindows) -> TimeWindowedKStream | SessionWindowedKStream:
        """Groups further by time windows, day windows, one unlimited window, sliding windows or sessions."""
        if isinstance(windows, SessionWindows):
            return SessionWindowedKStream(self.grouping, windows)
        return TimeWindowedKStream(self.grouping, windows)

    def cogroup(
        self, aggregator: Mapping[str, Aggregation] | Callable[[Any, Any, Any], Any]
    ) -> CogroupedKStream[KTable, WindowedKTable]:
        """Aggregates this stream together with others, into one table (KIP-150).

        For example::

            clicks.cogroup({"clicks": count()}).cogroup(orders, {"orders": count(), "spent": sum_("amount")})

        Args:
            aggregator: What this stream's records give to the aggregate: functions with names, or a Python function of
                key, value and aggregate.
        """
        cogrouping = Cogrouping(self._builder)
        cogrouping.add(self.grouping, aggregator)

        return CogroupedKStream(cogrouping, KTable, WindowedKTable)

    def aggregate_with(
        self,
        initializer: Callable[[], Any],
        aggregator: Callable[[Any, Any, Any], Any],
        arrow_type: pa.DataType,
        materialized: Materialized | None = None,
        named: Named | None = None,
    ) -> KTable:
        """Aggregates with a Python function of key, value and aggregate. Slow: it is called for each record."""
        aggregate = Aggregate(initializer, aggregator, arrow_type)
        return self._table("KSTREAM-AGGREGATE", aggregate, materialized, named)

    def _table(
        self, kind: str, aggregator: AggregatorSpec, materialized: Materialized | None, named: Named | None
    ) -> KTable:
        builder = self._builder
        store = (materialized or Materialized()).table_store(builder.store_name_of(materialized, kind))
        name = builder.name_of(named, kind)
        parent = self.grouping.for_stream_aggregation(store.name)
        return KTable(aggregated_node(builder, name, parent, aggregator, store, of_table=False))


class _WindowedKStream(StreamAggregations["WindowedKTable"]):
    """What can be computed of any windows."""

    def __init__(self, grouping: Grouping, windows: AnyWindows) -> None:
        super().__init__(grouping, counts_for_nothing=not isinstance(windows, SlidingWindows))
        self._windows = windows
        self._emits = EmitStrategy.on_window_update()

    def emit_strategy(self, emit_strategy: EmitStrategy) -> Self:
        """When results are forwarded (KIP-825); changes this object, and returns it, as Kafka does.

        With `EmitStrategy.on_window_close`, a window's final result is forwarded when the window closes, once; nothing
        is forwarded before. That is what ``suppress(Suppressed.until_window_closes(...))`` does, without a buffer
        beside the windows' store.

        Raises:
            ConfigurationError: The windows never close.
        """
        if emit_strategy.final and isinstance(self._windows, UnlimitedWindows):
            raise ConfigurationError(
                "a window without end never closes, so it has no final result",
                next_step="leave emit_strategy() out, or aggregate by TimeWindows",
            )
        self._emits = emit_strategy
        return self

    def distinct(self, materialized: Materialized | None = None, named: Named | None = None) -> KStream:
        """The first record of each new window, under the windowed key (KIP-655, initial proposal).

        Any further record in the window, or one that extends or merges sessions, is a duplicate. A record that is too
        late for its window is dropped and counted.

        Raises:
            ConfigurationError: The windows overlap or never end, or final results are wanted (`emit_strategy`).
        """
        windows, name = self._windows, named.name if named else None
        if self._emits.final:
            raise ConfigurationError(
                "distinct() forwards the first record of a window, which cannot wait for its close",
                node=name,
                next_step='leave emit_strategy() out, or aggregate: aggregate({"first": first("field")})',
            )
        if not isinstance(windows, TimeWindows | DayWindows | SessionWindows) or (
            isinstance(windows, TimeWindows) and windows.advance_ms != windows.size_ms
        ):
            raise ConfigurationError(
                "distinct() needs tumbling windows, days or sessions, so that a record is in one window",
                node=name,
                next_step="leave advance_by() out, or use deduplicate_by_key(), which has no windows",
            )
        options = materialized or Materialized()
        name = self._builder.name_of(name, "KSTREAM-DISTINCT")
        store = self._builder.claim_store(options.store_name or f"{name}-STORE")
        spec = Distinct(store, windows, options.retention_ms)
        self._builder.add_processor(name, [self.grouping.for_stream_aggregation(store)], spec, stores=[store])
        return KStream(self._builder, name, key_changed=False)

    def _table(
        self, kind: str, aggregator: AggregatorSpec, materialized: Materialized | None, named: Named | None
    ) -> WindowedKTable:
        options = materialized or Materialized()
        store = self._builder.claim_store(self._builder.store_name_of(materialized, kind))
        name = self._builder.name_of(named, kind)
        parent = self.grouping.for_stream_aggregation(store)
        spec = windowed_spec(store, self._windows, aggregator, options.retention_ms, final=self._emits.final)
        self._builder.add_processor(name, [parent], spec, stores=[store])
        return WindowedKTable(windowed_node(self._builder, name, spec))


@arguments_checked
class TimeWindowedKStream(_WindowedKStream):
    """Kafka's ``TimeWindowedKStream``, made by `KGroupedStream.windowed_by`."""

    def aggregate_with(
        self,
        initializer: Callable[[], Any],
        aggregator: Callable[[Any, Any, Any], Any],
        arrow_type: pa.DataType,
        materialized: Materialized | None = None,
        named: Named | None = None,
    ) -> WindowedKTable:
        """Aggregates with a Python function of key, value and aggregate. Slow: it is called for each record."""
        return self._table("KSTREAM-AGGREGATE", Aggregate(initializer, aggregator, arrow_type), materialized, named)


@arguments_checked
class SessionWindowedKStream(_WindowedKStream):
    """Kafka's ``SessionWindowedKStream``, made by `KGroupedStream.windowed_by`.

    When sessions merge, each of the old sessions is deleted with a tombstone.
    """

    def aggregate_with(
        self,
        initializer: Callable[[], Any],
        aggregator: Callable[[Any, Any, Any], Any],
        merger: Callable[[Any, Any, Any], Any],
        arrow_type: pa.DataType,
        materialized: Materialized | None = None,
        named: Named | None = None,
    ) -> WindowedKTable:
        """Aggregates with a Python function of key, value and aggregate. Slow: it is called for each record.

        ``merger`` combines the aggregates of two sessions. As in Kafka, it is called for each session that a record
        belongs to, with the key, the aggregate so far (initially the initializer's) and the session's aggregate.
        """
        aggregate = Aggregate(initializer, aggregator, arrow_type, merger)
        return self._table("KSTREAM-AGGREGATE", aggregate, materialized, named)


@arguments_checked
class KGroupedTable(GroupedRows["KTable"]):
    """Kafka's ``KGroupedTable``, made by `KTable.group_by`.

    Every change of a row subtracts the row's old value from the aggregate, if there is one, and adds its new value. So
    an aggregation must be able to subtract: counts, sums, means, or any adder with a subtractor.
    """

    def _table(self, kind: str, spec: AggregatorSpec, materialized: Materialized | None, named: Named | None) -> KTable:
        return KTable(self._node(kind, spec, materialized, named))
