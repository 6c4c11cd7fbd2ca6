"""How a grouped stream is aggregated, with windows or without (Kafka's ``KStreamAggregate``, ``KStreamReduce``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from statelib.calls import KafkasNames
from statelib.operators.aggregation.definition import Reduce, several, single
from statelib.operators.aggregation.sql_functions import count, max_, mean_, min_, sum_
from statelib.operators.sessions.on_close import FinalSessionAggregate
from statelib.operators.sessions.operator import SessionAggregate
from statelib.operators.sliding.on_close import FinalSlidingAggregate
from statelib.operators.sliding.operator import SlidingAggregate
from statelib.operators.windows.definition import SessionWindows, SlidingWindows
from statelib.operators.windows.on_close import FinalWindowAggregate
from statelib.operators.windows.operator import WindowAggregate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from statelib.dsl.options import Materialized, Named
    from statelib.dsl.repartitioning import Grouping
    from statelib.operators.aggregation.definition import AggregatorSpec
    from statelib.operators.aggregation.sql_functions import Aggregation
    from statelib.operators.mappers.mapping import MapperLike
    from statelib.operators.windows.definition import AnyWindows

Aggregated = TypeVar("Aggregated")
"""The table of the results."""


class StreamAggregations(KafkasNames, Generic[Aggregated]):
    """The aggregations of a grouped stream. Each method takes a `Materialized` for the store and a `Named`.

    With ``where=``, a function of SQL sees only the records for which a mapper gives true.

    Args:
        grouping: Where the records are.
        counts_for_nothing: Whether Kafka's ``count(Materialized)`` makes a store's name that it never uses, where it is
            given none.
    """

    def __init__(self, grouping: Grouping, *, counts_for_nothing: bool = True) -> None:
        self.grouping = grouping
        self._builder = grouping.builder
        self._counts_for_nothing = counts_for_nothing

    def count(
        self, materialized: Materialized | None = None, named: Named | None = None, *, where: MapperLike | None = None
    ) -> Aggregated:
        """Counts records per key, or per key and window. Without windows, records with a null value do not count."""
        if self._counts_for_nothing and materialized is not None and materialized.store_name is None:
            self._builder.new_store_name("KSTREAM-AGGREGATE")  # as Kafka does, and never uses it
        return self._table("KSTREAM-AGGREGATE", single(count(where=where)), materialized, named)

    def sum(
        self,
        of: MapperLike,
        materialized: Materialized | None = None,
        named: Named | None = None,
        *,
        where: MapperLike | None = None,
    ) -> Aggregated:
        """The sum of ``of`` per key, or per key and window."""
        return self._table("KSTREAM-AGGREGATE", single(sum_(of, where=where)), materialized, named)

    def min(
        self,
        of: MapperLike,
        materialized: Materialized | None = None,
        named: Named | None = None,
        *,
        where: MapperLike | None = None,
    ) -> Aggregated:
        """The minimum of ``of`` per key, or per key and window."""
        return self._table("KSTREAM-AGGREGATE", single(min_(of, where=where)), materialized, named)

    def max(
        self,
        of: MapperLike,
        materialized: Materialized | None = None,
        named: Named | None = None,
        *,
        where: MapperLike | None = None,
    ) -> Aggregated:
        """The maximum of ``of`` per key, or per key and window."""
        return self._table("KSTREAM-AGGREGATE", single(max_(of, where=where)), materialized, named)

    def mean(
        self,
        of: MapperLike,
        materialized: Materialized | None = None,
        named: Named | None = None,
        *,
        where: MapperLike | None = None,
    ) -> Aggregated:
        """The arithmetic mean of ``of`` per key, or per key and window."""
        return self._table("KSTREAM-AGGREGATE", single(mean_(of, where=where)), materialized, named)

    def aggregate(
        self, functions: Mapping[str, Aggregation], materialized: Materialized | None = None, named: Named | None = None
    ) -> Aggregated:
        """Several aggregations at once: ``aggregate({"flights": count(), "delay": mean_("dep_delay")})``."""
        return self._table("KSTREAM-AGGREGATE", several(**functions), materialized, named)

    def reduce(
        self, reducer: Callable[[Any, Any], Any], materialized: Materialized | None = None, named: Named | None = None
    ) -> Aggregated:
        """Combines values with a Python function of the aggregate and the next value. Slow: called for each record.

        The first value is the first aggregate. A result of None deletes the aggregate. When sessions merge, their
        aggregates are combined with the same function.
        """
        return self._table("KSTREAM-REDUCE", Reduce(reducer), materialized, named)

    def _table(
        self, kind: str, aggregator: AggregatorSpec, materialized: Materialized | None, named: Named | None
    ) -> Aggregated:
        """The table of an aggregation; ``kind``: what the node's name begins with, if it has none."""
        raise NotImplementedError


def windowed_spec(
    store: str, windows: AnyWindows, aggregator: AggregatorSpec, retention_ms: int | None, *, final: bool = False
) -> WindowAggregate | SlidingAggregate | SessionAggregate:
    """The operator of an aggregation by windows of any kind; ``final``: it forwards final results alone."""
    if isinstance(windows, SessionWindows):
        sessions = FinalSessionAggregate if final else SessionAggregate
        return sessions(store, windows, aggregator, retention_ms)
    if isinstance(windows, SlidingWindows):
        sliding = FinalSlidingAggregate if final else SlidingAggregate
        return sliding(store, windows, aggregator, retention_ms)
    aligned = FinalWindowAggregate if final else WindowAggregate
    return aligned(store, windows, aggregator, retention_ms)
