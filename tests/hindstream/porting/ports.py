"""Ports of the topologies in Ports.java, and the same with a mistake in each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc

from statelib import (
    Branched,
    BufferConfig,
    Consumed,
    Job,
    JoinWindows,
    KStream,
    KTable,
    Materialized,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    per_record,
)
from statelib.operators.mappers.mapping import Mapper

VALUE = pc.field("value")
NUMBERS = pa.list_(pa.int64())
BOTH = pc.add(pc.multiply(pc.field("left"), 1000), pc.field("right"))


def ms(count: int) -> timedelta:
    return timedelta(milliseconds=count)


OUTER = per_record(
    lambda left, right: 1000 * (99 if left is None else left) + (99 if right is None else right),
    pa.int64(), "left", "right",
)  # fmt: skip
SIZE, GRACE = ms(40), ms(30)
WINDOWS = TimeWindows.of_size_and_grace(SIZE, GRACE)
SESSIONS = SessionWindows.of_inactivity_gap_and_grace(ms(12), GRACE)
CLOSED = Suppressed.until_window_closes(BufferConfig.unbounded())
SWAPPED = JoinWindows.of_time_difference_and_grace(ms(5), GRACE).before(ms(9))
WITHIN = JoinWindows.of_time_difference_and_grace(ms(5), GRACE).after(ms(9))

Build = Callable[[StreamsBuilder], KStream | None]


@dataclass(frozen=True)
class Port:
    """A topology of Ports.java, its port, and one with a mistake."""

    mistake: str
    java: str
    right: Build
    wrong: Build
    optimization: str = "none"

    def job(self, *, right: bool = True) -> Job:
        builder = StreamsBuilder("port")
        results = (self.right if right else self.wrong)(builder)
        if results is not None:
            results.to("out")
        return Job("port", builder.build({"topology.optimization": self.optimization}))


def flights(builder: StreamsBuilder) -> KStream:
    return builder.stream("flights")


def weather(builder: StreamsBuilder) -> KTable:
    return builder.table("weather", Materialized.as_("weather"))


def versions(builder: StreamsBuilder) -> KTable:
    return builder.table("weather", Materialized.as_(Stores.persistent_versioned_key_value_store("weather", ms(500))))


def key_of(divisor: int) -> Mapper:
    return per_record(lambda value: f"k{value % divisor}", pa.string(), "value")


def windowed(windows: object) -> Build:
    return lambda builder: flights(builder).group_by_key().windowed_by(windows).count().to_stream()


def final(windows: object) -> Build:
    return lambda builder: flights(builder).group_by_key().windowed_by(windows).count().suppress(CLOSED).to_stream()


def foreign_keys(how: str, divisor: int) -> Build:
    def build(builder: StreamsBuilder) -> KStream:
        rows = builder.table("flights")
        return getattr(rows, how)(builder.table("weather"), BOTH, foreign_key=key_of(divisor)).to_stream()

    return build


def optimized(size: int) -> Build:
    """One repartition topic for all, and one store for the stream that is joined with itself."""

    def build(builder: StreamsBuilder) -> KStream:
        renamed = flights(builder).filter(VALUE > 0).select_key(key_of(7))
        few = renamed.filter(VALUE > 3)
        joined = few.join(few, BOTH, JoinWindows.of_time_difference_and_grace(ms(size), GRACE))
        return renamed.group_by_key().count(Materialized.as_("counts")).to_stream().merge(joined)

    return build


def branched(first: int, second: int) -> Build:
    def build(builder: StreamsBuilder) -> KStream:
        split = flights(builder).split().branch(first < VALUE)
        some = Branched.with_consumer(lambda stream: stream.to("some"))
        return next(iter(split.branch(second < VALUE, some).no_default_branch().values()))

    return build


def unfolded(least: int) -> Build:
    pieces = per_record(lambda value: [] if value < least else [value, value + 1], NUMBERS, "value")
    return lambda builder: flights(builder).flat_map_values(pieces)


def mapped(function: Callable[[int], int]) -> Build:
    halves = per_record(function, pa.int64(), "value")
    marked = per_record(lambda key: f"{key}!", pa.string(), "key")
    return lambda builder: flights(builder).map(marked, halves)


def once(interval_ms: int) -> Build:
    return lambda builder: flights(builder).deduplicate_by_key_value("value", ms(interval_ms))


def global_table(divisor: int) -> Build:
    return lambda builder: flights(builder).join(builder.global_table("weather"), key_of(divisor), BOTH)


def outer_streams(how: str) -> Build:
    within = JoinWindows.of_time_difference_and_grace(ms(5), GRACE)
    return lambda builder: getattr(flights(builder), how)(builder.stream("weather"), OUTER, within)


def outer_tables(how: str) -> Build:
    return lambda builder: getattr(flights(builder).to_table(), how)(weather(builder), OUTER).to_stream()


def read_back(least: int) -> Build:
    def build(builder: StreamsBuilder) -> KStream:
        flights(builder).filter(least < VALUE).to("large")
        return builder.stream("large").map_values(pc.multiply(VALUE, 2))

    return build


def chosen(most: int) -> Build:
    topic = per_record(lambda value: "out" if value > most else "some", pa.string(), "value")
    return lambda builder: flights(builder).to(topic, topics=["out", "some"])


def limited(limit_ms: int) -> Build:
    calm = Suppressed.until_time_limit(ms(limit_ms), BufferConfig.unbounded())
    latest = lambda old, new: new  # noqa: E731 - a mapper
    return lambda builder: flights(builder).group_by_key().reduce(latest).suppress(calm).to_stream()


EXTRACTED = Consumed().with_timestamp_extractor(
    per_record(lambda value, timestamp: timestamp - 5 * value, pa.int64(), "value", "timestamp")
)

PORTS = (
    Port("the grace period is left out", "Ports::windows", windowed(WINDOWS),
         windowed(TimeWindows.of_size_with_no_grace(SIZE))),
    Port("windows of another size", "Ports::windows", windowed(WINDOWS),
         windowed(TimeWindows.of_size_and_grace(ms(41), GRACE))),
    Port("windows that do not hop", "Ports::hopping", windowed(WINDOWS.advance_by(ms(10))), windowed(WINDOWS)),
    Port("suppress is left out", "Ports::finals", final(WINDOWS), windowed(WINDOWS)),
    Port("hopping windows in place of sliding ones", "Ports::sliding",
         windowed(SlidingWindows.of_time_difference_and_grace(SIZE, GRACE)), windowed(WINDOWS.advance_by(ms(1)))),
    Port("another gap between sessions", "Ports::sessions", windowed(SESSIONS),
         windowed(SessionWindows.of_inactivity_gap_and_grace(ms(11), GRACE))),
    Port("< for <=", "Ports::filtered", lambda builder: flights(builder).filter(VALUE <= 10),
         lambda builder: flights(builder).filter(VALUE < 10)),
    Port("a stream that is filtered in place of a table", "Ports::filteredTable",
         lambda builder: weather(builder).filter(VALUE > 4).to_stream(),
         lambda builder: builder.stream("weather").filter(VALUE > 4)),
    Port("the extractor is forgotten", "Ports::extracted",
         lambda builder: builder.stream("flights", EXTRACTED), flights),
    Port("a left join in place of an inner one", "Ports::joined",
         lambda builder: flights(builder).join(weather(builder), BOTH),
         lambda builder: flights(builder).left_join(weather(builder), BOTH)),
    Port("a plain table in place of a versioned one", "Ports::versioned",
         lambda builder: flights(builder).join(versions(builder), BOTH),
         lambda builder: flights(builder).join(weather(builder), BOTH)),
    Port("before and after are exchanged", "Ports::joinedStreams",
         lambda builder: flights(builder).join(builder.stream("weather"), BOTH, WITHIN),
         lambda builder: flights(builder).join(builder.stream("weather"), BOTH, SWAPPED)),
    Port("a left join by a foreign key", "Ports::foreignKeys", foreign_keys("join", 7), foreign_keys("left_join", 7)),
    Port("another foreign key", "Ports::foreignKeys", foreign_keys("join", 7), foreign_keys("join", 6)),
    Port("another key to group by", "Ports::regrouped",
         lambda builder: flights(builder).group_by(key_of(5)).count().to_stream(),
         lambda builder: flights(builder).group_by(key_of(4)).count().to_stream()),
    Port("a window of another size in an optimised topology", "Ports::optimized", optimized(5), optimized(500), "all"),
    Port("a count in place of a sum", "Ports::summed",
         lambda builder: flights(builder).group_by_key().sum("value").to_stream(),
         lambda builder: flights(builder).group_by_key().count().to_stream()),
    Port("the first value in place of the last one", "Ports::latest",
         lambda builder: flights(builder).group_by_key().reduce(lambda old, new: new).to_stream(),
         lambda builder: flights(builder).group_by_key().reduce(lambda old, new: old).to_stream()),
    Port("a stream is not merged", "Ports::merged",
         lambda builder: flights(builder).merge(builder.stream("weather")),
         lambda builder: flights(builder).merge(builder.stream("weather").filter(VALUE > 100))),
    Port("branches in another order", "Ports::branched", branched(10, 5), branched(5, 10)),
    Port("values that make nothing", "Ports::unfolded", unfolded(3), unfolded(2)),
    Port("another rounding", "Ports::mapped", mapped(lambda value: value // 2), mapped(lambda value: round(value / 2))),
    Port("another key of a global table", "Ports::global", global_table(7), global_table(6)),
    Port("a left join of streams in place of an outer one", "Ports::outer", outer_streams("outer_join"),
         outer_streams("left_join")),
    Port("a left join of tables in place of an outer one", "Ports::outerTables", outer_tables("outer_join"),
         outer_tables("left_join")),
    Port("another filter before a topic that is read back", "Ports::readBack", read_back(3), read_back(4)),
    Port("another choice of topics", "Ports::chosen", chosen(5), chosen(6)),
    Port("another time limit", "Ports::limited", limited(20), limited(30)),
    Port("the deduplication forgets", "Ports::ONCE", once(10_000), once(20)),
)  # fmt: skip
"""More than twenty mistakes."""
