"""Sinks published to a real broker: each record once, whoever is killed when."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from confluent_kafka import KafkaException

from hindstream.kafka import publish as publish_module
from hindstream.kafka.errors import kafka_errors
from hindstream.kafka.producer import Outgoing, produce, transaction, transactional_producer
from hindstream.kafka.publish import publish_to_kafka
from hindstream.spark.phases import pipeline
from statelib import Job, JsonSerde, KafkaTopic, Produced, StreamsBuilder
from statelib.commits import NothingToDo
from statelib.commits.layout import rollback_path
from statelib.documents.upkeep import ROLLBACKS, Rollback
from statelib.errors.kinds import ConfigurationError, FencedError, InputError
from statelib.serdes import StringSerde
from statelib.serdes.windowed import TimeWindowedSerde
from statelib.settings.settings import load_settings
from statelib.storage import Storage
from statelib.topics.archive import TopicArchive
from statelib.topics.parquet.schema import HEADERS, TIMESTAMP, topic_schema
from statelib.topics.partitioner import partition_for
from tests.conftest import ROOT
from tests.effort import one_in
from tests.hindstream.spark import orders, orders_job
from tests.kafka.cluster import Message

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kafka.cluster import Cluster, Record

VALUE = pa.struct([("n", pa.int64())])
PARTITIONS = 3


def job_of(name: str, key: StringSerde | TimeWindowedSerde | None = None) -> Job:
    builder = StreamsBuilder("topology")
    builder.stream("in").to("out")
    return Job("job", builder.build(), kafka_sinks=(KafkaTopic(name, key or StringSerde(), JsonSerde(VALUE), "out"),))


def settings_of(warehouse: str, servers: str, **more: object):
    given = {"warehouse": warehouse, "kafka": {"bootstrap.servers": servers}}
    return load_settings(given | more, environ={})


def publish(job: Job, warehouse: str, cluster: Cluster, **more: object) -> int:
    settings = settings_of(warehouse, cluster.settings["bootstrap.servers"], **more)
    return sum(sent.records for sent in publish_to_kafka(job, Storage(warehouse), settings))


def commit(warehouse: str, numbers: range, n: int) -> None:
    """A commit's records in the archive of the sink, each in the partition of its key."""
    schema = topic_schema(pa.string(), VALUE)
    archive = TopicArchive.ensure(f"{warehouse}/topics/out", schema, PARTITIONS)
    keys = pa.array([f"key {i % 7}" if i % 5 else None for i in numbers], pa.string())
    where = partition_for(keys, PARTITIONS)
    files = []
    for partition in range(PARTITIONS):
        mine = [(i, key) for i, key, p in zip(numbers, keys.to_pylist(), where, strict=True) if p == partition]
        begin = archive.end_offsets()[partition]
        with archive.writer(partition, attempt=f"c{n}") as writer:
            writer.write(pa.table({
                "offset": pa.array(range(begin, begin + len(mine)), pa.int64()),
                "timestamp": pa.array([1_000 + i for i, _ in mine], pa.int64()).cast(TIMESTAMP),
                "key": pa.array([key for _, key in mine], pa.string()),
                "value": pa.array([{"n": i} if i % 4 else None for i, _ in mine], VALUE),
                "headers": pa.array([[("h", b"%d" % i)] if i % 3 == 0 else None for i, _ in mine], HEADERS),
            }))  # fmt: skip
        files += writer.close()
    assert archive.commit(files, app_id="job", app_version=n)


def archived(warehouse: str) -> list[tuple[object, ...]]:
    archive = TopicArchive.open(f"{warehouse}/topics/out")
    rows = [row for p in range(PARTITIONS) for row in archive.reader(p).read_all().to_pylist()]
    return [
        (
            row["key"] and row["key"].encode(),
            None if row["value"] is None else row["value"],
            int(row["timestamp"].timestamp() * 1000 + 0.5),
            tuple((h["key"], h["value"]) for h in row["headers"] or ()),
        )
        for row in rows
    ]


