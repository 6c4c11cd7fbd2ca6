"""`StreamsBuilder.build` with Kafka's setting `topology.optimization`."""

from __future__ import annotations

from datetime import timedelta

import pytest

from statelib import JoinWindows, Materialized, Stores, StreamsBuilder, TopologyTestDriver
from statelib.dsl.optimization import OPTIMIZATIONS, Optimizations, optimizations_of
from statelib.errors.kinds import ConfigurationError

ALL = {"topology.optimization": "all"}
WINDOWS = JoinWindows.of_time_difference_and_grace(timedelta(milliseconds=10), timedelta(milliseconds=10))


def two_counts() -> StreamsBuilder:
    builder = StreamsBuilder("app")
    renamed = builder.stream("in").select_key("value")
    for number in ("one", "two"):
        renamed.group_by_key().count(Materialized.as_(number)).to_stream().to(f"out-{number}")
    return builder


def test_none_one_several_or_all_are_named() -> None:
    assert optimizations_of({}) == optimizations_of({"topology.optimization": "none"}) == Optimizations()
    assert optimizations_of(ALL).rules == frozenset(OPTIMIZATIONS)
    some = {"topology.optimization": "merge.repartition.topics, single.store.self.join"}
    assert optimizations_of(some).rules == {"merge.repartition.topics", "single.store.self.join"}


@pytest.mark.parametrize(
    ("props", "said"),
    [
        ({"topology.optimisation": "all"}, r"no setting topology\.optimisation.*topology\.optimization"),
        ({"num.stream.threads": "4"}, r"no setting num\.stream\.threads.*topology\.optimization alone"),
        ({"topology.optimization": "merge.repartition.topic"}, r"no optimisation.*merge\.repartition\.topics"),
        ({"__enable.process.processValue.fix__": "yes"}, "is yes.*true or false"),
        ({"topology.optimization": "all,merge.repartition.topics"}, "names none or all, and others with it"),
    ],
)
def test_what_kafka_streams_does_not_know_is_refused(props: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        two_counts().build(props)


def test_the_same_builder_builds_both_again_and_again() -> None:
    builder = two_counts()
    plain, optimized = builder.build(), builder.build(ALL)
    assert plain.describe() != optimized.describe()
    assert builder.build(ALL).describe() == optimized.describe()
    assert builder.build().describe() == plain.describe()
    assert builder.build(ALL).fingerprint == optimized.fingerprint != plain.fingerprint
    assert [len(topology.sub_topologies) for topology in (plain, optimized)] == [3, 2]


def test_a_sink_behind_a_merged_topic_needs_no_repartition_of_its_own() -> None:
    builder = StreamsBuilder("app")
    renamed = builder.stream("in").select_key("value").filter("key")
    renamed.group_by_key().count().to_stream().to("counts")
    renamed.to("renamed")
    repartitions = [node.repartition_sources for node in builder.build(ALL).sub_topologies]
    assert repartitions == [(), ("app-KSTREAM-AGGREGATE-STATE-STORE-0000000003-repartition",)]


def test_what_kafka_streams_cannot_merge_is_refused() -> None:
    """Two merges below one changed key: each would have its repartition."""
    builder = StreamsBuilder("app")
    renamed = builder.stream("in").select_key("value")
    renamed.merge(renamed).merge(renamed).group_by_key().count()
    builder.build()
    with pytest.raises(ConfigurationError, match=r"cannot merge.*leave merge\.repartition\.topics out"):
        builder.build(ALL)


def test_topics_tables_with_stores_have_their_topic_as_changelog() -> None:
    builder = StreamsBuilder("app")
    versioned = Stores.persistent_versioned_key_value_store("versions", timedelta(seconds=1))
    named = builder.table("named", Materialized.as_("kept"))
    prices = builder.table("versioned", Materialized.as_(versioned))
    builder.table("nobody-looks").to_stream().to("copy")
    builder.global_table("global", Materialized.as_("everywhere"))
    builder.stream("in").to_table(materialized=Materialized.as_("of-stream")).join(named, "left").to_stream().to("out")
    builder.stream("asked").join(prices, "right").to("priced")
    changelogs = {"kept": "named", "versions": "versioned"}
    assert builder.build(ALL).source_changelogs == changelogs
    assert builder.build({"topology.optimization": "reuse.ktable.source.topics"}).source_changelogs == changelogs
    assert builder.build().source_changelogs == {}
    assert builder.build(ALL).with_sinks({"out": "other"}).source_changelogs == changelogs


def test_left_and_outer_joins_of_a_stream_with_itself_have_no_unmatched_records() -> None:
    """And none without a key, of which two stores give results (KIP-962)."""
    made = []
    for setting in ("none", "all"):
        builder = StreamsBuilder("app")
        stream = builder.stream("in")
        stream.outer_join(stream, {"left": "left", "right": "right"}, WINDOWS).to("out")
        with TopologyTestDriver(builder.build({"topology.optimization": setting})) as driver:
            given = driver.create_input_topic("in")
            for key, value, timestamp in (("a", "x", 1), (None, "y", 2), ("a", "z", 5)):
                given.pipe_input(key, value, timestamp)
            out = driver.create_output_topic("out").read_records_to_list()
            made.append([(record.key, *record.value.values(), record.timestamp_ms) for record in out])
    pairs = [("a", "x", "x", 1), ("a", "z", "x", 5), ("a", "x", "z", 5), ("a", "z", "z", 5)]
    assert made[1] == pairs
    assert [row for row in made[0] if row[0] == "a"] == pairs
    assert len(made[0]) > len(pairs)
