"""Where a live Kafka Streams application has stopped: what its group has committed, when nothing is under way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from hindstream.kafka.cluster import Cluster, Committed, TopicState


def committed_at_rest(
    cluster: Cluster,
    application_id: str,
    sources: Collection[str],
    *,
    read_back: Collection[str] = (),
    assumed: bool = False,
) -> dict[tuple[str, int], Committed]:
    """What an application has committed that has stopped, by topic and partition.

    Args:
        cluster: The cluster.
        application_id: The application's.
        sources: The topics that it reads and others write.
        read_back: The topics that it reads and writes itself, beside its repartition topics.
        assumed: Whether it is taken to be at rest where nobody can tell: see `Cluster.check_stopped`.

    Raises:
        ConfigurationError: The application runs, has committed nothing, or has not read its own topics to their ends.
        RetryableError: The cluster did not answer, or a transaction of the application is open for long.
    """
    cluster.check_stopped(application_id, assumed=assumed)
    committed = cluster.committed(application_id, stable=True)
    if not committed:
        what = "the group has committed nothing"
        step = "check application_id; offsets expire too (offsets.retention.minutes)"
        raise ConfigurationError(what, group=application_id, next_step=step)
    prefix, suffix = f"{application_id}-", "-repartition"
    mentioned = {topic for topic, _ in committed}
    own = {name for name in cluster.topic_names() if name.startswith(prefix)} - {*sources}
    of_its_own = {name for name in own if name in mentioned or name.endswith(suffix)} | {*read_back}
    for name in sorted(of_its_own):
        unread = _unread(cluster.topic(name), committed)
        if unread:
            what = f"the application has not read {counted(unread, 'record')} of its own"
            step = "start it again, let it read all that it is given, and stop it then"
            raise ConfigurationError(what, topic=name, next_step=step)
    return committed


def _unread(topic: TopicState, committed: Mapping[tuple[str, int], Committed]) -> int:
    """How many offsets of a topic a group has not come to."""
    begun = {p: committed[topic.name, p].offset for p in topic.ends if (topic.name, p) in committed}
    return sum(max(end - begun.get(p, topic.begins[p]), 0) for p, end in topic.ends.items())
