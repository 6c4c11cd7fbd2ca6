"""Every operator that there is, each with a sink of its own, so that a difference names it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from statelib import (
    BufferConfig,
    DayWindows,
    EmitStrategy,
    Grouped,
    Joined,
    JoinWindows,
    Materialized,
    Named,
    Produced,
    Repartitioned,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    UnlimitedWindows,
    approx_count_distinct,
    arg_max,
    arg_min,
    collect_list,
    collect_set,
    count,
    count_distinct,
    first,
    last,
    max_,
    mean_,
    per_record,
    quantiles,
    stddev,
    sum_,
    top_n,
    variance,
)
from tests.operators.processors.examples import CountAndTellSupplier, StreamTime, relays
from tests.surface.records import CALLS, VISITS

if TYPE_CHECKING:
    from statelib import GlobalKTable, KGroupedStream, KStream, KTable, Topology

UNBOUNDED = BufferConfig.unbounded()
AMOUNT = pc.field("value", "amount")
LIST = pa.list_(pa.string())
PAIR = pa.struct([("key", pa.string()), ("value", pa.string())])
LATEST = per_record(lambda left, right: f"{left and left['id']}|{right and right['id']}", pa.string(), "left", "right")


def ms(count: int) -> timedelta:
    """So many milliseconds."""
    return timedelta(milliseconds=count)


_MOST = 3
"""Records that a window takes before a function removes it."""

TUMBLING = TimeWindows.of_size_and_grace(ms(40), ms(30))


def versioned(name: str, retention_ms: int = 200) -> Materialized:
    """A versioned store."""
    return Materialized.as_(Stores.persistent_versioned_key_value_store(name, ms(retention_ms)))


def surface() -> Topology:
    """The topology."""
    builder = StreamsBuilder("surface")
    events = builder.stream("events")
    prices = builder.table("prices", versioned("prices"))
    names = builder.table("names", Materialized.as_("names"))
    stateless(events)
    several_streams(events, builder.stream("clicks"))
    custom_processors(events, builder.stream("clicks"))
    deduplication(events)
    windows(events.group_by_key())
    suppression(events.group_by_key())
    emission(events.group_by_key())
    cogroups(events.group_by_key(), builder.stream("clicks").group_by_key())
    tables(events.group_by_key(), prices, names)
    stream_table_joins(events, prices, names)
    stream_joins(events, builder.stream("clicks"))
    table_joins(prices, names, builder.stream("clicks").group_by_key())
    regrouped_tables(prices, names)
    foreign_key_joins(prices, names)
    global_table_joins(events, builder.global_table("places"), builder.global_table("tariffs", versioned("tariffs")))
    windows_on_other_grids(events.group_by_key())
    topics_and_partitions(builder, events)
    tables_of_windows(events, names)
    windows_that_wait(events.group_by_key())
    events.peek(lambda columns: columns.validate()).to("peeked")
    return builder.build({"topology.optimization": "single.store.self.join"})


def tables_of_windows(events: KStream, names: KTable) -> None:
    """Windowed tables and suppressed ones that are joined and kept."""
    grouped = events.group_by_key()
    sliding = SlidingWindows.of_time_difference_and_grace(ms(40), ms(20))
    sessions = SessionWindows.of_inactivity_gap_and_grace(ms(12), ms(30))
    tumbling, slid, sessioned = (
        grouped.windowed_by(windows).aggregate({"n": count(), "id": max_("amount")})
        for windows in (TUMBLING, sliding, sessions)
    )
    several = tumbling.filter(pc.field("value", "n") > 1, materialized=Materialized.as_("several"))
    several.outer_join(slid, LATEST, Named.as_("windows")).to_stream().to("windows-joined")
    few = sessioned.map_values({"id": "n"}, materialized=versioned("session-sizes"))
    sessioned.left_join(few, LATEST, Named.as_("sizes")).to_stream().to("sessions-joined")
    limited = tumbling.suppress(Suppressed.until_time_limit(ms(35), BufferConfig.max_records(2)))
    limited.left_join(tumbling, LATEST, Named.as_("so-far")).to_stream().to("limited-joined")
    final = tumbling.suppress(Suppressed.until_window_closes(UNBOUNDED))
    tumbling.to_stream().left_join(final, LATEST, Joined.as_("with-final")).to("with-final")
    sizes = tumbling.map_values({"id": "n"})
    tumbling.to_stream().left_join(sizes, LATEST, Joined.as_("with-sizes")).to("with-sizes")
    kept = tumbling.suppress(Suppressed.until_window_closes(UNBOUNDED)).filter(
        pc.field("value", "n") > 1, materialized=Materialized.as_("final-kept")
    )
    kept.outer_join(limited, LATEST, Named.as_("final-limited")).to_stream().to("final-joined")
    calm = names.suppress(Suppressed.until_time_limit(ms(20), UNBOUNDED))
    calm.outer_join(calm, LATEST, Named.as_("calm-itself")).to_stream().to("calm-itself")
    cheap = names.filter(pc.field("value", "amount") > 4, materialized=versioned("versions-of-few"))
    cheap.to_stream().to("versions-of-few")


def stateless(events: KStream) -> None:
    """What keeps nothing."""
    valid = events.filter(pc.is_valid(pc.field("value")), Named.as_("valid")).filter_not(
        pc.field("value", "amount") > 7
    )
    valid.map("value.other", "value.amount").to("mapped")
    valid.select_key("id").map_values({"amount": "amount", "id": "id"}).repartition().to("repartitioned")
    valid.foreach(lambda columns: columns.validate())


def several_streams(events: KStream, clicks: KStream) -> None:
    """Streams that are unfolded, split and merged."""
    ids = per_record(lambda value: [f"{value['id']}/{n}" for n in range(value["amount"])], LIST, "value")
    valid = events.filter(pc.is_valid(pc.field("value")))
    many, some, few = valid.split().branch(AMOUNT > 5).branch(AMOUNT > 3).default_branch().values()
    few.flat_map_values(ids).merge(many.flat_map_values(ids)).to("unfolded")
    some.flat_map(per_record(lambda key, value: [(value["id"], key)] * 2, pa.list_(PAIR), "key", "value")).to("paired")
    events.merge(clicks).merge(many).to("merged")


def topics_and_partitions(builder: StreamsBuilder, events: KStream) -> None:
    """Topics that are read as one, chosen, written twice, read again, or placed by something else than the key."""
    both = builder.stream([VISITS, CALLS])
    both.to("written-twice")
    both.map_values("value").to("written-twice", Produced.as_("the-same-again"))
    events.to("written-twice", Produced.as_("from-elsewhere"))
    builder.stream("written-twice").group_by_key().count().to_stream().to("counts-of-what-was-written")
    other = pc.coalesce(pc.field("value", "other"), pc.scalar("none"))
    both.to(other, topics=["a", "ab", "hot", "none"])
    by_length = per_record(lambda key, n: None if key is None else len(key) % n, pa.int32(), "key", "num_partitions")
    both.to("placed-by-length", Produced.with_partitions(3).with_stream_partitioner(by_length))
    by_amount = per_record(
        lambda value, n: [place for place in range(n) if value and value["amount"] & 1 << place],
        pa.list_(pa.int32()), "value", "num_partitions",
    )  # fmt: skip
    both.repartition(Repartitioned.as_("by-amount").with_stream_partitioner(by_amount)).to("sent-to-several")


def custom_processors(events: KStream, clicks: KStream) -> None:
    """KIP-820, with a store and calls by stream time; some share a store."""
    events.process(CountAndTellSupplier(), value_type=pa.string()).to("processed")
    events.process_values(StreamTime, value_type=pa.int64()).to("processed-values")
    relays(events, clicks)


def deduplication(events: KStream) -> None:
    """KIP-655."""
    events.deduplicate_by_key(ms(20)).to("once-by-key")
    events.deduplicate_by_key_value("id", ms(100)).to("once-by-key-and-id")
    events.deduplicate("id", ms(100)).to("once-by-id")
    grouped = events.group_by_key()
    grouped.windowed_by(TUMBLING).distinct().to("distinct-in-windows")
    sessions = SessionWindows.of_inactivity_gap_and_grace(ms(12), ms(30))
    grouped.windowed_by(sessions).distinct().to("distinct-in-sessions")


def windows(events: KGroupedStream) -> None:
    """Aggregations, columnar and per record."""
    functions = {
        "n": count(), "sum": sum_("amount"), "max": max_("amount"), "mean": mean_("amount"),
        "many": count(where=AMOUNT > 4), "deviation": stddev("amount"), "first": first("id"),
        "latest": last("other", by_time=True), "id": arg_max("id", by="amount"), "other": arg_min("id", by="other"),
        "others": count_distinct("other"), "about": approx_count_distinct("other"), "top": top_n("id", "amount", 2),
        "spread": quantiles("amount", [0.5, 0.9]),
        "list": collect_list("id", limit=3), "set": collect_set("other", limit=2),
    }  # fmt: skip
    events.windowed_by(TUMBLING).aggregate(functions).to_stream().to("tumbling")
    events.windowed_by(TUMBLING.advance_by(ms(15))).count().to_stream().to("hopping")
    sliding = SlidingWindows.of_time_difference_and_grace(ms(25), ms(20))
    events.windowed_by(sliding).aggregate(functions).to_stream().to("sliding")
    sessions = events.windowed_by(SessionWindows.of_inactivity_gap_and_grace(ms(12), ms(30)))
    sessions.aggregate(functions).to_stream().to("sessions")
    sessions.aggregate_with(
        str, lambda _, value, ids: ids + (value or {"id": "-"})["id"], lambda _, one, other: one + other, pa.string()
    ).to_stream().to("sessions-per-record")
    events.windowed_by(UnlimitedWindows.of()).count().to_stream().to("unlimited")
    elsewhere = events.windowed_by(TUMBLING).count().to_stream().repartition()
    elsewhere.group_by_key().count(Materialized.as_("windows-counted")).to_stream().to("windows-counted")


def windows_on_other_grids(events: KGroupedStream) -> None:
    """Windows that do not begin with 1970: with an offset, and days of a zone, of which the first ends at five."""
    counted = events.windowed_by(TUMBLING.advance_by(ms(20)).offset(ms(15))).count()
    counted.to_stream().to("with-an-offset")
    counted.suppress(Suppressed.until_window_closes(UNBOUNDED)).to_stream().to("final-with-an-offset")
    days = DayWindows.of_zone_and_grace("America/New_York", ms(30))
    events.windowed_by(days).aggregate({"n": count()}).to_stream().to("days")
    events.windowed_by(days).distinct().to("distinct-days")


def suppression(events: KGroupedStream) -> None:
    """KIP-328: each kind of buffer."""
    counts = events.windowed_by(TUMBLING).aggregate({"n": count(), "max": max_("amount")})
    for name, suppressed in {
        "final": Suppressed.until_window_closes(UNBOUNDED),
        "final-spilled": Suppressed.until_window_closes(BufferConfig.max_records(1).spill_to_disk_when_full()),
        "limited": Suppressed.until_time_limit(ms(35), UNBOUNDED),
        "limited-few": Suppressed.until_time_limit(ms(90), BufferConfig.max_records(2)),
        "limited-small": Suppressed.until_time_limit(ms(90), BufferConfig.max_bytes(300)),
    }.items():
        counts.suppress(suppressed).to_stream().to(name)
    sessions = events.windowed_by(SessionWindows.of_inactivity_gap_and_grace(ms(12), ms(30)))
    sessions.count().suppress(Suppressed.until_window_closes(UNBOUNDED)).to_stream().to("final-sessions")


def windows_that_wait(events: KGroupedStream) -> None:
    """Final results of windows that are left to the stores of aggregations which forward their updates."""
    final = Suppressed.until_window_closes(UNBOUNDED)
    strict = Suppressed.until_window_closes(BufferConfig.max_records(1 << 20).shut_down_when_full())
    sliding = events.windowed_by(SlidingWindows.of_time_difference_and_grace(ms(25), ms(20)))
    slid = sliding.aggregate({"n": count(), "mean": mean_("amount")}, Materialized.as_("waiting-slides"))
    slid.to_stream().to("slides-so-far")
    slid.suppress(final.with_name("wait-slides")).to_stream().to("final-slides")
    hops = events.windowed_by(TUMBLING.advance_by(ms(15)))
    fewer = hops.aggregate_with(
        int, lambda _, value, n: None if n == _MOST else n + 1, pa.int64(), Materialized.as_("waiting-hops")
    )
    fewer.suppress(strict.with_name("wait-hops")).to_stream().to("final-hops")
    sessions = events.windowed_by(SessionWindows.of_inactivity_gap_and_grace(ms(12), ms(30)))
    merged = sessions.aggregate_with(
        int,
        lambda _, value, n: n + 1,
        lambda _, one, other: one + other,
        pa.int64(),
        Materialized.as_("waiting-visits"),
    )
    merged.suppress(strict.with_name("wait-visits")).to_stream().to("final-visits")


def emission(events: KGroupedStream) -> None:
    """KIP-825: final results of windows of all kinds, columnar and per record."""
    functions = {"n": count(), "max": max_("amount"), "id": last("id")}
    hopping = events.windowed_by(TUMBLING.advance_by(ms(15))).emit_strategy(EmitStrategy.on_window_close())
    hopping.aggregate(functions).to_stream().to("closed-hopping")
    sliding = SlidingWindows.of_time_difference_and_grace(ms(25), ms(20))
    closed = events.windowed_by(sliding).emit_strategy(EmitStrategy.on_window_close()).aggregate(functions)
    closed.group_by("key", "value.n").aggregate({"n": sum_("value"), "windows": count()}).to_stream().to("closed")
    sessions = events.windowed_by(SessionWindows.of_inactivity_gap_and_grace(ms(12), ms(30)))
    sessions.emit_strategy(EmitStrategy.on_window_close()).aggregate_with(
        str, lambda _, value, ids: ids + (value or {"id": "-"})["id"], lambda _, one, other: one + other, pa.string()
    ).to_stream().to("closed-sessions")


def cogroups(events: KGroupedStream, clicks: KGroupedStream) -> None:
    """KIP-150: two streams in one aggregate, by key and by windows of all kinds."""
    functions = {"n": count(), "max": max_("amount"), "id": last("id")}
    both = events.cogroup(functions).cogroup(clicks, {"clicks": count(), "others": collect_list("other", limit=3)})
    both.aggregate(Materialized.as_("both")).to_stream().to("both")
    both.aggregate(versioned("versions-of-both")).filter(pc.field("value", "n") > 1).to_stream().to("both-versioned")
    hopping = both.windowed_by(TUMBLING.advance_by(ms(15))).aggregate()
    hopping.to_stream().to("both-hopping")
    hopping.suppress(Suppressed.until_window_closes(UNBOUNDED)).to_stream().to("both-final")
    sliding = SlidingWindows.of_time_difference_and_grace(ms(25), ms(20))
    both.windowed_by(sliding).aggregate().to_stream().to("both-sliding")
    told = [lambda _, value, ids, mark=mark: ids + (value or {"id": "-"})["id"] + mark for mark in "+*"]
    sessions = SessionWindows.of_inactivity_gap_and_grace(ms(12), ms(30))
    events.cogroup(told[0]).cogroup(clicks, told[1]).windowed_by(sessions).aggregate_with(
        str, lambda _, one, other: one + other, pa.string()
    ).to_stream().to("both-in-sessions")


def tables(events: KGroupedStream, prices: KTable, names: KTable) -> None:
    """Plain and versioned tables and what is made of them."""
    few = pc.field("value", "amount") > 4
    names.to_stream().to("names-again")
    names.filter(few, materialized=Materialized.as_("few-names")).to_stream().to("few-names-again")
    names.map_values("value.id").suppress(Suppressed.until_time_limit(ms(20), UNBOUNDED)).to_stream().to("calm-names")
    prices.filter(few).map_values("value.amount").to_stream().to("few-prices")
    events.count().to_stream().to("counted")
    events.aggregate(
        {"n": count(), "mean": mean_("amount"), "id": arg_max("id", by="amount")}, versioned("versions-of-means")
    ).to_stream().to("means")
    events.reduce(lambda old, new: new if new["amount"] >= old["amount"] else old).to_stream().to("largest")
    events.aggregate_with(str, lambda _, value, ids: (ids + value["id"])[-9:], pa.string()).to_stream().to("ids")


def stream_table_joins(events: KStream, prices: KTable, names: KTable) -> None:
    """A stream with tables of all kinds."""
    events.join(prices, LATEST, Joined.as_("join-prices")).to("priced")
    events.left_join(prices, LATEST, Joined.as_("join-prices-left")).to("priced-left")
    waiting = Joined.as_("join-later").with_grace_period(ms(50))
    events.left_join(prices, LATEST, waiting).to("priced-later")
    events.left_join(names, LATEST, Joined.as_("join-names")).to("named")
    by_other = events.filter(pc.is_valid(pc.field("value", "other"))).select_key("value.other")
    newest = by_other.group_by_key(Grouped.as_("by-other")).aggregate(
        {"id": max_("amount")}, Materialized.as_("newest")
    )
    known = newest.filter(pc.is_valid(pc.field("value", "id")))
    by_other.join(known, LATEST, Joined.as_("join-newest")).to("with-the-newest")


def stream_joins(events: KStream, clicks: KStream) -> None:
    """Two streams: each kind of join, windows on both sides and on one, a stream with itself in one store."""
    near = JoinWindows.of_time_difference_and_grace(ms(20), ms(15))
    events.join(clicks, LATEST, near).to("met")
    events.left_join(clicks, LATEST, near.before(ms(0))).to("met-left")
    events.outer_join(clicks, LATEST, near, StreamJoined.as_("outer").with_name("outer")).to("met-outer")
    events.left_join(events, LATEST, JoinWindows.of_time_difference_with_no_grace(ms(5))).to("met-itself")


def table_joins(prices: KTable, names: KTable, clicks: KGroupedStream) -> None:
    """Two tables by key: plain, versioned and aggregated, stored and not."""
    names.join(prices, LATEST, Named.as_("names-and-prices")).to_stream().to("names-and-prices")
    counts = clicks.aggregate({"id": count()}, Materialized.as_("clicks"))
    either = counts.outer_join(names, LATEST, Named.as_("either"), Materialized.as_("either-stored"))
    either.filter(pc.field("value") != "None|None").to_stream().to("either")
    prices.left_join(prices.filter(pc.field("value", "amount") > 4), LATEST, Named.as_("self")).to_stream().to("self")


def regrouped_tables(prices: KTable, names: KTable) -> None:
    """Aggregations that take back, of a plain and of a versioned table, columnar and per change."""
    functions = {
        "n": count(), "sum": sum_("value"), "mean": mean_("value"), "variance": variance("value"),
        "distinct": count_distinct("value"), "spread": quantiles("value", [0.5]),
    }  # fmt: skip
    by_other = names.group_by("value.other", "value.amount", Grouped.as_("names-by-other"))
    by_other.aggregate(functions, Materialized.as_("by-other")).to_stream().to("by-other")
    by_other.reduce(lambda sum_, new: sum_ + new, lambda sum_, old: sum_ - old).to_stream().to("reduced-by-other")
    prices.group_by("value.other").count(versioned("prices-by-other")).to_stream().to("prices-by-other")


def foreign_key_joins(prices: KTable, names: KTable) -> None:
    """Rows that refer to rows elsewhere, plain and versioned; of tables that are read in one stage, by copies."""
    copied = names.to_stream().filter(pc.is_valid(pc.field("value"))).repartition().to_table(Named.as_("copied-names"))
    found = names.left_join(copied, LATEST, Named.as_("names-of-names"), foreign_key="other")
    found.to_stream().to("names-of-names")
    copy = prices.to_stream().repartition().to_table(Named.as_("copied-prices"), versioned("copied-prices", 60))
    referring = prices.join(copy, LATEST, Named.as_("prices-of-prices"), Materialized.as_("kept"), foreign_key="other")
    referring.to_stream().to("prices-of-prices")


def global_table_joins(events: KStream, places: GlobalKTable, tariffs: GlobalKTable) -> None:
    """A stream with tables that each task has whole, one of them followed in time."""
    events.join(places, "other", LATEST).to("placed")
    events.left_join(places, "other", LATEST).to("placed-left")
    events.join(tariffs, "other", LATEST).to("tariffed")
    events.select_key("id").repartition().left_join(tariffs, "other", LATEST).to("tariffed-elsewhere")
