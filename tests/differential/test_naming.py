"""Names and descriptions are those of Kafka Streams: number for number, text for text."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from statelib import Consumed, Materialized, StreamsBuilder
from statelib.errors.kinds import ConfigurationError
from tests.differential.kafka import Refused
from tests.differential.naming import description_of, program_of

if TYPE_CHECKING:
    from tests.differential.kafka import KafkaStreams
    from tests.differential.naming import Step

PROGRAMS = 150
COUNTS = {"store": "counts"}
GROUPED: list[Step] = [{"op": "stream", "topic": "in"}, {"op": "group_by", "of": 0}]
SESSIONS: list[Step] = [*GROUPED, {"op": "windowed_by", "of": 1, "windows": "sessions"}]
TABLES: list[Step] = [{"op": "table", "topic": "a"}, {"op": "table", "topic": "b"}]
KNOWN: dict[str, tuple[list[Step], list[str]]] = {
    "a table": (
        [{"op": "table", "topic": "input"}, {"op": "filter", "of": 0, "store": "few"}, {"op": "to_stream", "of": 1}],
        ["KSTREAM-SOURCE-0000000001", "KTABLE-SOURCE-0000000002", "KTABLE-FILTER-0000000003"],
    ),
    "a table's store, where there is need of one": (
        [{"op": "table", "topic": "input"}, {"op": "group_by", "of": 0}, {"op": "count", "of": 1}],
        ["input-STATE-STORE-0000000000", "KTABLE-AGGREGATE-STATE-STORE-0000000004-repartition"],
    ),
    "a table with a name": ([{"op": "table", "topic": "input", "name": "n"}], ["Source: n-source", "Processor: n "]),
    "a repartition topic is called after the store": (
        [*GROUPED, {"op": "count", "of": 1, **COUNTS}],
        ["(topic: counts-repartition)", "counts-repartition-filter", "counts-repartition-source"],
    ),
    "a repartition topic of a name": (
        [GROUPED[0], {"op": "group_by", "of": 0, "name": "by"}, {"op": "count", "of": 1, **COUNTS}],
        ["Processor: by ", "(topic: by-repartition)"],
    ),
    "a table's stream under another key": (
        [TABLES[0], {"op": "to_stream_by", "of": 0, "name": "n"}, {"op": "group_by_key", "of": 1},
         {"op": "count", "of": 2, **COUNTS}],
        ["Processor: n ", "KSTREAM-KEY-SELECT-0000000004", "(topic: counts-repartition)"],
    ),
    "what is printed": (
        [GROUPED[0], {"op": "print", "of": 0}, {"op": "print", "of": 0, "name": "shown"}],
        ["KSTREAM-PRINTER-0000000001", "Processor: shown "],
    ),
    "topics of a pattern": (
        [{"op": "stream", "topic": "in-a", "more": ["in-b"], "pattern": "in-[a-z]+", "name": "n"},
         {"op": "table", "topic": "other"}, {"op": "stream_table_join", "of": 0, "with": 1},
         {"op": "stream", "topic": "in-a", "more": ["in-b"], "pattern": "in-[a-z]+"}],
        ["Source: n (topics: in-[a-z]+)"],
    ),
    "reduced sessions": ([*SESSIONS, {"op": "reduce", "of": 2}], ["KSTREAM-REDUCE-STATE-STORE-0000000002"]),
    "streams that are aggregated together": (
        [*GROUPED, {"op": "stream", "topic": "other"}, {"op": "group_by_key", "of": 2},
         {"op": "cogroup", "of": 1, "with": 3, "windows": "tumbling", "again": True, "name": "both", **COUNTS}],
        [
            "COGROUPKSTREAM-AGGREGATE-STATE-STORE-0000000003-repartition", "COGROUPKSTREAM-AGGREGATE-0000000007",
            "COGROUPKSTREAM-MERGE-0000000009", "Processor: both-cogroup-agg-0 (stores: [counts])", "both-cogroup-merge",
        ],
    ),
    "a sink behind a new key": (
        [GROUPED[0], {"op": "map", "of": 0}, {"op": "to", "of": 1, "topic": "t"}],
        ["Sink: KSTREAM-SINK-0000000002 (topic: t)\n      <-- KSTREAM-MAP-0000000001\n\n"],
    ),
    "a join with names": (
        [*TABLES, {"op": "table_join", "of": 0, "with": 1, "name": "n"}], ["n-join-this", "n-join-other"]
    ),
    "joined streams": (
        [
            {"op": "stream", "topic": "a"}, {"op": "stream", "topic": "b"},
            {"op": "stream_left_join", "of": 0, "with": 1, "store": "s"},
        ],
        ["s-this-join-store", "s-outer-other-join-store", "s-left-shared-join-store", "KSTREAM-MERGE-0000000006"],
    ),
    "joined streams with stores of suppliers": (
        [
            {"op": "stream", "topic": "a"}, {"op": "stream", "topic": "b"},
            {"op": "stream_outer_join", "of": 0, "with": 1, "this": "t", "other": "o"},
            {"op": "stream_left_join", "of": 0, "with": 1, "other": "p", "store": "s"},
        ],
        ["(stores: [t", "(stores: [o", "t-outer-shared-join-store", "s-this-join-store", "[p]"],
    ),
    "a join by a foreign key": (
        [*TABLES, {"op": "foreign_key_join", "of": 0, "with": 1}],
        [
            "KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000006-topic",
            "KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-0000000010",
            "KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR-0000000017",
        ],
    ),
}  # fmt: skip


OPTIMIZED: dict[str, tuple[list[Step], list[str], list[str]]] = {
    "one repartition topic behind a changed key": (
        [
            GROUPED[0], {"op": "map", "of": 0}, {"op": "filter", "of": 1}, {"op": "group_by_key", "of": 1},
            {"op": "count", "of": 3, "store": "first"}, {"op": "group_by_key", "of": 2},
            {"op": "count", "of": 5, "store": "second"},
        ],
        ["Sink: first-repartition-sink (topic: first-repartition)\n      <-- first-repartition-filter"],
        ["second-repartition"],
    ),
    "one behind merged streams": (
        [
            GROUPED[0], {"op": "map", "of": 0}, {"op": "map", "of": 0}, {"op": "merge", "of": 1, "with": 2},
            {"op": "group_by_key", "of": 3}, {"op": "count", "of": 4}, {"op": "reduce", "of": 4, "store": "second"},
        ],
        ["KSTREAM-AGGREGATE-STATE-STORE-0000000004-repartition"],
        ["second-repartition"],
    ),
    "a stream joined with itself": (
        [GROUPED[0], {"op": "stream_outer_join", "of": 0, "with": 0}],
        ["Processor: KSTREAM-MERGE-0000000005 (stores: [KSTREAM-OUTERTHIS-0000000003-store])"],
        ["KSTREAM-OUTEROTHER-0000000004", "KSTREAM-WINDOWED-0000000002"],
    ),
    "a topic joined with itself, read twice": (
        [GROUPED[0], GROUPED[0], {"op": "stream_join", "of": 0, "with": 1, "name": "n", "store": "s"}],
        ["Processor: n-merge (stores: [s-this-join-store])"], ["n-other-windowed", "s-other-join-store"],
    ),
}  # fmt: skip
CHANGES = {"flat_map_values", "peek", "select_key", "flat_map"}
OPTIMIZATIONS = ("none", "all", "merge.repartition.topics", "single.store.self.join")


@pytest.mark.parametrize("known", KNOWN)
def test_known_names(known: str, kafka: KafkaStreams) -> None:
    steps, names = KNOWN[known]
    text = description_of(steps)
    assert [name for name in names if name not in text] == [], text
    assert text == kafka.describe(steps)


@pytest.mark.parametrize("known", OPTIMIZED)
def test_known_names_of_what_is_optimised(known: str, kafka: KafkaStreams) -> None:
    steps, names, gone = OPTIMIZED[known]
    text, plain = description_of(steps, "all"), description_of(steps)
    assert [name for name in names if name not in text] == [], text
    assert [name for name in gone if name in text or name not in plain] == [], text
    assert text == kafka.describe(steps, "all")


def test_random_programs_are_described_as_kafka_streams_describes_them(kafka: KafkaStreams) -> None:
    described, changed = 0, 0
    for seed in range(PROGRAMS):
        steps = program_of(seed)
        plain = ""
        for optimization in OPTIMIZATIONS:
            try:
                expected = kafka.describe(steps, optimization)
            except Refused:
                continue
            described += 1
            text = description_of(steps, optimization)
            assert text == expected, (seed, optimization, steps)
            plain = plain or text
            changed += text != plain
    assert described > 0.98 * PROGRAMS * len(OPTIMIZATIONS)
    assert changed > 0.1 * PROGRAMS * len(OPTIMIZATIONS)


def test_processors_may_count_as_changing_keys_or_values(kafka: KafkaStreams) -> None:
    changed = 0
    for op, seed in itertools.product(("process", "process_values"), range(20)):
        steps = [step | {"op": op, "stores": []} if step["op"] in CHANGES else step for step in program_of(seed)]
        steps = [{name: part for name, part in step.items() if name != "name"} for step in steps]
        try:
            expected = kafka.describe(steps, "all", fixed="true")
        except Refused:
            continue
        assert description_of(steps, "all", fixed="true") == expected, (op, seed)
        changed += expected != description_of(steps, "all")
    assert changed


def test_what_kafka_streams_cannot_merge_is_refused(kafka: KafkaStreams) -> None:
    """A filter that two aggregations share lies between the key and both of their topics."""
    steps: list[Step] = [
        GROUPED[0], {"op": "map", "of": 0}, {"op": "filter", "of": 1}, {"op": "group_by_key", "of": 2},
        {"op": "count", "of": 3}, {"op": "reduce", "of": 3},
    ]  # fmt: skip
    assert description_of(steps) == kafka.describe(steps)
    with pytest.raises(Refused, match="null keyChangingChild"):
        kafka.describe(steps, "all")
    with pytest.raises(ConfigurationError, match="Kafka Streams cannot merge these repartition topics"):
        description_of(steps, "all")


def test_repartition_topics_of_one_name_have_to_be_merged(kafka: KafkaStreams) -> None:
    steps: list[Step] = [
        GROUPED[0], {"op": "map", "of": 0}, {"op": "group_by_key", "of": 1, "name": "n"}, {"op": "count", "of": 2},
        {"op": "group_by_key", "of": 1, "name": "n"}, {"op": "reduce", "of": 4},
    ]  # fmt: skip
    assert description_of(steps, "all") == kafka.describe(steps, "all")
    with pytest.raises(Refused, match="already"):
        kafka.describe(steps)
    with pytest.raises(ConfigurationError, match="two repartition topics have one name.*merge.repartition.topics"):
        description_of(steps)


def test_more_nodes_than_a_hash_table_of_java_has_at_first(kafka: KafkaStreams) -> None:
    """Its order changes with its size, and that of Kafka's texts with it."""
    for seed in range(5):
        steps = program_of(seed, most=70)
        assert description_of(steps) == kafka.describe(steps), (seed, steps)