def published(cluster: Cluster, name: str) -> list[Record]:
    cluster.await_transactions(name)
    return cluster.read(name)


def sent(records: list[Record]) -> list[tuple[object, ...]]:
    return [(r.key, None if r.value is None else json.loads(r.value), r.timestamp_ms, r.headers) for r in records]


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    return str(tmp_path / "warehouse")


def test_commits_are_published_once(cluster: Cluster, warehouse: str, unique: str) -> None:
    name = cluster.create_topic(unique, partitions=PARTITIONS)
    job = job_of(name)
    assert publish(job, warehouse, cluster) == 0, "the sink has no archive yet"
    commit(warehouse, range(40), 1)
    assert publish(job, warehouse, cluster) == 40
    assert sent(published(cluster, name)) == archived(warehouse), "partition by partition, in order"
    assert publish(job, warehouse, cluster) == 0
    commit(warehouse, range(40, 50), 2)
    assert publish(job, warehouse, cluster) == 10
    assert sorted(sent(published(cluster, name)), key=str) == sorted(archived(warehouse), key=str)
    assert cluster.config(f"job-{name}-published")["cleanup.policy"] == "compact"


def test_what_a_partitioner_has_placed_keeps_its_partition(cluster: Cluster, warehouse: str, unique: str) -> None:
    name = cluster.create_topic(unique, partitions=PARTITIONS)
    job, builder = job_of(name), StreamsBuilder("topology")
    builder.stream("in").to("out", Produced.stream_partitioner(pc.field("value", "n")))
    commit(warehouse, range(40), 1)
    archive = TopicArchive.open(f"{warehouse}/topics/out")
    with archive.writer(2, attempt="c2") as writer:  # where its key does not belong
        for table in archive.reader(0):
            begin = archive.end_offsets()[2]
            offsets = pa.array(range(begin, begin + len(table)), pa.int64())
            writer.write(table.set_column(table.schema.get_field_index("offset"), "offset", offsets))
    assert archive.commit(writer.close(), app_id="job", app_version=2)
    ends = TopicArchive.open(f"{warehouse}/topics/out").end_offsets()
    assert publish(replace(job, topology=builder.build()), warehouse, cluster) == sum(ends.values())
    records = published(cluster, name)
    assert {p: sum(record.partition == p for record in records) for p in range(PARTITIONS)} == ends

    other = cluster.create_topic(f"{unique}-other", partitions=5)
    with pytest.raises(ConfigurationError, match=r"chose among 3 partitions.*has 5 partitions.*with_partitions\(5\)"):
        publish(replace(job_of(other), topology=builder.build()), warehouse, cluster)


def test_other_partitions_than_the_archives(cluster: Cluster, warehouse: str, unique: str) -> None:
    name = cluster.create_topic(unique, partitions=5)
    commit(warehouse, range(60), 1)
    assert publish(job_of(name), warehouse, cluster) == 60
    for record in published(cluster, name):
        if record.key is not None:
            assert record.partition == partition_for(pa.array([record.key]), 5)[0], "where Java's producer has it"


def test_windowed_keys_go_by_their_plain_key(cluster: Cluster, warehouse: str, unique: str) -> None:
    name = cluster.create_topic(unique, partitions=4)
    serde = TimeWindowedSerde(StringSerde(), 1_000)
    rows = [{"key": f"k{i}", "window_start": 1_000 * i, "window_end": 1_000 * i + 1_000} for i in range(20)]
    archive = TopicArchive.create(f"{warehouse}/topics/out", topic_schema(serde.arrow_type, VALUE), 1)
    with archive.writer(0, attempt="a") as writer:
        writer.write(pa.table({
            "offset": pa.array(range(20)),
            "timestamp": pa.array(range(1, 21)).cast(TIMESTAMP),
            "key": pa.array([(r["key"], r["window_start"], r["window_end"]) for r in rows], serde.arrow_type),
            "value": pa.nulls(20, VALUE),
        }))  # fmt: skip
    archive.commit(writer.close(), app_id="job", app_version=1)
    assert publish(job_of(name, serde), warehouse, cluster) == 20
    expected = sorted(
        (int(partition_for(pa.array([row["key"]]), 4)[0]), row["key"].encode() + row["window_start"].to_bytes(8))
        for row in rows
    )
    assert sorted((record.partition, record.key) for record in published(cluster, name)) == expected


