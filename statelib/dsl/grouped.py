"""Records grouped by key, and by windows (Kafka's ``KGroupedStream``, ``TimeWindowedKStream`` and the like)."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from statelib.calls import KafkasNames, arguments_checked
from statelib.day_windows import DayWindows
from statelib.dsl import kstream
from statelib.dsl.ktable import WindowedKTable, aggregated_table
from statelib.dsl.options import Materialized, Named
from statelib.errors import ConfigurationError
from statelib.operators.aggregations import Aggregate, Reduce, several, single
from statelib.operators.distinct import Distinct
from statelib.operators.session_aggregate import SessionAggregate
from statelib.operators.sliding_aggregate import SlidingAggregate
from statelib.operators.sql_functions import count, max_, mean_, min_, sum_
from statelib.operators.window_aggregate import WindowAggregate
from statelib.windows import SessionWindows, SlidingWindows, TimeWindows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    import pyarrow as pa

    from statelib.dsl.internal_builder import InternalStreamsBuilder
    from statelib.dsl.kstream import KStream
    from statelib.dsl.ktable import KTable
    from statelib.dsl.repartitioning import Grouping
    from statelib.operators.aggregations import AggregatorSpec
    from statelib.operators.mapping import MapperLike
    from statelib.operators.sql_functions import Aggregation
    from statelib.windows import AlignedWindows, AnyWindows


@arguments_checked
class KGroupedStream(KafkasNames):
    """Kafka's ``KGroupedStream``, made by `KStream.group_by_key` and `KStream.group_by`."""

    def __init__(self, grouping: Grouping) -> None:
        self._grouping = grouping

    @overload
    def windowed_by(self, windows: AlignedWindows | SlidingWindows) -> TimeWindowedKStream: ...
    @overload
    def windowed_by(self, windows: SessionWindows) -> SessionWindowedKStream: ...
    def windowed_by(self, windows: AnyWindows) -> TimeWindowedKStream | SessionWindowedKStream:
        """Groups further, by windows of time (days and one that never ends among them), sliding windows or sessions."""
        if isinstance(windows, SessionWindows):
            return SessionWindowedKStream(self._grouping, windows)
        return TimeWindowedKStream(self._grouping, windows)

    def count(self, materialized: Materialized | None = None, named: Named | None = None) -> KTable:
        """How many records each key has; those with a null value are dropped (``KStreamAggregate``)."""
        count_for_nothing(self._grouping.builder, materialized)
        return self._table("KSTREAM-AGGREGATE", single(count()), materialized, named)

    def sum(self, of: MapperLike, materialized: Materialized | None = None, named: Named | None = None) -> KTable:
        """The sum of ``of`` for each key."""
        return self._table("KSTREAM-AGGREGATE", single(sum_(of)), materialized, named)

    def min(self, of: MapperLike, materialized: Materialized | None = None, named: Named | None = None) -> KTable:
        """The smallest of ``of`` for each key."""
        return self._table("KSTREAM-AGGREGATE", single(min_(of)), materialized, named)

    def max(self, of: MapperLike, materialized: Materialized | None = None, named: Named | None = None) -> KTable:
        """The largest of ``of`` for each key."""
        return self._table("KSTREAM-AGGREGATE", single(max_(of)), materialized, named)

    def mean(self, of: MapperLike, materialized: Materialized | None = None, named: Named | None = None) -> KTable:
        """The arithmetic mean of ``of`` for each key."""
        return self._table("KSTREAM-AGGREGATE", single(mean_(of)), materialized, named)

    def aggregate(
        self, functions: Mapping[str, Aggregation], materialized: Materialized | None = None, named: Named | None = None
    ) -> KTable:
        """Several aggregations at once: ``aggregate({"flights": count(), "delay": mean_("dep_delay")})``."""
        return self._table("KSTREAM-AGGREGATE", several(**functions), materialized, named)

    def reduce(
        self, reducer: Callable[[Any, Any], Any], materialized: Materialized | None = None, named: Named | None = None
    ) -> KTable:
        """Any Python function of the aggregate and the next value, called for each record: the slow way.

        The first value is the aggregate as it is; None deletes it (``KStreamReduce``).
        """
        return self._table("KSTREAM-REDUCE", Reduce(reducer), materialized, named)

    def aggregate_with(
        self,
        initializer: Callable[[], Any],
        aggregator: Callable[[Any, Any, Any], Any],
        arrow_type: pa.DataType,
        materialized: Materialized | None = None,
        named: Named | None = None,
    ) -> KTable:
        """Any Python function of key, value and aggregate, called for each record: the slow way."""
        aggregate = Aggregate(initializer, aggregator, arrow_type)
        return self._table("KSTREAM-AGGREGATE", aggregate, materialized, named)

    def _table(
        self, kind: str, aggregator: AggregatorSpec, materialized: Materialized | None, named: Named | None
    ) -> KTable:
        builder = self._grouping.builder
        store = (materialized or Materialized()).table_store(builder.store_name_of(materialized, kind))
        name = builder.name_of(named, kind)
        parent = self._grouping.for_stream_aggregation(store.name)
        return aggregated_table(builder, name, parent, aggregator, store, of_table=False)


