"""A live application does the first part of a history and stops; a job takes over and does the rest.

Together they make what an application makes that does both parts without a stop.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hindstream.cli.live.takeover import run_takeover
from hindstream.kafka.cluster import Cluster
from hindstream.spark.kafka.archive import archive_topics
from hindstream.spark.kafka.takeover import take_over
from hindstream.spark.phases.pipeline import run_slice
from statelib import (
    Handover,
    Job,
    JoinWindows,
    KafkaTopic,
    Materialized,
    Produced,
    Stores,
    StreamJoined,
    StreamsBuilder,
    open_state,
    per_record,
)
from statelib.commits import CommitLog, Runs, read_hold
from statelib.errors.fault_points import observed
from statelib.errors.kinds import ConfigurationError, RetryableError
from statelib.serdes import FixedWidthSerde, StringSerde
from statelib.serdes.windowed import TimeWindowedSerde
from statelib.settings.settings import load_settings
from statelib.storage import Storage
from tests.kafka.cluster import Message
from tests.kafka.maven import build
from tests.kafka.streams_app import StreamsApp
from tests.kafka.test_exported_changelogs import (
    KEYS,
    RETENTION_MS,
    amounts,
    as_bytes,
    in_order,
    offers,
    orders,
    priced,
    prices,
    told,
    windows_of_amounts,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from statelib import Serde
    from statelib.settings.settings import Settings
    from tests.kafka.broker import Broker
    from tests.kafka.test_exported_changelogs import Rows

pytestmark = [pytest.mark.slow, pytest.mark.spark]

STRING, LONG = StringSerde(), FixedWidthSerde(pa.int64())
PARTITIONS = 2
CHANCE = partial(random.Random, 15)
PRICES = Stores.persistent_versioned_key_value_store("prices-store", timedelta(milliseconds=RETENTION_MS))


Made = list[tuple[int, bytes | None, bytes | None, int]]
"""Records of a topic: partition, key, value, timestamp."""


@dataclass(frozen=True)
class Case:
    """A topology and its input.

    Attributes:
        app: The application's topology.
        builder: The job's.
        sources: By topic, what its values are.
        sinks: By topic, what its keys and values are.
        first: What is in the topics at first, one after the other.
        later: What comes later.
        dumped: Stores that the application can be asked for.
        settings: Of the application.
        semantics: Of the job.
        at_once: Whether the topics are filled before the application starts, which then takes up both by time.
        compared: Makes of a sink's records what has to be equal.
        changelogs: Source topics that are changelogs, by store, if the hand-over is to say so.
        optimization: Of the job's topology.
        own: Topics that the application writes and reads.
    """

    app: str
    builder: Callable[[], StreamsBuilder]
    sources: Mapping[str, Serde]
    sinks: Mapping[str, tuple[Serde, Serde]]
    first: Mapping[str, Rows]
    later: Mapping[str, Rows]
    dumped: tuple[str, ...]
    settings: tuple[tuple[str, str], ...] = ()
    semantics: str = "kafka-4.4"
    at_once: bool = False
    compared: Callable[[Made], object] = list
    changelogs: Mapping[str, str] = field(default_factory=dict)
    own: tuple[str, ...] = ()
    optimization: str = "none"


def totals() -> StreamsBuilder:
    builder = StreamsBuilder("job")
    sales = builder.stream("sales").map(
        per_record(lambda value: value.partition(":")[0], pa.string(), "value"),
        per_record(lambda value: int(value.partition(":")[2]), pa.int64(), "value"),
    )
    total = sales.group_by_key().reduce(lambda total, sale: total + sale, Materialized.as_("totals-store"))
    total.to_stream().to("totals")
    return builder


def sales(chance: random.Random, at: int) -> Rows:
    return [(chance.choice(KEYS), f"region-{chance.randrange(9)}:{chance.randrange(99)}", at + n) for n in range(200)]


def windows_case() -> Case:
    """Records that are late directly after the stop among them."""
    chance = CHANCE()
    windowed = TimeWindowedSerde(STRING, 60_000)
    return Case(
        "windows",
        windows_of_amounts,
        {"amounts": LONG},
        {"counts": (windowed, LONG), "sums": (windowed, LONG)},
        {"amounts": amounts(chance, 500, 1_000_000, 1_400_000)},
        {"amounts": amounts(chance, 200, 1_380_000, 1_600_000)},
        ("count-store", "sum-store"),
    )


def versioned_case() -> Case:
    """The history is taken over too: orders of before the stop find the price of their time."""
    chance = CHANCE()
    return Case(
        "versioned-join",
        partial(priced, PRICES),
        {"prices": STRING, "orders": STRING},
        {"priced": (STRING, STRING)},
        {"prices": prices(chance, 600, 1_000_000, 1_200_000), "orders": [("key-1", "x", 1_000)]},
        {"prices": prices(chance, 100, 1_200_001, 1_230_000), "orders": orders(chance, 1_240_000)},
        (),
        (("topology.history.retention.ms", str(RETENTION_MS)),),
        semantics="kip",
    )


def inner_join() -> StreamsBuilder:
    builder = StreamsBuilder("job")
    windows = JoinWindows.of_time_difference_and_grace(timedelta(seconds=10), timedelta(seconds=5))
    joiner = per_record(lambda left, right: f"{left or 'null'}+{right or 'null'}", pa.string(), "left", "right")
    asks, bids = builder.stream("asks"), builder.stream("bids")
    asks.join(bids, joiner, windows, StreamJoined.as_("pair").with_name("pair")).to("pairs")
    return builder


def join_case() -> Case:
    chance = CHANCE()
    return Case(
        "stream-join",
        inner_join,
        {"asks": STRING, "bids": STRING},
        {"pairs": (STRING, STRING)},
        {"asks": offers(chance, 1_000_000, 1_060_000, "a"), "bids": offers(chance, 1_001_000, 1_060_000, "b")},
        {"asks": offers(chance, 1_060_001, 1_120_000, "a"), "bids": offers(chance, 1_060_001, 1_120_000, "b")},
        (),
        (("topology.join.inner", "true"), ("max.task.idle.ms", "3000")),
        at_once=True,
        compared=sorted,  # the application takes up two topics as they come
    )


def repartition_case() -> Case:
    chance = CHANCE()
    return Case(
        "reduce",
        totals,
        {"sales": STRING},
        {"totals": (STRING, LONG)},
        {"sales": sales(chance, 1_000)},
        {"sales": sales(chance, 2_000)},
        ("totals-store",),
        compared=lambda made: {key: value for _, key, value, _ in made},  # what comes between depends on the order
    )


def totals_through_a_topic() -> StreamsBuilder:
    builder = StreamsBuilder("job")
    builder.stream("sales").map(
        per_record(lambda value: value.partition(":")[0], pa.string(), "value"),
        per_record(lambda value: int(value.partition(":")[2]), pa.int64(), "value"),
    ).to("by-region", Produced.with_partitions(PARTITIONS))
    regional = builder.stream("by-region").group_by_key()
    total = regional.reduce(lambda total, sale: total + sale, Materialized.as_("totals-store"))
    total.to_stream().to("totals")
    return builder


def through_case() -> Case:
    """A topic that the application writes and reads: what it holds has been read."""
    return replace(
        repartition_case(),
        app="through",
        builder=totals_through_a_topic,
        own=("by-region",),
    )


def optimized_case() -> Case:
    """The table's changelog is its source topic, up to where the application stands."""
    chance = CHANCE()
    return Case(
        "plain-table",
        partial(priced, "prices-store"),
        {"prices": STRING, "orders": STRING},
        {"priced": (STRING, STRING)},
        {"prices": prices(chance, 300, 1_000_000, 1_200_000), "orders": [("key-1", "x", 1_000)]},
        {"prices": prices(chance, 100, 1_200_001, 1_230_000), "orders": orders(chance, 1_240_000)},
        ("prices-store",),
        (("topology.optimization", "all"),),
        optimization="all",
    )


