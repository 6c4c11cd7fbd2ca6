"""How far consumer groups are behind, measured on the broker: what the group has committed against where topics end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hindstream.kafka.cluster import Cluster


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """A partition that a group reads.

    Attributes:
        topic: Its topic.
        partition: Its number.
        position: The offset at which the group goes on; where it has committed none, the first that Kafka has.
        end: The offset before which all transactions have ended.
        time_ms: The stream time that a Kafka Streams application has noted; None: it has noted none.
    """

    topic: str
    partition: int
    position: int
    end: int
    time_ms: int | None

    @property
    def lag(self) -> int:
        """How many offsets there are to read; markers of transactions count too."""
        return max(self.end - self.position, 0)


@dataclass(frozen=True, slots=True)
class GroupLag:
    """A group at some time.

    Attributes:
        group: Its id.
        partitions: Those that it reads, by topic and number.
    """

    group: str
    partitions: tuple[PartitionLag, ...]

    @property
    def most(self) -> int:
        """The largest lag of a partition; 0: there is none to read."""
        return max((of.lag for of in self.partitions), default=0)

    def reached_ms(self) -> int | None:
        """The stream time that the group has come to in all partitions; None: it has noted none yet.

        A partition that has been read to its end holds nothing back.
        """
        unread = [of for of in self.partitions if of.lag]
        if any(of.time_ms is None for of in unread):
            return None
        times = [of.time_ms for of in unread or self.partitions if of.time_ms is not None]
        return (min if unread else max)(times, default=None)


def group_lag(cluster: Cluster, group: str, topics: Iterable[str]) -> GroupLag:
    """The lag of a group in its topics, and in all others for which it has committed, such as repartition topics.

    Ends are asked for before positions, so that what is read meanwhile counts for the group.

    Args:
        cluster: The cluster.
        group: The group; of a Kafka Streams application its ``application.id``.
        topics: What it reads, also where it has committed nothing yet.

    Raises:
        ConfigurationError: There is no such topic.
        RetryableError: The cluster did not answer.
    """
    names = sorted({*topics, *(topic for topic, _ in cluster.committed(group))})
    states = [cluster.topic(name) for name in names]
    committed = cluster.committed(group)
    found = []
    for state in states:
        for partition, end in sorted(state.ends.items()):
            at = committed.get((state.name, partition))
            position = state.begins[partition] if at is None else at.offset
            time_ms = None if at is None else at.partition_time_ms
            found.append(PartitionLag(state.name, partition, position, end, time_ms))
    return GroupLag(group, tuple(found))
