"""Publishes sinks to topics of a Kafka cluster: what their archives show, each record once.

Each partition of an archive has a transactional producer of its own. Its transactions hold records and the position in
the archive up to which they go (`hindstream.kafka.published_position`), and go on from the position that stands. So a
publication that was stopped anywhere continues; and of two at once, Kafka stops the older one.

Kafka takes nothing back. Where an archive has taken back records that were published, publishing is refused.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hindstream.kafka.cluster import Cluster
from hindstream.kafka.producer import Outgoing, outgoing, produce, transaction, transactional_producer
from hindstream.kafka.published_position import Begun, PublishedPosition, positions_topic
from statelib.commits.archives import open_archive_if_present
from statelib.commits.source_rollbacks import rollback_notices
from statelib.documents.upkeep import ROLLBACKS
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError
from statelib.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde
from statelib.topics.partitioner import partition_for

if TYPE_CHECKING:
    from confluent_kafka import Producer

    from hindstream.kafka.cluster import TopicState
    from statelib.job.job import Job
    from statelib.job.kafka_topic import KafkaTopic
    from statelib.settings.settings import Settings
    from statelib.storage import Storage
    from statelib.topics.archive import TopicArchive

_TRANSACTION_RECORDS = 100_000
"""A transaction is over long before Kafka's time for one, a minute, is."""


@dataclass(frozen=True, slots=True)
class PublishedToKafka:
    """What was sent to a topic."""

    topic: str
    records: int


def publish_to_kafka(job: Job, warehouse: Storage, settings: Settings) -> tuple[PublishedToKafka, ...]:
    """Sends what the archives of the job's ``kafka_sinks`` show and their topics lack.

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
    if not job.kafka_sinks:
        return ()
    cluster = Cluster(settings)
    done = []
    for topic in job.kafka_sinks:
        archive = open_archive_if_present(warehouse, topic.archive_name)
        if archive is not None:
            done.append(_publish(job.name, topic, archive, cluster, warehouse, settings))
    return tuple(done)


def _publish(
    job: str, topic: KafkaTopic, archive: TopicArchive, cluster: Cluster, warehouse: Storage, settings: Settings
) -> PublishedToKafka:
    state = cluster.topic(topic.name)
    positions = positions_topic(job, topic.name)
    cluster.ensure_topic(positions, archive.partitions, {"cleanup.policy": "compact"})
    _begin(positions, state, cluster, settings)
    senders = [
        _PartitionSender(job, topic, archive, partition, state, warehouse) for partition in range(archive.partitions)
    ]
    with ThreadPoolExecutor(settings.parallel_transfers) as pool:
        sent = list(pool.map(lambda sender: sender.run(cluster), senders))
    return PublishedToKafka(topic.name, sum(sent))


def _begin(positions: str, state: TopicState, cluster: Cluster, settings: Settings) -> None:
    """Makes sure that the topic is the one that was begun with; the first time, that it is nobody else's."""
    if _has_begun(positions, state, cluster):
        return
    with cluster.errors(topic=positions):
        producer = transactional_producer(cluster.properties, f"hindstream-{positions}-begin")
        if _has_begun(positions, state, cluster):  # what somebody was about to say when he was killed is said now
            return
        if state.begins != state.ends and not settings.publish_onto_records:
            what = "the topic holds records that this job has not published"
            step = "publish to another topic, or set publish_onto_records=true to add to it"
            raise ConfigurationError(what, topic=state.name, next_step=step)
        with transaction(producer):
            produce(producer, positions, 0, Outgoing(Begun.KEY, Begun(topic=state.origin).encode()))


def _has_begun(positions: str, state: TopicState, cluster: Cluster) -> bool:
    begun = cluster.last_value(positions, 0, Begun.KEY)
    if begun is not None and Begun.decode(begun, topic=positions, partition=0).topic != state.origin:
        what = "the topic is not the one that was published to: it is of another cluster, or was created again"
        step = f"publish to a topic of another name, or delete {positions} too, to publish all again"
        raise ConfigurationError(what, topic=state.name, next_step=step)
    return begun is not None


class _PartitionSender:
    """Publishes one partition of an archive."""

    def __init__(
        self,
        job: str,
        topic: KafkaTopic,
        archive: TopicArchive,
        partition: int,
        state: TopicState,
        warehouse: Storage,
    ) -> None:
        self._topic = topic
        self._archive = archive
        self._partition = partition
        self._state = state
        self._warehouse = warehouse
        self._positions = positions_topic(job, topic.name)
        self._place = {"topic": topic.name, "partition": partition}
        self._rollback = archive.last_transaction(ROLLBACKS) or 0

    def run(self, cluster: Cluster) -> int:
        """Sends what is missing, and says how many records that is."""
        end = self._archive.end_offsets()[self._partition]
        with cluster.errors(**self._place):
            producer = transactional_producer(cluster.properties, f"hindstream-{self._positions}-{self._partition}")
            start = self._start(cluster)
            if start > end:
                what = f"records up to offset {start - 1} were published, and the sink's archive ends before {end}"
                step = "restore the archive's former version (Delta time travel), then publish again"
                raise ConfigurationError(what, **self._place, file=self._archive.uri, next_step=step)
            parts = self._archive.reader(self._partition, start, end, batch_rows=_TRANSACTION_RECORDS)
            return sum(self._send(producer, part) for part in parts) if start < end else 0

    def _start(self, cluster: Cluster) -> int:
        """The next offset of the archive to publish."""
        last = cluster.last_value(self._positions, self._partition, PublishedPosition.KEY)
        if last is None:
            return 0
        position = PublishedPosition.decode(last, topic=self._positions, partition=self._partition)
        self._check_rollbacks(position)
        return position.offset

    def _check_rollbacks(self, position: PublishedPosition) -> None:
        notices = rollback_notices(self._warehouse, self._archive.topic, after=position.rollback, newest=self._rollback)
        for notice in notices:
            end = notice.end_offsets.get(self._partition, 0)
            if end < position.offset:
                records = counted(position.offset - end, "record of the topic was", "records of the topic were")
                what = f"{records} rolled back by commit {notice.commit}, and Kafka cannot remove them"
                step = "publish to a topic of another name: KafkaTopic(NAME, archive=SINK)"
                raise ConfigurationError(what, **self._place, offset=end, next_step=step)

    def _send(self, producer: Producer, records: pa.RecordBatch) -> int:
        """Sends some records and the position after them, in a transaction."""
        keys, values = self._topic.key.serialize(records["key"]), self._topic.value.serialize(records["value"])
        targets = self._targets(records["key"], keys).tolist()
        sent = outgoing(keys, values, records["timestamp"], records["headers"])
        position = PublishedPosition(offset=records["offset"][-1].as_py() + 1, rollback=self._rollback)
        with transaction(producer):
            for target, record in zip(targets, sent, strict=True):
                produce(producer, self._topic.name, target, record)
            produce(producer, self._positions, self._partition, Outgoing(position.KEY, position.encode()))
        return int(records.num_rows)

    def _targets(self, key: pa.Array, data: pa.Array) -> np.ndarray[Any, np.dtype[np.int32]]:
        """The partition of each record, as Kafka's default partitioner has it; a windowed key goes by its plain key."""
        partitions = len(self._state.ends)
        serde = self._topic.key
        if isinstance(serde, (TimeWindowedSerde, SessionWindowedSerde)):
            data = serde.key.serialize(pc.struct_field(key, "key"))
        where = partition_for(data, partitions)
        return np.where(data.is_valid().to_numpy(zero_copy_only=False), where, self._partition % partitions)