def counted_and_paired() -> StreamsBuilder:
    builder = StreamsBuilder("job")
    regional = builder.stream("sales").map(
        per_record(lambda value: value.partition(":")[0], pa.string(), "value"),
        per_record(lambda value: value.partition(":")[2], pa.string(), "value"),
    )
    regional.group_by_key().count(Materialized.as_("counts-store")).to_stream().to("counts")
    windows = JoinWindows.of_time_difference_and_grace(timedelta(milliseconds=900), timedelta(seconds=100))
    joiner = per_record(lambda left, right: f"{left}+{right}", pa.string(), "left", "right")
    regional.join(regional, joiner, windows).to("pairs")
    return builder


def merged_case() -> Case:
    """One repartition topic for an aggregation and a join of the stream with itself, which has one store."""
    chance = CHANCE()
    return Case(
        "optimized",
        counted_and_paired,
        {"sales": STRING},
        {"counts": (STRING, LONG), "pairs": (STRING, STRING)},
        {"sales": sales(chance, 1_000)},
        {"sales": sales(chance, 2_000)},
        ("counts-store",),
        (("topology.optimization", "all"),),
        compared=lambda made: sorted((key, value) for _, key, value, _ in made),  # the rest depends on the order
        optimization="all",
    )


def declared_case() -> Case:
    """The same, of which the hand-over tells, and the topology does not."""
    return replace(optimized_case(), optimization="none", changelogs={"prices-store": "prices"})


