"""A job replays the first part of a history, a live application does the rest: together as one that has seen all."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from hindstream.kafka.handover import hand_over
from hindstream.runs import open_warehouse
from hindstream.spark.kafka.archive import archive_topics
from hindstream.spark.phases.pipeline import run_slice
from statelib import Handover, Job, KafkaTopic
from statelib.commits.versions.fork import fork
from statelib.errors.kinds import ConfigurationError
from statelib.serdes import FixedWidthSerde, StringSerde
from statelib.serdes.windowed import TimeWindowedSerde
from statelib.settings.settings import load_settings
from tests.kafka.cluster import Message
from tests.kafka.maven import build
from tests.kafka.streams_app import StreamsApp
from tests.kafka.test_exported_changelogs import windows_of_amounts
from tests.kafka.test_takeover import through_case

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from statelib.settings.settings import Settings
    from tests.kafka.broker import Broker
    from tests.kafka.test_exported_changelogs import Rows

pytestmark = [pytest.mark.slow, pytest.mark.spark]

LONG = FixedWidthSerde(pa.int64())
PARTITIONS = 2
KEYS = [f"key-{n}" for n in range(12)]
STORES = ("count-store", "sum-store")


@pytest.fixture(scope="module", autouse=True)
def connector(spark: SparkSession) -> None:
    for jar in sorted((build() / "spark-jars").iterdir()):
        spark.sql(f"ADD JAR '{jar}'")


def settings_of(folder: Path, broker: Broker) -> Settings:
    given = {"warehouse": str(folder / "warehouse"), "state_dir": str(folder / "state"), "spark_master": "local[2]"}
    return load_settings({**given, "kafka": broker.settings}, environ={})


def job_of(prefix: str) -> Job:
    key = TimeWindowedSerde(StringSerde(), 60_000)
    sinks = tuple(KafkaTopic(f"{prefix}-{name}", key, LONG, archive=name) for name in ("counts", "sums"))
    return Job("windows", windows_of_amounts().build(), kafka_sinks=sinks)


def amounts(chance: random.Random, count: int, from_ms: int, to_ms: int) -> list[Message]:
    """Some seconds late, but none before the first: an application that starts anew does not know how late it is."""
    times = sorted(chance.randrange(from_ms, to_ms) for _ in range(count))
    return [
        Message(
            chance.choice(KEYS).encode(),
            chance.randrange(100).to_bytes(8),
            max(from_ms, ts - chance.choice([0, 8_000])),
        )
        for ts in times
    ]


def test_replayed_and_live_are_as_one_that_was_always_live(
    broker: Broker, unique: str, tmp_path: Path, spark: SparkSession
) -> None:
    chance = random.Random(12)
    live, always = f"{unique}-live", f"{unique}-always"
    for prefix in (live, always):
        for topic in ("amounts", "counts", "sums"):
            broker.cluster.create_topic(f"{prefix}-{topic}", PARTITIONS)
    first = amounts(chance, 400, 1_000_000, 1_400_000)
    newest = [Message(key.encode(), (1).to_bytes(8), 1_400_000) for key in KEYS]
    later = [*newest, *amounts(chance, 200, 1_400_001, 1_600_000)]

    broker.cluster.produce(f"{live}-amounts", first)
    settings = settings_of(tmp_path, broker)
    list(archive_topics([KafkaTopic(f"{live}-amounts", StringSerde(), LONG, archive="amounts")], settings))
    run_slice(job_of(live), settings)
    handover = Handover("windows", live, topics={"amounts": f"{live}-amounts"})
    done = hand_over(handover, settings)
    assert {store.store for store in done.stores} == {*STORES, "final-counts-store", "final-sums-store"}
    assert done.offsets == {
        (f"{live}-amounts", p): end for p, end in broker.cluster.end_offsets(f"{live}-amounts").items()
    }

    broker.cluster.produce(f"{always}-amounts", [*first, *later])
    broker.cluster.produce(f"{live}-amounts", later)
    stores = {}
    for prefix in (live, always):
        with StreamsApp("windows", broker, prefix, tmp_path / prefix, topic_prefix=f"{prefix}-") as app:
            app.catch_up()
            stores[prefix] = [sorted(app.dump(store), key=repr) for store in STORES]
            if prefix == live:
                with pytest.raises(ConfigurationError, match="the application is running: its group is"):
                    hand_over(handover, settings)
    assert stores[live] == stores[always]
    for topic in ("counts", "sums"):
        made, expected = (
            [(r.partition, r.key, r.value, r.timestamp_ms) for r in broker.cluster.read(f"{prefix}-{topic}")]
            for prefix in (live, always)
        )
        assert made == expected
        assert len(made) > len(KEYS)

    for store in done.stores:  # as the application has them made when it begins from nothing
        config, own = (broker.cluster.config(f"{prefix}-{store.store}-changelog") for prefix in (live, always))
        for name in ("cleanup.policy", "message.timestamp.type"):
            assert config[name] == own[name]


def test_a_topic_that_the_application_writes_and_reads_is_not_read_again(
    broker: Broker, unique: str, tmp_path: Path, spark: SparkSession
) -> None:
    """What it holds came of records that the job has replayed, so that the state has it."""
    case, live, settings = through_case(), f"{unique}-live", settings_of(tmp_path, broker)
    topics = {topic: f"{live}-{topic}" for topic in ("sales", "by-region", "totals")}
    for topic in topics.values():
        broker.cluster.create_topic(topic, PARTITIONS)

    def produce(rows: Rows) -> None:
        messages = [Message(key.encode(), str(value).encode(), ts) for key, value, ts in rows]
        broker.cluster.produce(topics["sales"], messages)

    with StreamsApp("through", broker, live, tmp_path / "before", topic_prefix=f"{live}-") as app:
        produce(case.first["sales"])
        app.catch_up()
        expected = sorted(app.dump("totals-store"), key=repr)
    list(archive_topics([KafkaTopic(topics["sales"], StringSerde(), StringSerde(), archive="sales")], settings))
    run_slice(Job("job", case.builder().build()), settings)
    done = hand_over(Handover("job", live, topics=topics), settings, replace=True)
    assert {topic for topic, _ in done.offsets} == {topics["sales"], topics["by-region"]}
    with StreamsApp("through", broker, live, tmp_path / "after", topic_prefix=f"{live}-") as app:
        app.catch_up()
        assert sorted(app.dump("totals-store"), key=repr) == expected


def test_of_a_fork_as_of_its_job(broker: Broker, unique: str, tmp_path: Path, spark: SparkSession) -> None:
    """State of a fork lies in its job's folder, what was changed since in its own: an application gets both.

    (Records of suppress have the time of day.)
    """
    cluster, prefixes = broker.cluster, {"windows": f"{unique}-job", "new": f"{unique}-fork"}
    for topic in ("amounts", "counts", "sums"):
        cluster.create_topic(f"{unique}-{topic}", PARTITIONS)
    cluster.produce(f"{unique}-amounts", amounts(random.Random(12), 300, 1_000_000, 1_400_000))
    settings = settings_of(tmp_path, broker)
    list(archive_topics([KafkaTopic(f"{unique}-amounts", StringSerde(), LONG, archive="amounts")], settings))
    job = job_of(unique)
    run_slice(job, settings, 1_200_000)
    fork(open_warehouse(settings), "windows", "new", now_ms=1)
    told = {}
    for one in (job, job.as_fork("new")):
        run_slice(one, settings)
        done = hand_over(Handover(one.name, prefixes[one.name], topics={"amounts": f"{unique}-amounts"}), settings)
        changelogs = [f"{prefixes[one.name]}-{store.store}-changelog" for store in done.stores]
        told[one.name] = [
            done.offsets,
            [sorted((r.partition, r.key, r.value) for r in cluster.read(name)) for name in changelogs],
        ]
    assert told["new"] == told["windows"]
    assert any(told["new"][1])


def test_what_cannot_be_handed_over(broker: Broker, unique: str, tmp_path: Path, spark: SparkSession) -> None:
    cluster = broker.cluster
    for topic in ("amounts", "counts", "sums"):
        cluster.create_topic(f"{unique}-{topic}", PARTITIONS)
    cluster.produce(f"{unique}-amounts", amounts(random.Random(1), 50, 1_000, 200_000))
    settings = settings_of(tmp_path, broker)
    list(archive_topics([KafkaTopic(f"{unique}-amounts", StringSerde(), LONG, archive="amounts")], settings))
    run_slice(job_of(unique), settings)
    topics = {"amounts": f"{unique}-amounts"}
    with pytest.raises(ConfigurationError, match="the job has no such store"):
        hand_over(Handover("windows", unique, topics=topics, leave_out=("nothing",)), settings)
    other = cluster.create_topic(f"{unique}-other", PARTITIONS)
    cluster.produce(other, amounts(random.Random(1), 50, 1_000, 200_000))
    with pytest.raises(ConfigurationError, match="copies another topic"):
        hand_over(Handover("windows", unique, topics={"amounts": other}), settings)
    with pytest.raises(ConfigurationError, match="Unknown topic"):
        hand_over(Handover("windows", unique, topics={"amounts": "nowhere"}), settings)
    source = Handover("windows", unique, topics=topics, changelogs={"count-store": topics["amounts"]})
    with pytest.raises(ConfigurationError, match="the store's changelog is a source topic"):
        hand_over(source, settings, replace=True)
    handover = Handover("windows", unique, topics=topics, leave_out=("final-counts-store", "final-sums-store"))
    taken = cluster.create_topic(f"{unique}-sum-store-changelog", PARTITIONS)
    with pytest.raises(ConfigurationError, match="there is such a topic already") as caught:
        hand_over(handover, settings)
    assert caught.value.place["topic"] == taken
    assert cluster.group_offsets(unique) == {}, "nothing goes on anywhere before all is there"
    done = hand_over(handover, settings, replace=True)
    assert [store.store for store in done.stores] == list(STORES)
    again = hand_over(handover, settings, replace=True)
    assert again == done
    cluster.delete_records(f"{unique}-amounts", cluster.end_offsets(f"{unique}-amounts"))
    cluster.produce(f"{unique}-amounts", amounts(random.Random(2), 9, 300_000, 400_000))
    cluster.delete_records(f"{unique}-amounts", cluster.end_offsets(f"{unique}-amounts"))
    with pytest.raises(ConfigurationError, match="the job has come to offset"):
        hand_over(handover, settings, replace=True)