def test_what_only_this_project_has_counts_as_one_processor() -> None:
    builder = StreamsBuilder("app")
    stream = builder.stream("in").deduplicate_by_key(timedelta(seconds=1))
    stream.filter("value").to("out")
    assert "KSTREAM-FILTER-0000000002" in builder.build().describe()


def test_how_a_table_is_read_may_come_first_as_in_kafka_streams() -> None:
    consumed, kept = Consumed.as_("n"), Materialized.as_("kept")
    for make in ("table", "global_table"):
        texts = []
        for options in ((consumed, kept), (kept, consumed)):
            builder = StreamsBuilder("app")
            getattr(builder, make)("t", *options)
            builder.stream("in").to("out")
            texts.append(builder.build().describe())
        assert "Source: n-source (topics: [t])" in texts[0]
        assert "Processor: n (stores: [kept])" in texts[0]
        assert texts[0] == texts[1]
        with pytest.raises(ConfigurationError, match="at most one Materialized and one Consumed"):
            getattr(StreamsBuilder("app"), make)("t", consumed, consumed)
        with pytest.raises(ConfigurationError, match="takes a Materialized or a Consumed as materialized, not a str"):
            getattr(StreamsBuilder("app"), make)("t", "kept")


def test_a_name_that_two_nodes_have_is_refused() -> None:
    steps: list[Step] = [GROUPED[0], {"op": "filter", "of": 0, "name": "n"}, {"op": "peek", "of": 1, "name": "n"}]
    with pytest.raises(ConfigurationError, match="two nodes have one name"):
        description_of(steps)