KILLED = """
import os, signal, sys
from statelib.storage import Storage
from hindstream.kafka import publish
from tests.kafka.test_publish import job_of, settings_of

name, warehouse, servers, when, number = sys.argv[1:]
real, calls = getattr(publish, when), 0

def killed(*arguments, **more):
    global calls
    calls += 1
    if calls == int(number):
        arguments[0].flush()
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*arguments, **more)

publish._TRANSACTION_RECORDS = 4
setattr(publish, when, killed)
settings = settings_of(warehouse, servers, parallel_transfers=1)
publish.publish_to_kafka(job_of(name), Storage(warehouse), settings)
"""
"""Killed at the n-th record, whose transaction is open, or where the n-th transaction begins."""


@pytest.mark.parametrize(("when", "number"), one_in(3, [("produce", 4), ("produce", 14), ("transaction", 4)], first=2))
def test_killed_in_the_middle_nothing_is_twice(
    cluster: Cluster, warehouse: str, unique: str, when: str, number: int
) -> None:
    name = cluster.create_topic(unique, partitions=PARTITIONS)
    commit(warehouse, range(30), 1)
    servers = cluster.settings["bootstrap.servers"]
    command = [sys.executable, "-c", KILLED, name, warehouse, servers, when, str(number)]
    ended = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    before = len(cluster.read(name, read_committed=False))
    assert before > 0 or when == "transaction"
    rest = publish(job_of(name), warehouse, cluster)
    assert 0 < rest <= 30
    assert sorted(sent(published(cluster, name)), key=str) == sorted(archived(warehouse), key=str)


def test_a_run_that_failed_at_kafka_publishes_though_nothing_is_new(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unique: str
) -> None:
    """A retry, such as Airflow's, has no slice left to replay. The topic must not wait for the next one."""
    name = cluster.create_topic(unique, partitions=PARTITIONS)
    settings = orders.make_settings(tmp_path, engine="local", kafka=dict(cluster.settings))
    orders.archive_orders(settings, orders.orders())
    totals = JsonSerde(pa.struct([("orders", pa.int64()), ("amount", pa.float64())]))
    topic = KafkaTopic(name, TimeWindowedSerde(StringSerde(), orders.HOUR_MS), totals, orders_job.SINK)
    job = replace(orders_job.job(), kafka_sinks=(topic,))

    def fails(*_: object, **__: object) -> None:
        raise ConnectionError("the broker is gone")

    with monkeypatch.context() as patch:
        patch.setattr(publish_module, "produce", fails)
        with pytest.raises(ConnectionError, match="the broker is gone"):
            pipeline.run_slice(job, settings)
    assert not published(cluster, name)
    assert isinstance(pipeline.run_slice(job, settings), NothingToDo)
    assert len(published(cluster, name)) == len(orders.published(settings)) > 0


def test_of_two_publishers_one_wins(cluster: Cluster, warehouse: str, monkeypatch, unique: str) -> None:
    name = cluster.create_topic(unique, partitions=PARTITIONS)
    commit(warehouse, range(30), 1)
    job, real = job_of(name), publish_module.produce

    def overtaken(producer, topic, partition, record):
        if topic == name:
            monkeypatch.setattr(publish_module, "produce", real)
            assert publish(job, warehouse, cluster) == 30
        real(producer, topic, partition, record)

    monkeypatch.setattr(publish_module, "produce", overtaken)
    with pytest.raises(FencedError, match="another process has taken over"):
        publish(job, warehouse, cluster, parallel_transfers=1)
    assert sorted(sent(published(cluster, name)), key=str) == sorted(archived(warehouse), key=str)


