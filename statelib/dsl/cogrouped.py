"""Streams that are aggregated together, as users meet them (Kafka's ``CogroupedKStream``, KIP-150)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Self, TypeVar, overload

from statelib.calls import KafkasNames, arguments_checked
from statelib.dsl.options import Materialized
from statelib.dsl.stream_aggregations import windowed_spec
from statelib.dsl.table_node import TableNode, windowed_node
from statelib.operators.aggregation.operator import KeyAggregate
from statelib.operators.tables.writer import VersionedStore
from statelib.operators.windows.definition import SessionWindows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    import pyarrow as pa

    from statelib.dsl.cogrouping import Cogrouping
    from statelib.dsl.options import Named
    from statelib.dsl.streams_and_tables import KGroupedStream
    from statelib.operators.aggregation.definition import AggregatorSpec
    from statelib.operators.aggregation.sql_functions import Aggregation
    from statelib.operators.windows.definition import AlignedWindows, AnyWindows, SlidingWindows

Table = TypeVar("Table")
"""The table of the results."""

Windowed = TypeVar("Windowed")
"""The same with windows."""


@arguments_checked
class CogroupedKStream(KafkasNames, Generic[Table, Windowed]):
    """Kafka's ``CogroupedKStream``, made by `KGroupedStream.cogroup`: streams that are aggregated into one table.

    A record of any of them updates the aggregate of its key. Each update is forwarded.

    Args:
        cogrouping: The streams.
        table_of: Makes the table of what a node forwards.
        windowed_of: The same, with windows.
    """

    def __init__(
        self,
        cogrouping: Cogrouping,
        table_of: Callable[[TableNode], Table],
        windowed_of: Callable[[TableNode], Windowed],
    ) -> None:
        self._cogrouping = cogrouping
        self._table_of = table_of
        self._windowed_of = windowed_of

    def cogroup(
        self,
        grouped_stream: KGroupedStream,
        aggregator: Mapping[str, Aggregation] | Callable[[Any, Any, Any], Any],
    ) -> Self:
        """Adds a stream, and returns this same object, as Kafka does.

        Args:
            grouped_stream: The stream. If it is there already, it gets the new aggregator.
            aggregator: What its records give to the aggregate: see `KGroupedStream.cogroup`. The names of results must
                differ from those of the other streams.
        """
        self._cogrouping.add(grouped_stream.grouping, aggregator)
        return self

    @overload
    def windowed_by(self, windows: AlignedWindows | SlidingWindows) -> TimeWindowedCogroupedKStream[Windowed]: ...
    @overload
    def windowed_by(self, windows: SessionWindows) -> SessionWindowedCogroupedKStream[Windowed]: ...
    def windowed_by(
        self, windows: AnyWindows
    ) -> TimeWindowedCogroupedKStream[Windowed] | SessionWindowedCogroupedKStream[Windowed]:
        """Groups further by time windows, day windows, one unlimited window, sliding windows or sessions."""
        if isinstance(windows, SessionWindows):
            return SessionWindowedCogroupedKStream(self._cogrouping, windows, self._windowed_of)
        return TimeWindowedCogroupedKStream(self._cogrouping, windows, self._windowed_of)

    def aggregate(self, materialized: Materialized | None = None, named: Named | None = None) -> Table:
        """The results of all streams' functions, as the fields of a struct."""
        return self._table(self._cogrouping.functions(), materialized, named)

    def aggregate_with(
        self,
        initializer: Callable[[], Any],
        arrow_type: pa.DataType,
        materialized: Materialized | None = None,
        named: Named | None = None,
    ) -> Table:
        """Aggregates with the streams' Python functions. Slow: one is called for each record."""
        return self._table(self._cogrouping.python_functions(initializer, arrow_type), materialized, named)

    def _table(self, aggregator: AggregatorSpec, materialized: Materialized | None, named: Named | None) -> Table:
        cogrouping = self._cogrouping
        store = (materialized or Materialized()).table_store(cogrouping.new_store_name(materialized))
        node = cogrouping.add_aggregation(KeyAggregate(store, aggregator), store.name, named)
        versioned = isinstance(store, VersionedStore)
        return self._table_of(TableNode(cogrouping.builder, node, store, versioned=versioned, aggregator=aggregator))


class _WindowedCogroupedKStream(KafkasNames, Generic[Windowed]):
    """What can be computed of any windows."""

    def __init__(
        self, cogrouping: Cogrouping, windows: AnyWindows, windowed_of: Callable[[TableNode], Windowed]
    ) -> None:
        self._cogrouping = cogrouping
        self._windows = windows
        self._windowed_of = windowed_of

    def aggregate(self, materialized: Materialized | None = None, named: Named | None = None) -> Windowed:
        """The results of all streams' functions, as the fields of a struct."""
        return self._table(self._cogrouping.functions(), materialized, named)

    def _table(self, aggregator: AggregatorSpec, materialized: Materialized | None, named: Named | None) -> Windowed:
        store = self._cogrouping.new_store_name(materialized)
        spec = windowed_spec(store, self._windows, aggregator, materialized.retention_ms if materialized else None)
        node = self._cogrouping.add_aggregation(spec, store, named)
        return self._windowed_of(windowed_node(self._cogrouping.builder, node, spec))


@arguments_checked
class TimeWindowedCogroupedKStream(_WindowedCogroupedKStream[Windowed]):
    """Kafka's ``TimeWindowedCogroupedKStream``, made by `CogroupedKStream.windowed_by`."""

    def aggregate_with(
        self,
        initializer: Callable[[], Any],
        arrow_type: pa.DataType,
        materialized: Materialized | None = None,
        named: Named | None = None,
    ) -> Windowed:
        """Aggregates with the streams' Python functions. Slow: one is called for each record."""
        return self._table(self._cogrouping.python_functions(initializer, arrow_type), materialized, named)


@arguments_checked
class SessionWindowedCogroupedKStream(_WindowedCogroupedKStream[Windowed]):
    """Kafka's ``SessionWindowedCogroupedKStream``, made by `CogroupedKStream.windowed_by`."""

    def aggregate_with(
        self,
        initializer: Callable[[], Any],
        merger: Callable[[Any, Any, Any], Any],
        arrow_type: pa.DataType,
        materialized: Materialized | None = None,
        named: Named | None = None,
    ) -> Windowed:
        """Aggregates with the streams' Python functions; ``merger``: see `SessionWindowedKStream.aggregate_with`."""
        return self._table(self._cogrouping.python_functions(initializer, arrow_type, merger), materialized, named)
