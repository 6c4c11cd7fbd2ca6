"""Every operator that there is behind windowed keys, each with a sink of its own, so that a difference names it.

The same steps are taken in one topology, from the windowed aggregation on, and in a second one that reads its results
from a topic. Mappers see the parts of a key differently there (`Keys`); everything else is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from statelib import (
    BufferConfig,
    DayWindows,
    EmitStrategy,
    FixedKeyProcessor,
    FixedKeyRecord,
    Grouped,
    Joined,
    JoinWindows,
    Materialized,
    Named,
    Processor,
    ProcessorSupplier,
    Record,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    UnlimitedWindows,
    Windowed,
    count,
    max_,
    mean_,
    per_record,
    sum_,
)
from tests.surface.topology import PAIR, ms, versioned

if TYPE_CHECKING:
    from statelib import AnyWindows, KStream, MapperLike, StoreBuilder, Topology

RESULT = pa.struct([("n", pa.int64()), ("sum", pa.int64())])
UNBOUNDED = BufferConfig.unbounded()
N, SUM = pc.field("value", "n"), pc.field("value", "sum")
BOTH = per_record(lambda left, right: f"{_told(left)}|{_told(right)}", pa.string(), "left", "right")
LIST = pa.list_(pa.string())
TIME = pa.timestamp("ms", "UTC")

WINDOWS: dict[str, AnyWindows] = {
    "tumbling": TimeWindows.of_size_and_grace(ms(40), ms(30)),
    "offset": TimeWindows.of_size_and_grace(ms(40), ms(30)).offset(ms(15)),
    "days": DayWindows.of_zone_and_grace("America/New_York", ms(30)),
    "hopping": TimeWindows.of_size_and_grace(ms(40), ms(30)).advance_by(ms(15)),
    "sliding": SlidingWindows.of_time_difference_and_grace(ms(25), ms(20)),
    "sessions": SessionWindows.of_inactivity_gap_and_grace(ms(40), ms(30)),
    "unlimited": UnlimitedWindows.of(),
}


class Keys(NamedTuple):
    """How mappers see the parts of a windowed key; times are int64 ms."""

    key: MapperLike
    start: MapperLike
    end: MapperLike


BEHIND_WINDOWS = Keys("key", "window_start", "window_end")
BEHIND_A_TOPIC = Keys(
    "key.key", *(pc.field("key", f"window_{bound}").cast(TIME).cast(pa.int64()) for bound in ("start", "end"))
)  # fmt: skip


def aggregated(builder: StreamsBuilder, windows: AnyWindows) -> KStream:
    """Results of windows."""
    functions = {"n": count(), "sum": sum_("amount")}
    return builder.stream("events").group_by_key().windowed_by(windows).aggregate(functions).to_stream()


def in_one(windows: AnyWindows) -> Topology:
    """The aggregation and all operators behind it."""
    builder = StreamsBuilder("windowed")
    everything(aggregated(builder, windows), BEHIND_WINDOWS, builder)
    return builder.build()


def first_half(windows: AnyWindows) -> Topology:
    """The aggregation."""
    builder = StreamsBuilder("first-half")
    aggregated(builder, windows).to("results")
    return builder.build()


def second_half() -> Topology:
    """All operators that are behind it, over the topic of its results."""
    builder = StreamsBuilder("second-half")
    everything(builder.stream("results"), BEHIND_A_TOPIC, builder)
    return builder.build()


def everything(results: KStream, keys: Keys, builder: StreamsBuilder) -> None:
    """All operators."""
    stateless(results, keys)
    several_streams(results)
    custom_processors(results)
    deduplication(results)
    aggregations(results)
    cogroups(results)
    windows_of_windows(results)
    tables(results, keys)
    regrouped(results, keys)
    table_joins(results)
    stream_table_joins(results)
    stream_joins(results)
    foreign_keys(results)
    global_tables(results, keys, builder)


def stateless(results: KStream, keys: Keys) -> None:
    """What keeps nothing."""
    results.to("same")
    results.filter(N > 1).map_values({"start": keys.start, "end": keys.end, "n": "n"}).to("filtered")
    results.map(keys.key, {"start": keys.start, "n": "n"}).to("mapped")
    results.repartition().to("repartitioned")
    results.select_key(keys.key).group_by_key().count().to_stream().to("counted-by-key")
    parts = per_record(lambda value: [f"{n}" for n in range(value["n"])] if value else [], LIST, "value")
    results.flat_map_values(parts).to("unfolded")
    pairs = pa.list_(PAIR)
    of_both = per_record(lambda key, value: [(key, f"{value}")] * 2, pairs, keys.key, "value")
    results.flat_map(of_both).group_by_key().count().to_stream().to("unfolded-by-key")


def several_streams(results: KStream) -> None:
    """Streams that are split and merged."""
    many, few = results.split().branch(N > 1).default_branch().values()
    few.merge(many).group_by_key().count().to_stream().to("merged")


class CountWindows(Processor):
    """How often a key has come, in a store under the windowed key itself."""

    def process(self, record: Record) -> None:
        counts = self.context.get_state_store("windows-seen")
        key = _numbers(record.key)
        counts.put(key, (counts.get(key) or 0) + 1)
        self.context.forward(record.with_value(f"{counts.get(key)} of {_told(record.value)}"))


class CountWindowsSupplier(ProcessorSupplier):
    """Brings the store."""

    def get(self) -> CountWindows:
        return CountWindows()

    def stores(self) -> list[StoreBuilder[Any]]:
        key = pa.struct([("key", pa.string()), ("window_start", pa.int64()), ("window_end", pa.int64())])
        supplier = Stores.persistent_key_value_store("windows-seen")
        return [Stores.key_value_store_builder(supplier, key, pa.int64())]


class Tell(FixedKeyProcessor):
    """The key, as text."""

    def process(self, record: FixedKeyRecord) -> None:
        self.context.forward(record.with_value(str(tuple(_numbers(record.key)))))


def custom_processors(results: KStream) -> None:
    """KIP-820."""
    processed = results.process(CountWindowsSupplier(), value_type=pa.string())
    processed.to("processed")
    processed.group_by_key().count().to_stream().to("counted-processed")
    results.process_values(Tell, value_type=pa.string()).to("told")


def deduplication(results: KStream) -> None:
    """KIP-655."""
    results.deduplicate_by_key(ms(20)).to("once-by-key")
    valid = results.filter(pc.is_valid(pc.field("value")))
    valid.deduplicate_by_key_value("n", ms(60)).to("once-by-key-and-id")
    once = valid.deduplicate("sum", ms(60))
    once.to("once-by-id")
    once.group_by_key().count().to_stream().to("counted-once")


def aggregations(results: KStream) -> None:
    """By key, of each kind of aggregation and store."""
    grouped = results.group_by_key()
    grouped.count().to_stream().to("counted")
    functions = {"n": count(), "max": max_("sum"), "mean": mean_("sum")}
    grouped.aggregate(functions, versioned("versions")).to_stream().to("versions-counted")
    grouped.reduce(lambda old, new: new if (new["sum"] or 0) >= (old["sum"] or 0) else old).to_stream().to("largest")
    told = grouped.aggregate_with(str, lambda key, _, before: f"{before[-40:]}{tuple(_numbers(key))}", pa.string())
    told.filter(pc.field("value") != "").map_values(pc.field("value")).to_stream().to("keys-told")


def cogroups(results: KStream) -> None:
    """Two streams of one kind of windows."""
    both = results.group_by_key().cogroup({"n": count()})
    both.cogroup(results.filter(N > 1).group_by_key(), {"many": count(), "sum": sum_("sum")})
    both.aggregate(Materialized.as_("both")).to_stream().to("both")
    both.windowed_by(WINDOWS["tumbling"]).aggregate().to_stream().to("both-again")


def windows_of_windows(results: KStream) -> None:
    """Windows of windowed keys: the first window is part of the key."""
    grouped = results.group_by_key()
    for name, windows in WINDOWS.items():
        grouped.windowed_by(windows).count().to_stream().to(f"{name}-again")
    for name in ("tumbling", "sliding", "sessions"):
        closed = grouped.windowed_by(WINDOWS[name]).emit_strategy(EmitStrategy.on_window_close())  # type: ignore[attr-defined]
        closed.count().to_stream().to(f"{name}-closed-again")
    final = grouped.windowed_by(WINDOWS["tumbling"]).count().suppress(Suppressed.until_window_closes(UNBOUNDED))
    final.to_stream().to("final-again")
    final.to_stream().group_by_key().count().to_stream().to("final-counted")
    grouped.windowed_by(WINDOWS["tumbling"]).distinct().to("distinct-in-windows")
    grouped.windowed_by(WINDOWS["sessions"]).distinct().group_by_key().count().to_stream().to("distinct-counted")


def tables(results: KStream, keys: Keys) -> None:
    """Tables of windowed keys and what is made of them."""
    table = results.to_table(materialized=Materialized.as_("table"))
    table.to_stream().to("again")
    table.filter(N > 1, materialized=Materialized.as_("stored-filter")).to_stream().to("stored-filter")
    parts = {"key": keys.key, "start": keys.start, "end": keys.end, "n": "n"}
    table.map_values(parts, materialized=Materialized.as_("stored-parts")).to_stream().to("stored-parts")
    told = per_record(lambda value, start: f"{_told(value)} from {start}", pa.string(), "value", keys.start)
    table.transform_values(told).to_stream().to("transformed")
    table.suppress(Suppressed.until_time_limit(ms(35), UNBOUNDED)).to_stream().to("limited")
    history = results.to_table(Named.as_("history"), versioned("history", 60))
    history.filter(SUM > 4).map_values("sum").to_stream().to("few-versions")


def regrouped(results: KStream, keys: Keys) -> None:
    """Under a plain key, which takes the window off."""
    table = results.to_table(materialized=Materialized.as_("regrouped"))
    functions = {"n": count(), "sum": sum_("value")}
    table.group_by(keys.start, "value.sum").aggregate(functions).to_stream().to("by-start")
    by_key = table.group_by(keys.key, "value.n", Grouped.as_("by-key"))
    by_key.reduce(lambda sum_, new: sum_ + new, lambda sum_, old: sum_ - old).to_stream().to("by-key")


def table_joins(results: KStream) -> None:
    """Tables by the windowed key: with and without stores, versioned, of aggregations."""
    table = results.to_table(materialized=Materialized.as_("left"))
    many = table.filter(N > 1)
    counts = results.group_by_key().aggregate({"n": count(), "sum": sum_("sum")})
    table.join(counts, BOTH, Named.as_("inner")).to_stream().to("joined")
    table.left_join(many, BOTH, Named.as_("left-join")).to_stream().to("joined-left")
    kept = many.outer_join(counts, BOTH, Named.as_("outer-join"), Materialized.as_("kept"))
    kept.filter(pc.field("value") != "-|-").to_stream().to("joined-outer")
    history = results.to_table(Named.as_("joined-history"), versioned("joined-history", 60))
    table.join(history, BOTH, Named.as_("with-history")).to_stream().to("joined-history")


def stream_table_joins(results: KStream) -> None:
    """The stream with tables under its windowed key, held back and not."""
    many = results.filter(N > 1)
    table = many.to_table(Named.as_("many"), Materialized.as_("many"))
    history = many.to_table(Named.as_("many-history"), versioned("many-history"))
    results.join(table, BOTH, Joined.as_("met")).to("met")
    results.left_join(table.map_values({"n": "sum", "sum": "n"}), BOTH, Joined.as_("met-left")).to("met-left")
    results.left_join(history, BOTH, Joined.as_("met-history")).to("met-history")
    later = Joined.as_("met-later").with_grace_period(ms(20))
    results.left_join(history, BOTH, later).to("met-later")


def stream_joins(results: KStream) -> None:
    """Two streams under windowed keys."""
    many, near = results.filter(N > 1), JoinWindows.of_time_difference_and_grace(ms(20), ms(15))
    results.join(many, BOTH, near).to("near")
    results.left_join(many, BOTH, near).to("near-left")
    many.outer_join(results.filter(SUM > 6), BOTH, near).to("near-outer")


def foreign_keys(results: KStream) -> None:
    """Rows under windowed keys that refer to others."""
    of_n = per_record(lambda value: None if value is None else str(value["n"] % 3), pa.string(), "value")
    referred = results.filter(pc.is_valid(pc.field("value"))).select_key(of_n).to_table(Named.as_("referred"))
    table = results.to_table(materialized=Materialized.as_("referring"))
    found = table.left_join(referred, BOTH, Named.as_("found"), foreign_key=of_n)
    found.to_stream().to("found")
    found.to_stream().group_by_key().count().to_stream().to("found-counted")
    table.join(
        referred, BOTH, Named.as_("found-inner"), Materialized.as_("found-kept"), foreign_key=of_n
    ).to_stream().to("found-inner")


def global_tables(results: KStream, keys: Keys, builder: StreamsBuilder) -> None:
    """A table that each task has whole, under a key that is made of the windowed one."""
    places = builder.global_table("places", versioned("places"))
    results.join(places, keys.key, BOTH).to("placed")
    results.left_join(places, keys.key, BOTH).group_by_key().count().to_stream().to("placed-counted")


def _told(value: Any) -> str:
    if isinstance(value, dict):
        return "/".join(str(part) for part in value.values())
    return "-" if value is None else str(value)


def _numbers(key: Any) -> Windowed:
    """A windowed key as a processor gets it, or as a topic has it."""
    if isinstance(key, Windowed):
        return key
    return Windowed(key["key"], *(round(key[f"window_{bound}"].timestamp() * 1000) for bound in ("start", "end")))
