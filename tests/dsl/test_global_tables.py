"""Global tables in the DSL: nodes and description as Kafka Streams has them, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from statelib import (
    ConfigurationError,
    Consumed,
    GlobalKTable,
    LogAndSkipOnInvalidTimestamp,
    Materialized,
    Named,
    Stores,
    StreamsBuilder,
    TopologyTestDriver,
    per_record,
)
from statelib.operators.joins.stream_table.latest import StreamLatestJoin
from statelib.operators.joins.stream_table.operator import StreamTableJoin

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from statelib.settings.semantics import Semantics

pytestmark = pytest.mark.thorough


def _fails_on_any(columns: pa.RecordBatch) -> pa.Array:
    raise AssertionError(f"it is asked for {columns.num_rows} records")


VERSIONED = Materialized.as_(Stores.persistent_versioned_key_value_store("rates", timedelta(days=1)))


def test_the_description_is_that_of_kafka_streams() -> None:
    builder = StreamsBuilder("app")
    places = builder.global_table("places", Materialized.as_("places"))
    joined = builder.stream("visits").join(places, "place", "right")
    joined.left_join(places, "key", "left", Named.as_("again")).to("out")
    assert builder.build().describe() == (
        "Topologies:\n"
        "   Sub-topology: 0 for global store (will not generate tasks)\n"
        "    Source: KSTREAM-SOURCE-0000000000 (topics: [places])\n"
        "      --> KTABLE-SOURCE-0000000001\n"
        "    Processor: KTABLE-SOURCE-0000000001 (stores: [places])\n"
        "      --> none\n"
        "      <-- KSTREAM-SOURCE-0000000000\n"
        "  Sub-topology: 1\n"
        "    Source: KSTREAM-SOURCE-0000000002 (topics: [visits])\n"
        "      --> KSTREAM-LEFTJOIN-0000000003\n"
        "    Processor: KSTREAM-LEFTJOIN-0000000003 (stores: [])\n"
        "      --> again\n"
        "      <-- KSTREAM-SOURCE-0000000002\n"
        "    Processor: again (stores: [])\n"
        "      --> KSTREAM-SINK-0000000005\n"
        "      <-- KSTREAM-LEFTJOIN-0000000003\n"
        "    Sink: KSTREAM-SINK-0000000005 (topic: out)\n"
        "      <-- again\n"
        "\n"
    )


def test_a_stream_keeps_its_partitions_and_needs_no_new_ones() -> None:
    builder = StreamsBuilder("app")
    places = builder.global_table("places")
    visits = builder.stream("visits")
    visits.join(places, "place", "right").group_by_key().count().to_stream().to("by-key")
    visits.select_key("id").join(places, "place", "right").group_by_key().count().to_stream().to("by-id")
    topology = builder.build()
    assert [sub.sinks for sub in topology.sub_topologies] == [("by-key",), ("by-id",)]
    assert topology.partitions({"visits": 2, "places": 7}) == {0: 2, 1: 2}
    assert (topology.source_topics, topology.bootstrap_topics) == (("places", "visits"), ("places",))


def test_a_store_has_the_table_and_decides_how_it_is_read() -> None:
    builder = StreamsBuilder("app")
    tables = [builder.global_table("places"), builder.global_table("rates", VERSIONED, Consumed.as_("named"))]
    assert [table.queryable_store_name for table in tables] == ["places-STATE-STORE-0000000000", "rates"]
    for number, table in enumerate(tables):
        builder.stream("visits").left_join(table, "place", "right").to(f"joined-{number}")
    topology = builder.build()
    (sub,) = topology.sub_topologies
    assert [(source.name, source.reading) for source in sub.all_sources] == [
        ("KSTREAM-SOURCE-0000000001", "bootstrap"), ("named-source", "follow"),
        ("KSTREAM-SOURCE-0000000005", "partition"),
    ]  # fmt: skip
    assert topology.bootstrap_topics == ("places",)
    kinds = [type(p.spec) for p in sub.processors if p.name.startswith("KSTREAM-LEFTJOIN")]
    assert kinds == [StreamLatestJoin, StreamTableJoin]


@pytest.mark.parametrize("materialized", [None, VERSIONED])
def test_the_joiner_sees_both_keys(materialized: Materialized | None, tmp_path: Path) -> None:
    builder = StreamsBuilder("app")
    places = builder.global_table("places", materialized)
    by_batch = {"mapped": "mapped_key", "key": "key", "found": "right"}
    columns = ("key", "mapped_key", "right")
    by_record = per_record(lambda key, mapped, right: f"{key} {mapped} {right}", pa.string(), *columns)
    visits = builder.stream("visits")
    visits.left_join(places, "value", by_batch).to("all")
    visits.join(places, "value", by_record).to("found")
    driver = TopologyTestDriver(builder.build(), tmp_path)
    driver.create_input_topic("places").pipe_input("rome", "Rome", 1)
    driver.create_input_topic("visits").pipe_record_list([("v", "rome", 2), ("w", "oslo", 3), (None, "rome", 4)])
    assert driver.create_output_topic("all").read_key_values_to_list() == [
        ("v", {"mapped": "rome", "key": "v", "found": "Rome"}),
        ("w", {"mapped": "oslo", "key": "w", "found": None}),
        (None, {"mapped": "rome", "key": None, "found": "Rome"}),
    ]
    assert driver.create_output_topic("found").read_values_to_list() == ["v rome Rome", "None rome Rome"]


def test_the_fingerprint_covers_how_a_table_is_read_and_its_key() -> None:
    def fingerprint(join: Callable[[StreamsBuilder], object]) -> str:
        builder = StreamsBuilder("app")
        join(builder)
        return builder.build().fingerprint

    def joined(key: str, materialized: Materialized | None) -> Callable[[StreamsBuilder], object]:
        def describe(builder: StreamsBuilder) -> None:
            builder.stream("visits").join(builder.global_table("places", materialized), key, "right").to("out")

        return describe

    described = [joined(key, materialized) for key in ("place", "other") for materialized in (None, VERSIONED)]
    assert len({fingerprint(describe) for describe in described}) == 4


def read_twice(builder: StreamsBuilder) -> None:
    builder.global_table("places")
    builder.global_table("places")


def read_as_stream(builder: StreamsBuilder) -> None:
    builder.global_table("places")
    builder.stream("places")


def read_as_table(builder: StreamsBuilder) -> None:
    builder.table("places")
    builder.global_table("places")


@pytest.mark.parametrize("describe", [read_twice, read_as_stream, read_as_table])
def test_a_global_table_has_its_topic_for_itself(describe: Callable[[StreamsBuilder], None]) -> None:
    with pytest.raises(
        ConfigurationError, match=r"topic of a global table is also read by another source.*topic places.*table\(\)"
    ):
        describe(StreamsBuilder("app"))


def test_stores_of_one_name_are_refused() -> None:
    builder = StreamsBuilder("app")
    builder.global_table("places", Materialized.as_("one"))
    with pytest.raises(ConfigurationError, match="two stores have one name"):
        builder.global_table("others", Materialized.as_("one"))


def test_what_is_piped_in_before_is_found(tmp_path: Path) -> None:
    builder = StreamsBuilder("app")
    places: GlobalKTable = builder.global_table("places")
    builder.stream("visits").join(places, "value", {"at": "left", "place": "right"}).to("out")
    driver = TopologyTestDriver(builder.build(), tmp_path, partitions=2)
    driver.create_input_topic("places", pa.string(), pa.string()).pipe_input("a", "Amsterdam", 99)
    visits = driver.create_input_topic("visits", pa.string(), pa.string())
    visits.pipe_record_list([("x", "a", 1), ("y", "b", 2), ("x", None, 3)])
    out = driver.create_output_topic("out")
    assert out.read_key_values_to_list() == [("x", {"at": "a", "place": "Amsterdam"})]


_ASKED = per_record(lambda value: None if value == "none" else value or "from-null", pa.string(), "value")
_JOINED = per_record(lambda key, left, right: f"{key}:{left}|{right}", pa.string(), "key", "left", "right")


@pytest.mark.parametrize("semantics", ["kip", "kafka-4.3"])
@pytest.mark.parametrize("key", ["k", None])
@pytest.mark.parametrize(
    ("value", "right"), [("none", "None"), ("a", "A"), ("z", "None"), (None, "dropped, whatever its mapper makes")]
)
def test_what_a_mapper_makes_of_nulls_is_joined_as_in_kafka_streams(
    tmp_path: Path, semantics: Semantics, key: str | None, value: str | None, right: str
) -> None:
    """As the test drivers of 4.3.0 and 4.4.0 answer it, both alike."""
    builder = StreamsBuilder("app")
    table, stream = builder.global_table("table"), builder.stream("in")
    stream.left_join(table, _ASKED, _JOINED).to("left")
    stream.join(table, _ASKED, _JOINED).to("inner")
    driver = TopologyTestDriver(builder.build(), tmp_path, semantics=semantics)
    given = driver.create_input_topic("table")
    given.pipe_input("a", "A", 0)
    given.pipe_input("from-null", "N", 0)
    driver.create_input_topic("in").pipe_input(key, value, 5)
    left, inner = (
        [(record.key, record.value) for record in driver.create_output_topic(topic).read_records_to_list()]
        for topic in ("left", "inner")
    )
    joined = [(key, f"{key}:{value}|{right}")]
    assert left == ([] if value is None else joined)
    assert inner == (joined if right == "A" else [])


_SENT = per_record(int, pa.int64(), "value")


@pytest.mark.parametrize("extractor", [_SENT, LogAndSkipOnInvalidTimestamp(_SENT), _fails_on_any])
def test_a_plain_table_never_asks_its_timestamp_extractor(tmp_path: Path, extractor: Any) -> None:
    builder = StreamsBuilder("app")
    consumed = Consumed().with_timestamp_extractor(extractor)
    builder.stream("in").join(builder.global_table("table", None, consumed), "key", "right").to("out")
    driver = TopologyTestDriver(builder.build(), tmp_path)
    given, asking = driver.create_input_topic("table"), driver.create_input_topic("in")
    for time, (key, value) in enumerate([("a", "700"), ("b", "-1"), ("a", "-5"), ("c", "-2")]):
        given.pipe_input(key, value, time)
    for time, key in enumerate("abc", 10):
        asking.pipe_input(key, "v", time)
    out = driver.create_output_topic("out").read_records_to_list()
    assert [(record.key, record.value) for record in out] == [("a", "-5"), ("b", "-1"), ("c", "-2")]


def test_a_versioned_table_has_the_times_that_its_extractor_gives(tmp_path: Path) -> None:
    builder = StreamsBuilder("app")
    table = builder.global_table("table", VERSIONED, Consumed().with_timestamp_extractor(_SENT))
    builder.stream("in").join(table, "key", "right").to("out")
    driver = TopologyTestDriver(builder.build(), tmp_path)
    given = driver.create_input_topic("table")
    for time, value in enumerate(["700", "-1", "900"]):
        given.pipe_input("a", value, time)
    driver.create_input_topic("in").pipe_input("a", "v", 800)
    out = driver.create_output_topic("out").read_records_to_list()
    assert [(record.key, record.value) for record in out] == [("a", "700")]