CASES = [windows_case]
LONG_CASES = [versioned_case, join_case, repartition_case, through_case, optimized_case, declared_case, merged_case]


@pytest.fixture(scope="module", autouse=True)
def connector(spark: SparkSession) -> None:
    for jar in sorted((build() / "spark-jars").iterdir()):
        spark.sql(f"ADD JAR '{jar}'")


class Bed:
    """An application that stops, and the job that takes over; and an application that goes on."""

    def __init__(self, case: Case, broker: Broker, unique: str, folder: Path) -> None:
        self.case, self.broker, self.folder = case, broker, folder
        self.prefixes = {"stops": f"{unique}-s", "goes on": f"{unique}-g"}
        self.live = self.prefixes["stops"]
        given = {"warehouse": str(folder / "warehouse"), "state_dir": str(folder / "state"), "spark_master": "local[2]"}
        given |= {"semantics": case.semantics, "publish_onto_records": "true"}
        self.settings: Settings = load_settings({**given, "kafka": broker.settings}, environ={})
        self.warehouse = Storage(str(folder / "warehouse"))
        sinks = tuple(KafkaTopic(f"{self.live}-{n}", *of, archive=n) for n, of in case.sinks.items())
        topology = case.builder().build({"topology.optimization": case.optimization})
        self.job = Job("job", topology, kafka_sinks=sinks)
        changelogs = {store: f"{self.live}-{topic}" for store, topic in case.changelogs.items()}
        topics = {topic: f"{self.live}-{topic}" for topic in (*case.sources, *case.own)}
        self.handover = Handover("job", self.live, topics=topics, changelogs=changelogs)
        for prefix in self.prefixes.values():
            for topic in (*case.sources, *case.sinks, *case.own):
                broker.cluster.create_topic(f"{prefix}-{topic}", PARTITIONS)

    def app(self, which: str, **settings: str) -> StreamsApp:
        prefix = self.prefixes[which]
        return StreamsApp(
            self.case.app,
            self.broker,
            prefix,
            self.folder / prefix,
            topic_prefix=f"{prefix}-",
            settings={**dict(self.case.settings), **settings},
        )

    def produce(self, which: str, topic: str, rows: Rows) -> None:
        messages = [Message(key.encode(), as_bytes(value), ts) for key, value, ts in rows]
        self.broker.cluster.produce(f"{self.prefixes[which]}-{topic}", messages)

    def run_app(self, which: str, *parts: Mapping[str, Rows]) -> dict[str, list[dict[str, Any]]]:
        """What is in the stores of one of the two when it has taken up some parts of the input, and stopped."""
        topics = [(topic, rows) for part in parts for topic, rows in part.items()]
        if self.case.at_once:  # else it takes up one topic after the other, as they come
            for topic, rows in topics:
                self.produce(which, topic, rows)
        with self.app(which) as app:
            for topic, rows in () if self.case.at_once else topics:
                self.produce(which, topic, rows)
                app.catch_up()
            app.catch_up()
            return {store: in_order(app.dump(store)) for store in self.case.dumped}

    def archive(self) -> None:
        topics = [KafkaTopic(f"{self.live}-{n}", STRING, of, archive=n) for n, of in self.case.sources.items()]
        list(archive_topics(topics, self.settings))

    def made(self, which: str, topic: str) -> Made:
        records = self.broker.cluster.read(f"{self.prefixes[which]}-{topic}")
        return [(r.partition, r.key, r.value, r.timestamp_ms) for r in records]

    def shown(self, store: str) -> list[dict[str, Any]]:
        with open_state(self.folder / "warehouse", "job", store, state_dir=self.folder / "read") as state:
            return in_order([told(row) for row in state.read("latest").to_pylist()])