def count_for_nothing(builder: InternalStreamsBuilder, materialized: Materialized | None) -> None:
    """Kafka's ``count(Materialized)`` makes a store's name that it never uses, where none is given (not if sliding)."""
    if materialized is not None and materialized.store_name is None:
        builder.new_store_name("KSTREAM-AGGREGATE")


class _WindowedKStream(KafkasNames):
    """What can be computed of any windows. Every method takes a store's name or retention and a node's name."""

    def __init__(self, grouping: Grouping, windows: AnyWindows) -> None:
        self._grouping = grouping
        self._builder = grouping.builder
        self._windows = windows

    def count(self, materialized: Materialized | None = None, named: Named | None = None) -> WindowedKTable:
        """How many records each key has in each window."""
        if not isinstance(self._windows, SlidingWindows):
            count_for_nothing(self._builder, materialized)
        return self._table("KSTREAM-AGGREGATE", single(count()), materialized, named)

    def sum(
        self, of: MapperLike, materialized: Materialized | None = None, named: Named | None = None
    ) -> WindowedKTable:
        """The sum of ``of`` for each key and window."""
        return self._table("KSTREAM-AGGREGATE", single(sum_(of)), materialized, named)

    def min(
        self, of: MapperLike, materialized: Materialized | None = None, named: Named | None = None
    ) -> WindowedKTable:
        """The smallest of ``of`` for each key and window."""
        return self._table("KSTREAM-AGGREGATE", single(min_(of)), materialized, named)

    def max(
        self, of: MapperLike, materialized: Materialized | None = None, named: Named | None = None
    ) -> WindowedKTable:
        """The largest of ``of`` for each key and window."""
        return self._table("KSTREAM-AGGREGATE", single(max_(of)), materialized, named)

    def mean(
        self, of: MapperLike, materialized: Materialized | None = None, named: Named | None = None
    ) -> WindowedKTable:
        """The arithmetic mean of ``of`` for each key and window."""
        return self._table("KSTREAM-AGGREGATE", single(mean_(of)), materialized, named)

    def aggregate(
        self, functions: Mapping[str, Aggregation], materialized: Materialized | None = None, named: Named | None = None
    ) -> WindowedKTable:
        """Several aggregations at once: ``aggregate({"flights": count(), "delay": mean_("dep_delay")})``."""
        return self._table("KSTREAM-AGGREGATE", several(**functions), materialized, named)

    def reduce(
        self, reducer: Callable[[Any, Any], Any], materialized: Materialized | None = None, named: Named | None = None
    ) -> WindowedKTable:
        """Any Python function of the aggregate and the next value, called for each record: the slow way.

        The aggregates of sessions that become one are reduced by it, too.
        """
        return self._table("KSTREAM-REDUCE", Reduce(reducer), materialized, named)

    def distinct(self, materialized: Materialized | None = None, named: Named | None = None) -> KStream:
        """The first record of each new window, under the windowed key (KIP-655, initial proposal).

        Any further record that falls into the window, or extends or merges sessions, is a duplicate. What comes too
        late for its window is dropped and counted.

        Raises:
            ConfigurationError: The windows overlap or never end.
        """
        windows, name = self._windows, named.name if named else None
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
        self._builder.add_processor(name, [self._grouping.for_stream_aggregation(store)], spec, stores=[store])
        return kstream.KStream(self._builder, name, key_changed=False)

    def _table(
        self, kind: str, aggregator: AggregatorSpec, materialized: Materialized | None, named: Named | None
    ) -> WindowedKTable:
        options = materialized or Materialized()
        store = self._builder.claim_store(self._builder.store_name_of(materialized, kind))
        name = self._builder.name_of(named, kind)
        parent = self._grouping.for_stream_aggregation(store)
        spec: WindowAggregate | SlidingAggregate | SessionAggregate
        if isinstance(self._windows, SessionWindows):
            spec = SessionAggregate(store, self._windows, aggregator, options.retention_ms)
        elif isinstance(self._windows, SlidingWindows):
            spec = SlidingAggregate(store, self._windows, aggregator, options.retention_ms)
        else:
            spec = WindowAggregate(store, self._windows, aggregator, options.retention_ms)
        self._builder.add_processor(name, [parent], spec, stores=[store])
        return WindowedKTable(self._builder, name, windows=self._windows)


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
        """Any Python function of key, value and aggregate, called for each record: the slow way."""
        return self._table("KSTREAM-AGGREGATE", Aggregate(initializer, aggregator, arrow_type), materialized, named)


@arguments_checked
class SessionWindowedKStream(_WindowedKStream):
    """Kafka's ``SessionWindowedKStream``, made by `KGroupedStream.windowed_by`.

    Sessions that merge leave the table with a tombstone each.
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
        """Any Python function of key, value and aggregate, called for each record: the slow way.

        ``merger`` makes one aggregate of those of two sessions. As in Kafka it is called for each session that a record
        belongs to, with the key, the aggregate so far (at first the initial one) and the session's.
        """
        aggregate = Aggregate(initializer, aggregator, arrow_type, merger)
        return self._table("KSTREAM-AGGREGATE", aggregate, materialized, named)