def test_what_has_fenced_a_producer_in_the_background_is_told(cluster: Cluster, unique: str) -> None:
    """The client hears of it between two records; of the next one it says only that it is dead."""
    topic = cluster.create_topic(unique)
    older = transactional_producer(cluster.settings, unique)

    def sent_again_and_again() -> None:
        transactional_producer(cluster.settings, unique)
        for n in range(10_000):
            try:
                produce(older, topic, 0, Outgoing(b"key", b"%d" % n))
            except KafkaException as error:
                assert "Local: Fatal error" in str(error)  # noqa: PT017 - only this way is the one to test
                raise
            time.sleep(0.01)

    with (
        pytest.raises(FencedError, match="another process has taken over"),
        kafka_errors(topic=topic),
        transaction(older),
    ):
        sent_again_and_again()
    assert not cluster.read(topic)


def test_records_of_others_are_not_added_to_by_accident(cluster: Cluster, warehouse: str, unique: str) -> None:
    name = cluster.create_topic(unique, partitions=PARTITIONS)
    cluster.produce(name, [Message(b"k", b'{"n":-1}', 7, partition=0)])
    commit(warehouse, range(10), 1)
    with pytest.raises(ConfigurationError, match="holds records that this job has not published"):
        publish(job_of(name), warehouse, cluster)
    assert publish(job_of(name), warehouse, cluster, publish_onto_records=True) == 10
    commit(warehouse, range(10, 12), 2)
    assert publish(job_of(name), warehouse, cluster) == 2


def test_another_topic_of_the_name_is_refused(cluster: Cluster, warehouse: str, unique: str) -> None:
    name = cluster.create_topic(unique, partitions=PARTITIONS)
    commit(warehouse, range(10), 1)
    publish(job_of(name), warehouse, cluster)
    cluster.delete_topic(name)
    cluster.create_topic(name, partitions=PARTITIONS)
    with pytest.raises(ConfigurationError, match="is not the one that was published to"):
        publish(job_of(name), warehouse, cluster)


@pytest.mark.parametrize("end", [0, 100])
def test_records_that_were_taken_back(cluster: Cluster, warehouse: str, unique: str, end: int) -> None:
    name = cluster.create_topic(unique, partitions=PARTITIONS)
    commit(warehouse, range(10), 1)
    publish(job_of(name), warehouse, cluster)
    ends = dict.fromkeys(range(PARTITIONS), end)
    notice = Rollback(topic="out", job="job", commit=2, rolled_back_to=0, end_offsets=ends)
    Storage(warehouse).put(rollback_path("out", 2), notice.encode())
    archive = TopicArchive.open(f"{warehouse}/topics/out")
    archive.retract([], app_id="job", app_version=2, marker=ROLLBACKS, deletion_time_ms=0)
    commit(warehouse, range(10, 13), 3)
    if end:
        assert publish(job_of(name), warehouse, cluster) == 3
    else:
        with pytest.raises(ConfigurationError, match="were rolled back by commit 2, and Kafka cannot remove them"):
            publish(job_of(name), warehouse, cluster)


def test_a_timestamp_that_the_client_would_replace(cluster: Cluster, warehouse: str, unique: str) -> None:
    name = cluster.create_topic(unique)
    archive = TopicArchive.create(f"{warehouse}/topics/out", topic_schema(pa.string(), VALUE), 1)
    with archive.writer(0, attempt="a") as writer:
        writer.write(pa.table({
            "offset": pa.array([0, 1]),
            "timestamp": pa.array([5, 0]).cast(TIMESTAMP),
            "key": pa.array(["a", "b"]),
            "value": pa.nulls(2, VALUE),
        }))  # fmt: skip
    archive.commit(writer.close(), app_id="job", app_version=1)
    with pytest.raises(InputError, match="cannot send a timestamp of 0"):
        publish(job_of(name), warehouse, cluster)
    assert published(cluster, name) == []
