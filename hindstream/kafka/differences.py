"""The records that make a topic of Kafka right whose readers have what another job has written.

What they have is told by positions, if it was published from a sink that is still there (`statelib.repair.corrections`
says how it is corrected). Else the topic itself is read, if the setting ``publish`` asks for that.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hindstream.kafka.publication import check_not_rolled_back
from hindstream.kafka.topic_rows import as_published, side_of_topic
from statelib.commits.archives import open_archive_if_present
from statelib.commits.layout import CommitLog, fork_topic
from statelib.commits.standing import standing_commit
from statelib.commits.versions.sink_history import Segment, sink_history
from statelib.comparison.compare import compare
from statelib.comparison.matches import Resources
from statelib.comparison.sides import sides_of
from statelib.comparison.sinks import default_way
from statelib.errors.fault_points import step
from statelib.errors.kinds import ConfigurationError, RetryableError
from statelib.repair.corrections import Corrections

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from hindstream.kafka.publication import Publication
    from hindstream.kafka.published_position import PublishedPosition
    from statelib.comparison.matches import Way
    from statelib.comparison.sides import Side
    from statelib.documents.manifests import Commit


@dataclass(frozen=True, slots=True)
class Differences:
    """What a topic lacks.

    Attributes:
        parts: By partition of the sink, the records that correct it.
        ends: By partition, where the job's own archive ends that has what the topic has then; 0 where one is missing.
    """

    parts: Mapping[int, Sequence[pa.RecordBatch]]
    ends: Mapping[int, int]


def of_published(
    publication: Publication, positions: Mapping[int, PublishedPosition | None], *, or_topic: bool = False
) -> Differences:
    """Compares what has been published up to some positions, by another job, with what the job has.

    Args:
        publication: The publication.
        positions: By partition.
        or_topic: Whether the topic itself is looked at where sinks do not tell any more what was published.

    Raises:
        ConfigurationError: What was published cannot be told any more, or not be compared; see `of_topic` too.
    """
    standing = {partition: at for partition, at in positions.items() if at is not None}
    try:
        owner, before = _published(publication, standing)
    except ConfigurationError:
        if not or_topic:
            raise
        return of_topic(publication)
    head, after = _history(publication)
    sink = publication.publisher.sink
    sides = sides_of(publication.warehouse, (sink, before), (sink, after))
    way = default_way(publication.warehouse, owner.job, owner.fingerprint, sink)
    with tempfile.TemporaryDirectory(prefix="hindstream-publish-") as scratch:
        return _compared(publication, head, way, sides, Path(scratch))


def of_topic(publication: Publication) -> Differences:
    """Compares what the topic itself has with what the job has.

    Raises:
        ConfigurationError: See `hindstream.kafka.topic_rows.side_of_topic`.
        InputError: A record of the topic cannot be decoded.
        RetryableError: Somebody has written to the topic meanwhile.
    """
    warehouse, topic, cluster = publication.warehouse, publication.topic, publication.cluster
    head, after = _history(publication)
    sink = publication.publisher.sink
    way = default_way(warehouse, publication.job, head.fingerprint, sink)
    _, written = sides_of(warehouse, (sink, ()), (sink, after))
    state = cluster.topic(topic.name)
    with tempfile.TemporaryDirectory(prefix="hindstream-publish-") as scratch:
        before = side_of_topic(topic, state, cluster, way, Path(scratch))
        made = _compared(publication, head, way, (before, as_published(written, topic)), Path(scratch))
    step("pass.topic-read")
    if cluster.topic(topic.name).ends != state.ends:
        step_ = "let nobody else write to it, then publish again"
        raise RetryableError("somebody has written to the topic meanwhile", topic=topic.name, next_step=step_)
    return made


def _history(publication: Publication) -> tuple[Commit, Sequence[Segment]]:
    """The newest commit that the job's archive shows, and what it has of the sink."""
    archive, warehouse = publication.archive, publication.warehouse
    shown = archive.last_transaction(publication.job) if archive is not None else None
    head = standing_commit(warehouse, publication.job, shown)
    return head, sink_history(warehouse, publication.job, head.commit).get(publication.publisher.sink, ())


def _compared(publication: Publication, head: Commit, way: Way, sides: tuple[Side, Side], scratch: Path) -> Differences:
    corrections = Corrections(way, *sides)
    if not compare(*sides, way, Resources(scratch), taker=corrections).is_compared:
        what = f"keys of {publication.job} are of another type than those that readers have"
        raise ConfigurationError(what, topic=publication.topic.name, next_step=_ELSEWHERE)
    return Differences(corrections.parts(), head.sink_offsets().get(publication.topic.archive_name, {}))


def _published(
    publication: Publication, positions: Mapping[int, PublishedPosition]
) -> tuple[Commit, Sequence[Segment]]:
    """The newest commit of the job that has published the topic so far, and what of its sink."""
    warehouse, publisher = publication.warehouse, publication.publisher
    name, made_at_ms = next(((at.job, at.made_at_ms) for at in positions.values()), (None, None))
    owner = name or publisher.readers
    own_topic = publisher.sink if owner == publisher.readers else fork_topic(publisher.sink, owner)
    first = CommitLog(warehouse, owner).read_if_present(1)
    if first is None or (owner != publisher.readers and first.created_at_ms != made_at_ms):
        what = f"readers have what {owner} has published, and that fork has been dropped"
        place = {"job": publication.job, "topic": publication.topic.name}
        raise ConfigurationError(
            what, **place, next_step=f"compare with the topic itself: --set publish=changed; or {_ELSEWHERE}"
        )
    archive = open_archive_if_present(warehouse, own_topic)
    for partition, at in positions.items():
        if archive is not None:
            check_not_rolled_back(publication, archive, partition, at)
    history = sink_history(warehouse, owner).get(publisher.sink, ())
    ends = {partition: at.offset for partition, at in positions.items()}
    cut = (_up_to(part, ends.get(part.partition, 0)) if part.topic == own_topic else part for part in history)
    return standing_commit(warehouse, owner), [part for part in cut if len(part) > 0]


def _up_to(part: Segment, end: int) -> Segment:
    return Segment(part.topic, part.partition, part.first_offset, min(part.end_offset, end))


_ELSEWHERE = "publish to a topic of another name: KafkaTopic(NAME, archive=SINK)"
