"""A second job beside the surface: circles of repartition topics, processors by name, other ways to the operators.

The records of a circle are taken up one by one, with all that shares a source with them; so this is not one with the
surface, most of whose operators share one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from statelib import Materialized, Named, SessionWindows, StreamsBuilder, count, max_
from tests.surface.circles import comes_back, meets_its_aggregate, refers_to_itself
from tests.surface.low_level import Counting, Keeping, Numbering, add_low_level, number_store, text_store
from tests.surface.topology import AMOUNT, TUMBLING, ms

if TYPE_CHECKING:
    from statelib import KStream, KTable, Topology

SESSIONS = SessionWindows.of_inactivity_gap_and_grace(ms(12), ms(30))


def beside() -> Topology:
    """The topology. It reads the topics of the surface."""
    builder = StreamsBuilder("beside")
    comes_back(builder, "events")
    refers_to_itself(builder, "names")
    meets_its_aggregate(builder, "clicks")
    builder.add_state_store(number_store("counts-of-values")).add_state_store(number_store("changes"))
    builder.add_global_store(text_store("places-kept"), "places", None, lambda: Keeping("places-kept"))
    prices = builder.stream("prices")
    streams(prices)
    per_record_aggregations(prices)
    tables(prices.to_table(Materialized.as_("prices-kept")))
    topology = builder.build()
    add_low_level(topology)
    return topology


def streams(prices: KStream) -> None:
    """Streams that are split, and a processor with a store, whose keys stay."""
    much, little = prices.split().branch(AMOUNT > 5).branch(AMOUNT > 3).no_default_branch().values()
    much.merge(little).to("some-prices")
    prices.process_values(Counting, "counts-of-values", value_type=pa.string()).to("numbered")


def per_record_aggregations(prices: KStream) -> None:
    """Aggregations by Python functions: reduced in windows, of several streams, by another key."""
    grouped = prices.group_by_key()
    grouped.windowed_by(TUMBLING).reduce(_larger).to_stream().to("largest-in-windows")
    grouped.windowed_by(SESSIONS).reduce(_larger).to_stream().to("largest-in-sessions")
    both = grouped.cogroup(_ids("+")).cogroup(prices.filter(AMOUNT > 3).group_by_key(), _ids("*"))
    both.aggregate_with(str, pa.string(), Materialized.as_("ids-of-both")).to_stream().to("ids-of-both")
    both.windowed_by(TUMBLING).aggregate_with(str, pa.string()).to_stream().to("ids-in-windows")
    functions = {"n": count(), "max": max_("amount")}
    grouped.cogroup(functions).windowed_by(SESSIONS).aggregate().to_stream().to("cogrouped-in-sessions")


def tables(prices: KTable) -> None:
    """Tables whose values a function or a transformer makes, and one that is aggregated change by change."""
    prices.filter_not(AMOUNT > 4).transform_values("value.amount").to_stream().to("few-prices-transformed")
    numbered = prices.transform_values_with(
        Numbering,
        Named.as_("numbering"),
        Materialized.as_("numbering"),
        store_names=["changes"],
        value_type=pa.string(),
    )
    numbered.to_stream().to("changes-numbered")
    by_other = prices.group_by("value.other", "value.amount")
    by_other.aggregate_with(
        int, lambda _, value, sum_: sum_ + value, lambda _, value, sum_: sum_ - value, pa.int64()
    ).to_stream().to("summed-by-other")


def _larger(old: Any, new: Any) -> Any:
    return new if new["amount"] >= old["amount"] else old


def _ids(mark: str) -> Any:
    return lambda _, value, ids: (ids + (value or {"id": "-"})["id"] + mark)[-12:]