@pytest.mark.parametrize("make", [*CASES, *(pytest.param(case, marks=pytest.mark.long) for case in LONG_CASES)])
def test_a_job_does_what_the_application_would_do(
    broker: Broker, unique: str, tmp_path: Path, spark: SparkSession, make: Callable[[], Case]
) -> None:
    bed = Bed(make(), broker, unique, tmp_path)
    case = bed.case
    stores = bed.run_app("stops", case.first)
    before = {topic: len(bed.made("stops", topic)) for topic in case.sinks}
    bed.archive()
    done = take_over(bed.job, bed.handover, bed.settings)
    assert all(store.records for store in done.stores)
    assert done.commit.commit == 1
    assert {store: bed.shown(store) for store in case.dumped} == stores

    live = bed.run_app("goes on", case.first, case.later)
    for topic, rows in case.later.items():
        bed.produce("stops", topic, rows)
    bed.archive()
    run_slice(bed.job, bed.settings)
    assert {store: bed.shown(store) for store in case.dumped} == live
    for topic in case.sinks:
        made, expected = bed.made("stops", topic), bed.made("goes on", topic)
        assert case.compared(made) == case.compared(expected)
        assert len(made) > before[topic]


def repartitioned(bed: Bed) -> str:
    """The application's repartition topic."""
    (name,) = (t for t in bed.broker.cluster.topics() if t.startswith(bed.live) and t.endswith("-repartition"))
    return name


def test_what_is_refused_changes_nothing(broker: Broker, unique: str, tmp_path: Path, spark: SparkSession) -> None:
    bed = Bed(repartition_case(), broker, unique, tmp_path)
    case, cluster = bed.case, broker.cluster
    with pytest.raises(ConfigurationError, match="the group has committed nothing"):
        take_over(bed.job, bed.handover, bed.settings)
    with bed.app("stops") as app:
        bed.produce("stops", "sales", case.first["sales"])
        app.catch_up()
        with pytest.raises(ConfigurationError, match="the application is running"):
            take_over(bed.job, bed.handover, bed.settings)
    with pytest.raises(ConfigurationError, match="no topic archive|hindstream archive"):
        take_over(bed.job, bed.handover, bed.settings)
    bed.archive()
    with pytest.raises(ConfigurationError, match="the hand-over is of another job"):
        take_over(bed.job, replace(bed.handover, job="other"), bed.settings)
    with pytest.raises(ConfigurationError, match="the job has no such store"):
        take_over(bed.job, replace(bed.handover, leave_out=("nothing",)), bed.settings)
    with pytest.raises(ConfigurationError, match="Unknown topic"):
        take_over(bed.job, replace(bed.handover, changelogs={"totals-store": "nowhere"}), bed.settings)
    assert list(Runs(bed.warehouse, "job").attempts(1)) == []
    assert read_hold(bed.warehouse, "job") is None

    cluster.produce(repartitioned(bed), [Message(b"region-0", as_bytes(5), 3_000)])
    with pytest.raises(ConfigurationError, match="the application has not read 1 record of its own"):
        take_over(bed.job, bed.handover, bed.settings)


