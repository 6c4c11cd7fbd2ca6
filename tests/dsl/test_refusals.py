"""What cannot work is refused when the topology is built, before there is any data, with the way to mend it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from statelib import (
    Branched,
    BufferConfig,
    ConfigurationError,
    Consumed,
    Job,
    Joined,
    JoinWindows,
    JsonSerde,
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
    expect,
)

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
JSON = Consumed(value_serde=JsonSerde(pa.struct([("x", pa.int64())])))
VERSIONED = Materialized.as_(Stores.persistent_versioned_key_value_store("prices", HOUR))


def builder(describe: Callable[[StreamsBuilder], object]) -> Callable[[], object]:
    def build() -> object:
        streams = StreamsBuilder("job")
        describe(streams)
        return streams.build()

    return build


def short_retention(windows: TimeWindows | SlidingWindows | SessionWindows, retention: timedelta) -> object:
    def describe(streams: StreamsBuilder) -> object:
        return streams.stream("a").group_by_key().windowed_by(windows).count(Materialized().with_retention(retention))

    return builder(describe)


def sessions_without_merger(streams: StreamsBuilder) -> object:
    sessions = SessionWindows.of_inactivity_gap_with_no_grace(MINUTE)
    windowed = streams.stream("a").group_by_key().windowed_by(sessions)
    return windowed.aggregate_with(int, lambda _, value, total: value + total, None, pa.int64())  # type: ignore[arg-type]


def read_twice(streams: StreamsBuilder) -> None:
    streams.stream("a")
    streams.stream("a", JSON)


def named_twice(streams: StreamsBuilder) -> None:
    named = Named.as_("twice")
    streams.stream("a").filter("x", named).map_values("x", named)


def stores_of_one_name(streams: StreamsBuilder) -> None:
    grouped = streams.stream("a").group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(HOUR))
    grouped.count(Materialized.as_("counts"))
    grouped.count(Materialized.as_("counts"))


def merged_with_another_builders(streams: StreamsBuilder) -> None:
    streams.stream("a").merge(StreamsBuilder("other").stream("b")).to("c")


def joined_with_another_builders(streams: StreamsBuilder) -> None:
    streams.stream("a").join(StreamsBuilder("other").table("b", VERSIONED), "left").to("c")


def joined_with_another_builders_stream(streams: StreamsBuilder) -> None:
    windows = JoinWindows.of_time_difference_with_no_grace(HOUR)
    streams.stream("a").outer_join(StreamsBuilder("other").stream("b"), "left", windows).to("c")


def joined_with_another_builders_global_table(streams: StreamsBuilder) -> None:
    streams.stream("a").left_join(StreamsBuilder("other").global_table("b"), "key", "left").to("c")


def tables_of_two_builders(streams: StreamsBuilder) -> None:
    streams.table("a").join(StreamsBuilder("other").table("b"), "left").to_stream().to("c")


def foreign_key_of_another_builder(streams: StreamsBuilder) -> None:
    streams.table("a").join(StreamsBuilder("other").table("b"), "left", foreign_key="key").to_stream().to("c")


def joined_with_a_topic(streams: StreamsBuilder) -> None:
    streams.stream("a").join("b", "left")  # type: ignore[call-overload]


def joined_with_other_partitions(streams: StreamsBuilder) -> None:
    two, three = (Repartitioned.as_(f"by-{n}").with_number_of_partitions(n) for n in (2, 3))
    table = streams.stream("b").repartition(three).to_table(materialized=VERSIONED)
    streams.stream("a").repartition(two).join(table, "left").to("c")


def grace_beyond_the_history(streams: StreamsBuilder) -> None:
    waiting = Joined.as_("late").with_grace_period(HOUR + MINUTE)
    streams.stream("a").join(streams.table("b", VERSIONED), "left", waiting).to("c")


def grace_without_a_history(streams: StreamsBuilder) -> None:
    streams.stream("a").join(streams.table("b"), "left", Joined.as_("late").with_grace_period(HOUR)).to("c")


def global_table_that_is_written(streams: StreamsBuilder) -> None:
    streams.stream("a").join(streams.global_table("b"), "key", "left").to("b")


def branch_behind_the_default(streams: StreamsBuilder) -> None:
    split = streams.stream("a").split(Named.as_("by-size"))
    split.default_branch()
    split.branch("x")


def branches_of_one_name(streams: StreamsBuilder) -> None:
    streams.stream("a").split().branch("x", Branched.as_("-x")).branch("y", Branched.as_("-x")).no_default_branch()


def job_writing_to(topic: str) -> Callable[[], object]:
    def make() -> object:
        streams = StreamsBuilder("sums")
        streams.stream("a").to(topic)
        return Job("sums", streams.build())

    return make


def eager_final_results() -> object:
    return Suppressed.until_window_closes(BufferConfig.max_records(3))  # type: ignore[arg-type]


REFUSALS = {
    "grace missing, time windows": (lambda: TimeWindows.of(HOUR), r"grace period.*of_size_and_grace"),
    "grace missing, sessions": (lambda: SessionWindows.with_(HOUR), r"grace period.*of_inactivity_gap_and_grace"),
    "retention, time windows": (
        short_retention(TimeWindows.of_size_and_grace(HOUR, HOUR), timedelta(minutes=119)),
        r"retention of 7140000 ms is less than size and grace, 7200000 ms.*at least their size",
    ),
    "retention, sliding windows": (
        short_retention(SlidingWindows.of_time_difference_and_grace(HOUR, MINUTE), 2 * HOUR),
        r"less than twice the time difference and the grace.*at least twice",
    ),
    "retention, sessions": (
        short_retention(SessionWindows.of_inactivity_gap_and_grace(HOUR, MINUTE), HOUR),
        r"less than gap and grace.*at least their gap",
    ),
    "sessions without a merger": (builder(sessions_without_merger), r"needs a merger.*merger="),
    "one topic read in two ways": (builder(read_twice), r"read twice, with a different Consumed.*topic a.*one Cons"),
    "two nodes of one name": (builder(named_twice), r"two nodes have one name.*node twice.*Named"),
    "two stores of one name": (builder(stores_of_one_name), r"two stores have one name.*counts.*differently"),
    "two branches of one name": (builder(branches_of_one_name), r"two nodes have one name.*-x.*Named"),
    "a branch behind the default": (builder(branch_behind_the_default), r"default_branch.*node by-size.*last"),
    "two sinks of one name": (
        builder(lambda s: [s.stream("a").to(topic, Produced().with_name("out")) for topic in ("b", "c")]),
        r"two nodes have one name.*node out",
    ),
    "merge, two builders": (builder(merged_with_another_builders), r"two StreamsBuilders.*one StreamsBuilder"),
    "join, two builders": (builder(joined_with_another_builders), r"two StreamsBuilders"),
    "join of streams, two builders": (builder(joined_with_another_builders_stream), r"two StreamsBuilders"),
    "join of tables, two builders": (builder(tables_of_two_builders), r"two StreamsBuilders"),
    "foreign key, two builders": (builder(foreign_key_of_another_builder), r"two StreamsBuilders"),
    "global table, two builders": (builder(joined_with_another_builders_global_table), r"two StreamsBuilders"),
    "join with a topic": (builder(joined_with_a_topic), r"as other, not a str.*StreamsBuilder\.table\(\)"),
    "join, partitions": (
        builder(joined_with_other_partitions),
        r"joined topics differ in their number of partitions: job-by-2-repartition has 2, job-by-3-repartition has 3",
    ),
    "join, grace and history": (
        builder(grace_beyond_the_history),
        r"history for 3600000 ms, less than the join's grace period of 3660000 ms.*store prices.*at least",
    ),
    "join, grace and a plain table": (
        builder(grace_without_a_history), r"must be versioned.*grace period.*persistent_versioned_key_value_store"
    ),
    "a global table that is a sink": (
        builder(global_table_that_is_written),
        r"written by the same topology.*topic b.*table\(\)",
    ),
    "nothing but global tables": (builder(lambda s: s.global_table("a")), r"no source but global tables"),
    "no partitions": (
        builder(lambda s: s.stream("a").repartition(Repartitioned.number_of_partitions(0)).to("b")),
        r"cannot have 0 partitions.*at least one",
    ),
    "a sink without partitions": (
        builder(lambda s: s.stream("a").to("b", Produced.with_partitions(-1))), r"cannot have -1 partitions.*topic b"
    ),
    "a source without a name": (builder(lambda s: s.stream("")), r"'' is not a valid name of a topic.*249"),
    "a sink's illegal name": (builder(lambda s: s.stream("a").to("b/c")), r"'b/c' is not a valid name of a topic"),
    "no source": (builder(lambda _: None), r"no source.*StreamsBuilder.stream"),
    "final results that leave early": (eager_final_results, r"never emits early.*shut_down_when_full"),
    "the job's topic for late records": (job_writing_to("sums-late"), r"late records or changelog.*another name"),
    "the job's quarantine topic": (job_writing_to("sums-quarantine"), r"quarantined.*another name"),
    "expectations about nothing": (
        lambda: Job("sums", builder(lambda streams: streams.stream("a").to("b"))(), {"c": (expect("x"),)}),  # type: ignore[arg-type]
        r"neither reads nor writes.*one of: a, b",
    ),
}  # fmt: skip


@pytest.mark.parametrize("refused", REFUSALS)
def test_what_cannot_work_is_refused_with_the_way_to_mend_it(refused: str) -> None:
    make, message = REFUSALS[refused]
    with pytest.raises(ConfigurationError, match=message) as raised:
        make()  # type: ignore[operator]
    assert raised.value.next_step


@pytest.mark.parametrize(
    "refused",
    [
        "two nodes of one name",
        "two stores of one name",
        "two branches of one name",
        "two sinks of one name",
        "no partitions",
        "a sink without partitions",
        "a source without a name",
        "a sink's illegal name",
    ],
)
def test_what_is_about_one_node_names_the_line_that_has_added_it(refused: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        REFUSALS[refused][0]()  # type: ignore[operator]
    file, line = raised.value.place["file"], raised.value.place["line"]
    assert file == __file__
    assert ".build()" not in Path(__file__).read_text().splitlines()[int(str(line)) - 1]


def test_what_is_enough_is_not_refused() -> None:
    enough = short_retention(TimeWindows.of_size_and_grace(HOUR, HOUR), 2 * HOUR)
    assert enough()  # type: ignore[operator]


def test_a_topic_that_is_read_twice_in_the_same_way_has_one_source() -> None:
    streams = StreamsBuilder("job")
    table = streams.table("a", VERSIONED, JSON)
    streams.stream("a", JSON).join(table, {"left": "left", "right": "right"}).to("joined")
    streams.stream("a", JSON).to("copy")
    topology = streams.build()
    assert topology.source_topics == ("a",)
    assert len(topology.sub_topologies) == 1


def test_a_record_cache_is_refused_and_changelogs_are_only_noted() -> None:
    plain = Materialized.as_("counts")
    with pytest.raises(ConfigurationError, match="no record cache.*until_time_limit"):
        plain.with_caching_enabled()
    assert plain.with_caching_disabled() == plain.with_logging_enabled() == plain
    builder = Stores.key_value_store_builder(Stores.in_memory_key_value_store("s"), pa.string(), pa.string())
    for options in (builder, BufferConfig.max_records(3), BufferConfig.unbounded(), StreamJoined.as_("s")):
        assert options.with_logging_enabled({"retention.ms": "1"}) == options.with_logging_disabled() == options
    assert builder.with_caching_disabled() == builder
    with pytest.raises(ConfigurationError, match=r"StoreBuilder has no with_caching_enabled\(\).*no record cache"):
        builder.with_caching_enabled()  # type: ignore[attr-defined]
    assert plain.with_logging_disabled().changelog is None
    assert plain.with_logging_enabled({"retention.ms": "1"}).changelog == (("retention.ms", "1"),)
