"""A Kafka cluster: whether it answers, and its topics are as archives, sinks and hand-overs need them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hindstream.doctor.finding import Finding
from hindstream.kafka.cluster import Cluster
from hindstream.kafka.handover import source_changelogs
from hindstream.kafka.published_position import positions_topic
from hindstream.runs import open_warehouse
from statelib.commits.archives import open_archive_if_present
from statelib.commits.versions.publishers import publisher_of
from statelib.errors.counted import counted
from statelib.job.handover import changelog_config
from statelib.snapshots import open_state
from statelib.topics.kafka_copy import KafkaCopy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from statelib.job.handover import Handover
    from statelib.job.job import Job
    from statelib.job.kafka_topic import KafkaTopic
    from statelib.settings.settings import Settings


def check_cluster(settings: Settings) -> Iterator[Finding]:
    """Whether the cluster lets the client in."""
    topics = Cluster(settings).topic_names()
    yield Finding("Kafka", "ok", f"{settings.kafka['bootstrap.servers']} answers: {counted(len(topics), 'topic')}")


def check_sources(topics: Sequence[KafkaTopic], settings: Settings) -> Iterator[Finding]:
    """How far the archives of topics are, and whether Kafka still has what they lack."""
    cluster, warehouse = Cluster(settings), open_warehouse(settings)
    for topic in topics:
        about = f"topic {topic.name}"
        state = cluster.topic(topic.name)
        archive = open_archive_if_present(warehouse, topic.archive_name)
        if archive is None:
            step = "hindstream archive TOPICS"
            yield Finding(
                about, "look", f"{counted(len(state.ends), 'partition')} in Kafka; there is no archive yet", step
            )
            continue
        if archive.partitions != len(state.ends):
            what = f"{counted(len(state.ends), 'partition')} in Kafka, {archive.partitions} in the archive"
            step = "keys have moved: archive the topic again, KafkaTopic(..., archive=NAME), and replay it"
            yield Finding(about, "wrong", what, step)
            continue
        copy = KafkaCopy(archive)
        copy.check_origin(state.origin)
        reached = {partition: copy.position(partition) or 0 for partition in state.ends}
        lost = sum(max(min(state.begins[p], state.ends[p]) - at, 0) for p, at in reached.items())
        waiting = sum(max(state.ends[p] - at, 0) for p, at in reached.items())
        if lost:
            step = "archive what is left, and more often: hindstream archive TOPICS --set on_lost_record=skip"
            yield Finding(
                about,
                "wrong",
                f"Kafka has deleted {counted(lost, 'offset that is', 'offsets that are')} not archived",
                step,
            )
        else:
            yield Finding(about, "ok", f"{counted(waiting, 'offset is', 'offsets are')} not archived yet")


def check_sinks(job: Job, settings: Settings) -> Iterator[Finding]:
    """Whether the topics that the job publishes to are there."""
    cluster, warehouse = Cluster(settings), open_warehouse(settings)
    names = cluster.topic_names()
    for sink in job.kafka_sinks:
        readers = publisher_of(warehouse, job.name, sink.archive_name).readers
        positions = positions_topic(readers, sink.name)
        if sink.name not in names:
            step = f"kafka-topics.sh --create --topic {sink.name} --partitions N"
            yield Finding(f"topic {sink.name}", "wrong", "the job publishes to it, and it is not there", step)
            continue
        yield Finding(f"topic {sink.name}", "ok", f"{counted(len(cluster.topic(sink.name).ends), 'partition')}")
        if positions in names:
            yield from _compared(cluster, positions, {"cleanup.policy": "compact"})


def check_handover(handover: Handover, settings: Settings) -> Iterator[Finding]:
    """Whether the changelogs of an application are configured as their stores need them."""
    cluster = Cluster(settings)
    names = cluster.topic_names()
    with open_state(
        settings.warehouse,
        handover.job,
        storage_options=settings.store_options,
        state_dir=settings.local_state_dir,
    ) as state:
        handover = handover.with_source_changelogs(source_changelogs(state.stores), moves=False)
        for store in state.stores:
            changelog = handover.changelog(store.name)
            if store.name in handover.leave_out:
                continue
            if changelog in names:
                yield from _compared(cluster, changelog, changelog_config(store.described.store, 0))
            else:
                step = "hindstream handover HANDOVER makes it"
                yield Finding(f"changelog {changelog}", "look", "it is not there yet", step)


_AT_LEAST = ("retention.ms", "min.compaction.lag.ms")


def _compared(cluster: Cluster, topic: str, wanted: dict[str, str]) -> Iterable[Finding]:
    found = cluster.topic_config(topic)
    for name, value in wanted.items():
        about = f"changelog {topic}" if topic.endswith("-changelog") else f"topic {topic}"
        has = found[name]
        step = f"kafka-configs.sh --alter --entity-type topics --entity-name {topic} --add-config '{name}={value}'"
        if name in _AT_LEAST:
            if 0 <= int(has) < int(value):
                yield Finding(about, "wrong", f"{name} is {has}, and the store needs {value}", step)
            elif int(has) > int(value):
                what = f"{name} is {has}, more than the {value} that the store needs"
                yield Finding(about, "look", what, f"when the application has caught up: {step}")
            else:
                yield Finding(about, "ok", f"{name} is {has}")
        elif sorted(has.split(",")) != sorted(value.split(",")):
            yield Finding(about, "wrong", f"{name} is {has}, not {value}", step.replace(value, f"[{value}]"))
        else:
            yield Finding(about, "ok", f"{name} is {has}")
