"""Publishes sinks to topics of a Kafka cluster: what their archives show, each record once.

Each partition of an archive has a transactional producer of its own. Its transactions hold records and the position in
the archive up to which they go (`hindstream.kafka.published_position`), and go on from the position that stands. So a
publication that was stopped anywhere continues; and of two at once, Kafka stops the older one.

Kafka takes nothing back. Where an archive has taken back records that were published, publishing is refused.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hindstream.kafka.cluster import Cluster
from hindstream.kafka.passing import pass_to
from hindstream.kafka.producer import Outgoing, produce, transaction, transactional_producer
from hindstream.kafka.publication import Publication, check_not_rolled_back
from hindstream.kafka.published_position import positions_topic
from statelib.commits.archives import open_archive_if_present
from statelib.commits.layout import CommitLog
from statelib.commits.versions.publishers import publisher_of
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    import pyarrow as pa
    from confluent_kafka import Producer

    from statelib.commits.versions.publishers import Publisher
    from statelib.job.job import Job
    from statelib.job.kafka_topic import KafkaTopic
    from statelib.settings.settings import Settings
    from statelib.storage import Storage
    from statelib.topics.archive import TopicArchive

_TRANSACTION_RECORDS = 100_000
"""A transaction is over long before Kafka's time for one, a minute, is."""


@dataclass(frozen=True, slots=True)
class PublishedToKafka:
    """What was sent to a topic.

    Attributes:
        topic: The topic.
        records: How many records were sent, corrections included.
        corrections: How many of them make the topic right when it passed to the job from another one.
        left_to: The job that publishes the topic instead, since readers read that one; None: this one does.
    """

    topic: str
    records: int
    corrections: int = 0
    left_to: str | None = None


def publish_to_kafka(job: Job, warehouse: Storage, settings: Settings) -> tuple[PublishedToKafka, ...]:
    """Sends what the archives of the job's ``kafka_sinks`` show and their topics lack.

    Topics that another job publishes, since it was promoted over this one or this one is a fork that was not, are left
    to that.

    Args:
        job: The job.
        warehouse: Root of all durable data.
        settings: See `Settings`: ``kafka``, ``publish_onto_records``, ``parallel_transfers`` partitions at a time.

    Returns:
        What was sent, by topic.

    Raises:
        ConfigurationError: A topic is not there, is not the one that was published to, or holds records of others; or
            records that it has were taken back.
        FencedError: Another process publishes the same; it goes on.
        RetryableError: The cluster did not answer.
    """
    done = []
    for topic in job.kafka_sinks:
        publisher = publisher_of(warehouse, job.name, topic.archive_name)
        if publisher.job != job.name:
            done.append(PublishedToKafka(topic.name, 0, left_to=publisher.job))
            continue
        publication = _publication(job, topic, publisher, Cluster(settings), warehouse)
        if publication is not None:
            done.append(_publish(publication, settings))
    return tuple(done)


def check_can_pass(job: Job, warehouse: Storage, settings: Settings) -> None:
    """Makes sure that the topics of a fork are there, before it is promoted.

    Raises:
        ConfigurationError: One is not, or has been published from a sink with other partitions.
        RetryableError: The cluster did not answer.
    """
    for topic in job.kafka_sinks:
        publisher = replace(publisher_of(warehouse, job.name, topic.archive_name), job=job.name)
        _publication(job, topic, publisher, Cluster(settings), warehouse)


def _publication(
    job: Job, topic: KafkaTopic, publisher: Publisher, cluster: Cluster, warehouse: Storage
) -> Publication | None:
    """None: there is nothing to publish yet."""
    archive = open_archive_if_present(warehouse, topic.archive_name)
    positions = positions_topic(publisher.readers, topic.name)
    is_first = positions not in cluster.topic_names()
    if archive is None and (is_first or publisher.readers == job.name):
        return None
    state = cluster.topic(topic.name)
    partitions = archive.partitions if archive is not None and is_first else len(cluster.topic(positions).ends)
    if archive is not None and archive.partitions != partitions:
        of = counted(partitions, "partition")
        what = (
            f"its sink has {counted(archive.partitions, 'partition')}, and the topic was published from one with {of}"
        )
        step = "publish to a topic of another name: KafkaTopic(NAME, archive=SINK)"
        raise ConfigurationError(what, job=job.name, topic=topic.name, next_step=step)
    is_placed = any(
        sink.is_placed and sink.topic == topic.archive_name
        for sub in job.topology.sub_topologies
        for sink in sub.all_sinks
    )
    if is_placed and len(state.ends) != partitions:
        of = counted(len(state.ends), "partition")
        what = f"a partitioner chose among {partitions} partitions of the sink, and the topic has {of}"
        step = f"declare them: Produced.with_partitions({len(state.ends)})"
        raise ConfigurationError(what, job=job.name, topic=topic.name, next_step=step)
    cluster.ensure_topic(positions, partitions, {"cleanup.policy": "compact"})
    first = CommitLog(warehouse, job.name).read_if_present(1)
    made_at_ms = None if first is None else first.created_at_ms
    return Publication(publisher, topic, archive, partitions, state, cluster, warehouse, made_at_ms, is_placed)


def _publish(publication: Publication, settings: Settings) -> PublishedToKafka:
    corrections = pass_to(publication, settings)
    archive, sent = publication.archive, 0
    if archive is not None:
        with ThreadPoolExecutor(settings.parallel_transfers) as pool:
            senders = [_PartitionSender(publication, archive, partition) for partition in range(archive.partitions)]
            sent = sum(pool.map(_PartitionSender.run, senders))
    return PublishedToKafka(publication.topic.name, sent + corrections, corrections)


@dataclass(frozen=True, slots=True)
class _PartitionSender:
    """Publishes one partition of an archive."""

    publication: Publication
    archive: TopicArchive
    partition: int

    def run(self) -> int:
        """Sends what is missing, and says how many records that is."""
        cluster = self.publication.cluster
        end = self.archive.end_offsets()[self.partition]
        publication, sender = self.publication, self.publication.sender_id(self.partition)
        place = {"topic": publication.topic.name, "positions": publication.positions, "partition": self.partition}
        with cluster.errors(**place, transactional_id=sender):
            producer = transactional_producer(cluster.properties, sender)
            self.publication.check_serves()  # whoever passes the topic on fences this producer after that
            start = self._start()
            parts = self.archive.reader(self.partition, start, end, batch_rows=_TRANSACTION_RECORDS)
            return sum(self._send(producer, part) for part in parts) if start < end else 0

    def _start(self) -> int:
        """The next offset of the archive to publish."""
        position = self.publication.own_position(self.partition)
        if position is None:
            return 0
        check_not_rolled_back(self.publication, self.archive, self.partition, position)
        return position.offset

    def _send(self, producer: Producer, records: pa.RecordBatch) -> int:
        """Sends some records and the position after them, in a transaction."""
        publication = self.publication
        sent = list(publication.addressed(records, self.partition))
        position = publication.position_at(records["offset"][-1].as_py() + 1)
        with transaction(producer):
            for target, record in sent:
                produce(producer, publication.topic.name, target, record)
            produce(producer, publication.positions, self.partition, Outgoing(position.KEY, position.encode()))
        return int(records.num_rows)