def test_stopped_anywhere_the_job_is_held_until_it_is_given_again(
    broker: Broker, unique: str, tmp_path: Path, spark: SparkSession
) -> None:
    bed = Bed(repartition_case(), broker, unique, tmp_path)
    messages = [Message(key.encode(), as_bytes(value), ts) for key, value, ts in bed.case.first["sales"]]
    broker.cluster.produce_in_transaction(f"{bed.live}-sales", messages)
    broker.cluster.await_transactions(f"{bed.live}-sales")
    stores = bed.run_app("stops")  # goes on behind the transaction's marker, where the archive has no record
    bed.archive()

    def stopped(name: str) -> Callable[[str], None]:
        def stop(step: str) -> None:
            if step == name:
                raise KeyboardInterrupt(name)

        return stop

    for name in ("take-over.before-create", "take-over.created"):
        with observed(stopped(name)), pytest.raises(KeyboardInterrupt):
            take_over(bed.job, bed.handover, bed.settings)
        with pytest.raises(ConfigurationError, match="held by takeover-.*it takes over from the application"):
            run_slice(bed.job, bed.settings)
    done = take_over(bed.job, bed.handover, bed.settings)
    assert (done.commit.commit, done.stores) == (1, ())
    assert take_over(bed.job, bed.handover, bed.settings) == done
    assert read_hold(bed.warehouse, "job") is None
    assert {store: bed.shown(store) for store in bed.case.dumped} == stores


@pytest.mark.long
def test_an_application_that_moves_meanwhile(
    broker: Broker, unique: str, tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    bed = Bed(repartition_case(), broker, unique, tmp_path)
    bed.run_app("stops", bed.case.first)
    bed.archive()
    moved = []

    def move(step: str) -> None:
        if step == "plan.created" and not moved:
            moved.append(bed.run_app("stops", bed.case.later))

    with observed(move), pytest.raises(RetryableError, match="has been at work meanwhile"):
        take_over(bed.job, bed.handover, bed.settings)
    assert CommitLog(bed.warehouse, "job").head() is None
    bed.archive()
    run_takeover(bed.job, bed.handover, bed.settings, stopped=False)
    said = capsys.readouterr().out
    assert f"{bed.live}-totals-store-changelog"[:40] in said
    assert said.rstrip().endswith("commit 1.")
    assert {store: bed.shown(store) for store in bed.case.dumped} == moved[0]


def test_an_application_of_the_protocol_streams(
    broker: Broker, unique: str, tmp_path: Path, spark: SparkSession
) -> None:
    """The client cannot describe its group; the broker tells whether it has members, and nothing is changed by that."""
    bed = Bed(repartition_case(), broker, unique, tmp_path)
    cluster = Cluster(bed.settings)
    with bed.app("stops", **{"group.protocol": "streams"}) as app:
        bed.produce("stops", "sales", bed.case.first["sales"])
        app.catch_up()
        with pytest.raises(ConfigurationError, match="its group is of the protocol streams, and has members"):
            take_over(bed.job, bed.handover, bed.settings)
        with pytest.raises(ConfigurationError, match="the application is running: its group is not empty"):
            cluster.set_group_offsets(bed.live, {(f"{bed.live}-sales", 0): 1})
        stores = {store: in_order(app.dump(store)) for store in bed.case.dumped}
    committed = cluster.committed(bed.live)
    bed.archive()
    take_over(bed.job, bed.handover, bed.settings)
    assert {store: bed.shown(store) for store in bed.case.dumped} == stores
    assert cluster.committed(bed.live) == committed
    assert all(place.partition_time_ms is not None for place in committed.values())
