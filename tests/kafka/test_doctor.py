"""What the doctor sees of a real cluster."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from hindstream.doctor import kafka
from hindstream.doctor.finding import found
from hindstream.kafka.published_position import positions_topic
from statelib import Handover, Job, KafkaTopic, Materialized, Stores, StreamsBuilder, TimeWindows
from statelib.settings.settings import load_settings
from statelib.topics.archive import TopicArchive
from statelib.topics.kafka_copy import CopiedRange, KafkaCopy
from statelib.topics.parquet.schema import topic_schema
from tests.kafka.cluster import Message
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from hindstream.doctor.finding import Finding
    from statelib.settings.settings import Settings
    from tests.kafka.cluster import Cluster

DAY_MS = 86_400_000


def settings_of(folder: Path, servers: str, **more: object) -> Settings:
    given = {"warehouse": str(folder / "warehouse"), "state_dir": str(folder / "state")}
    return load_settings({**given, "kafka": {"bootstrap.servers": servers}, **more}, environ={})


def said(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    return [(finding.state, finding.what) for finding in findings]


def test_a_cluster(cluster: Cluster, tmp_path: Path) -> None:
    (finding,) = kafka.check_cluster(settings_of(tmp_path, cluster.settings["bootstrap.servers"]))
    assert finding.state == "ok"
    nobody = settings_of(
        tmp_path, "127.0.0.1:1", kafka={"bootstrap.servers": "127.0.0.1:1", "socket.timeout.ms": "900"}
    )
    (finding,) = found("Kafka", lambda: kafka.check_cluster(nobody))
    assert (finding.state, finding.what.partition(":")[0]) == ("wrong", "Kafka did not answer")


def test_topics_that_are_archived(cluster: Cluster, tmp_path: Path, unique: str) -> None:
    settings = settings_of(tmp_path, cluster.settings["bootstrap.servers"])
    cluster.create_topic(unique, partitions=2)
    topics = [KafkaTopic(unique)]
    assert said(kafka.check_sources(topics, settings)) == [("look", "2 partitions in Kafka; there is no archive yet")]
    schema = topic_schema(pa.binary(), pa.binary())
    archive = TopicArchive.create(f"{settings.warehouse}/topics/{unique}", schema, 2)
    origin = kafka.Cluster(settings).topic(unique).origin
    KafkaCopy(archive).advance([], {0: CopiedRange(0, 0), 1: CopiedRange(0, 0)}, origin=origin)
    cluster.produce(unique, [Message(b"k", b"v", 1 + n, partition=0) for n in range(1_200)])
    assert said(kafka.check_sources(topics, settings)) == [("ok", "1,200 offsets are not archived yet")]
    cluster.delete_records(unique, {0: 1_100})
    ((state, what),) = said(kafka.check_sources(topics, settings))
    assert (state, what) == ("wrong", "Kafka has deleted 1,100 offsets that are not archived")


def test_topics_that_are_published_to(cluster: Cluster, tmp_path: Path, unique: str) -> None:
    settings = settings_of(tmp_path, cluster.settings["bootstrap.servers"])
    builder = StreamsBuilder("job")
    builder.stream("in").to("out")
    job = Job("job", builder.build(), kafka_sinks=(KafkaTopic(unique, archive="out"),))
    ((state, what),) = said(kafka.check_sinks(job, settings))
    assert (state, what) == ("wrong", "the job publishes to it, and it is not there")
    cluster.create_topic(unique)
    cluster.create_topic(positions_topic("job", unique), config={"cleanup.policy": "delete"})
    assert said(kafka.check_sinks(job, settings)) == [
        ("ok", "1 partition"), ("wrong", "cleanup.policy is delete, not compact"),
    ]  # fmt: skip


def test_changelogs_of_an_application(cluster: Cluster, tmp_path: Path, unique: str) -> None:
    builder = StreamsBuilder("job")
    table = Stores.persistent_versioned_key_value_store("table", timedelta(minutes=1))
    builder.table("in", Materialized.as_(table))
    windows = TimeWindows.of_size_and_grace(timedelta(minutes=1), timedelta(seconds=10))
    builder.stream("other").group_by_key().windowed_by(windows).count(Materialized.as_("windows"))
    pipeline = Pipeline(tmp_path, builder.build())
    for topic in ("in", "other"):
        pipeline.archive(topic, [("k", "v", 1)], (pa.string(), pa.string()), partitions=1)
    pipeline.run(None)
    settings = settings_of(tmp_path, cluster.settings["bootstrap.servers"])
    handover = Handover("job", unique)
    assert {what for _, what in said(kafka.check_handover(handover, settings))} == {"it is not there yet"}
    lag, retention = f"{unique}-table-changelog", f"{unique}-windows-changelog"
    cluster.create_topic(lag, config={"cleanup.policy": "compact", "min.compaction.lag.ms": "1000"})
    cluster.create_topic(retention, config={"cleanup.policy": "delete,compact", "retention.ms": str(2 * DAY_MS)})
    findings = {(f.about, f.state): f for f in kafka.check_handover(handover, settings)}
    short = findings[f"changelog {lag}", "wrong"]
    assert short.what == f"min.compaction.lag.ms is 1000, and the store needs {DAY_MS + 60_000}"
    assert short.next_step.endswith(f"--entity-name {lag} --add-config 'min.compaction.lag.ms={DAY_MS + 60_000}'")
    long = findings[f"changelog {retention}", "look"]
    assert long.what == f"retention.ms is {2 * DAY_MS}, more than the {DAY_MS + 70_000} that the store needs"
    assert findings[f"changelog {retention}", "ok"].what == "cleanup.policy is delete,compact"
