"""A publication: a sink of a job, and the topic of a cluster that gets its records.

Whoever may publish to a topic is said by two things: the newest promotion over the job whose readers these are
(`statelib.commits.versions.publishers`), which is decided in the warehouse, and the positions in Kafka, whose
transactions follow (`hindstream.kafka.passing`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from hindstream.kafka.producer import Outgoing, outgoing
from hindstream.kafka.published_position import PublishedPosition, positions_topic
from statelib.commits.sources.rollbacks import rollback_notices
from statelib.commits.versions.publishers import publisher_of
from statelib.documents.upkeep import ROLLBACKS
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError, FencedError, RetryableError
from statelib.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde
from statelib.topics.partitioner import partition_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from hindstream.kafka.cluster import Cluster, TopicState
    from statelib.commits.versions.publishers import Publisher
    from statelib.job.kafka_topic import KafkaTopic
    from statelib.storage import Storage
    from statelib.topics.archive import TopicArchive

_SECONDS = 60.0
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Publication:
    """See the module.

    Attributes:
        publisher: Who publishes, and for whose readers.
        topic: The topic, with the serdes.
        archive: The archive of the job's sink; None: a fork has written nothing yet.
        partitions: How many partitions the sink has.
        state: The topic in the cluster.
        cluster: The cluster.
        warehouse: Root of all durable data.
        made_at_ms: When the job's first commit was made; None: it has none.
        is_placed: Whether a partitioner of the job has placed the sink's records, so that they keep their partitions.
    """

    publisher: Publisher
    topic: KafkaTopic
    archive: TopicArchive | None
    partitions: int
    state: TopicState
    cluster: Cluster
    warehouse: Storage
    made_at_ms: int | None
    is_placed: bool = False

    @property
    def job(self) -> str:
        """The job that publishes."""
        return self.publisher.job

    @property
    def positions(self) -> str:
        """The topic of positions."""
        return positions_topic(self.publisher.readers, self.topic.name)

    @property
    def rollback(self) -> int:
        """The commit of the last rollback that the archive shows; 0: none."""
        return 0 if self.archive is None else self.archive.last_transaction(ROLLBACKS) or 0

    def sender_id(self, partition: int) -> str:
        """The transactional id of whoever publishes a partition of the sink."""
        return f"hindstream-{self.positions}-{partition}"

    def check_serves(self) -> None:
        """Makes sure that readers have not been moved to another job meanwhile.

        Raises:
            FencedError: They have.
        """
        now = publisher_of(self.warehouse, self.job, self.topic.archive_name)
        if now != self.publisher:
            what = f"readers of {now.readers} read {now.job} now, which publishes this topic"
            step = "nothing: what the other one publishes stands"
            raise FencedError(what, job=self.job, topic=self.topic.name, next_step=step)

    def position(self, partition: int) -> PublishedPosition | None:
        """How far a partition of the sink is published, by whichever job; None: nobody has begun with it."""
        last = self.cluster.last_value(self.positions, partition, PublishedPosition.KEY)
        return None if last is None else PublishedPosition.decode(last, topic=self.positions, partition=partition)

    def has_passed_to(self, position: PublishedPosition | None) -> bool:
        """Whether a position is one of this job."""
        if self.job == self.publisher.readers:
            return position is None or position.job in {None, self.job}
        return position is not None and (position.job, position.made_at_ms) == (self.job, self.made_at_ms)

    def own_position(self, partition: int) -> PublishedPosition | None:
        """As `position`, once Kafka shows what this job has got: that a transaction has ended is said a moment sooner.

        Raises:
            RetryableError: Kafka does not show it.
        """
        last_try = time.monotonic() + _SECONDS
        while not self.has_passed_to(position := self.position(partition)):
            if time.monotonic() > last_try:
                what = f"Kafka does not show that the topic has passed to {self.job}"
                raise RetryableError(what, topic=self.positions, partition=partition, next_step="publish again")
            time.sleep(_POLL_SECONDS)
        return position

    def position_at(self, offset: int) -> PublishedPosition:
        """That the sink is published up to an offset of its archive."""
        made_at_ms = None if self.job == self.publisher.readers else self.made_at_ms
        return PublishedPosition(offset=offset, rollback=self.rollback, job=self.job, made_at_ms=made_at_ms)

    def addressed(self, records: pa.RecordBatch, partition: int) -> Iterator[tuple[int, Outgoing]]:
        """Records of a partition of the sink as the topic gets them, each with its partition there."""
        keys, values = self.topic.key.serialize(records["key"]), self.topic.value.serialize(records["value"])
        targets = self._targets(records["key"], keys, partition).tolist()
        yield from zip(targets, outgoing(keys, values, records["timestamp"], records["headers"]), strict=True)

    def _targets(self, key: pa.Array, data: pa.Array, partition: int) -> np.ndarray[Any, np.dtype[np.int32]]:
        """The partition of each record, as Kafka's default partitioner has it; a windowed key goes by its plain key."""
        partitions = len(self.state.ends)
        if self.is_placed:
            return np.full(len(key), partition, np.int32)
        serde = self.topic.key
        if isinstance(serde, (TimeWindowedSerde, SessionWindowedSerde)):
            data = serde.key.serialize(pc.struct_field(key, "key"))
        where = partition_for(data, partitions)
        return np.where(data.is_valid().to_numpy(zero_copy_only=False), where, partition % partitions)


def check_not_rolled_back(
    publication: Publication, archive: TopicArchive, partition: int, position: PublishedPosition
) -> None:
    """Makes sure that an archive still has what was published of a partition.

    Raises:
        ConfigurationError: It has taken some of it back.
    """
    place = {"topic": publication.topic.name, "partition": partition}
    newest = archive.last_transaction(ROLLBACKS) or 0
    for notice in rollback_notices(publication.warehouse, archive.topic, after=position.rollback, newest=newest):
        end = notice.end_offsets.get(partition, 0)
        if end < position.offset:
            records = counted(position.offset - end, "record of the topic was", "records of the topic were")
            what = f"{records} rolled back by commit {notice.commit}, and Kafka cannot remove them"
            step = "let the topic be compared with the sink: --set publish=changed"
            raise ConfigurationError(what, **place, offset=end, next_step=step)
    end = archive.end_offsets()[partition]
    if position.offset > end:
        what = f"records up to offset {position.offset - 1} were published, and the sink's archive ends before {end}"
        step = "restore the archive's former version (Delta time travel), then publish again"
        raise ConfigurationError(what, **place, file=archive.uri, next_step=step)
