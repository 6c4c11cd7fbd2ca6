"""Passes the publication of a topic from one job to another: the one that was promoted, or back.

A promotion (`statelib.commits.promotion`) says who publishes from then on. What Kafka has follows, in this order:

1. The producers of all partitions are fenced. A job that still publishes can send nothing more; one that begins later
   meets the promotion, because it looks for it after its producer has begun.
2. Up to the positions that stand now readers have what the job before has written. That is compared with what the job
   has that was promoted.
3. One transaction holds the records that make a difference, and all positions, which are from then on those of
   the job that was promoted. So readers meet either nothing of it or all, and whoever is killed when, it is done once.

The producer of that transaction has a name of its own, so of two that pass a topic on, Kafka stops the older one.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hindstream.kafka.producer import Outgoing, produce, transaction, transactional_producer
from hindstream.kafka.publication import check_not_rolled_back
from hindstream.kafka.published_position import Begun, PublishedPosition
from statelib.commits.archives import open_archive_if_present
from statelib.commits.layout import CommitLog, fork_topic
from statelib.commits.sink_history import Segment, sink_history
from statelib.commits.standing import standing_commit
from statelib.comparison.compare import compare
from statelib.comparison.matches import Resources
from statelib.comparison.sides import sides_of
from statelib.comparison.sinks import default_way
from statelib.errors.fault_points import step
from statelib.errors.kinds import ConfigurationError
from statelib.repair.corrections import Corrections
from statelib.storage.transfers import in_parallel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from confluent_kafka import Producer

    from hindstream.kafka.publication import Publication
    from statelib.documents.manifests import Commit
    from statelib.settings.settings import Settings

_AT_ONCE = 8
"""How many partitions are asked at a time."""

_TRANSACTION_MS = 900_000
"""The longest that brokers allow unless they are told otherwise (``transaction.max.timeout.ms``)."""


def pass_to(publication: Publication, settings: Settings) -> int:
    """Makes sure that the topic is published by this job; the first time, that it is nobody else's.

    Args:
        publication: The publication.
        settings: See `Settings`: ``publish_onto_records``.

    Returns:
        How many records correct what readers have; 0 if the job published it already.

    Raises:
        ConfigurationError: The topic is another one than before, or holds records of others; or what readers have
            cannot be told any more, or not be compared.
        FencedError: Another process does the same, or readers have been moved meanwhile.
    """
    cluster = publication.cluster
    with cluster.errors(topic=publication.positions):
        name = f"hindstream-{publication.positions}-begin"
        producer = transactional_producer(cluster.properties, name, timeout_ms=_TRANSACTION_MS)
        publication.check_serves()  # after that: who passes the topic on for a promotion before cannot end it any more
        has_begun = _has_begun(publication)  # what somebody was about to say when he was killed is said now
        if all(map(publication.has_passed_to, _positions(publication).values())):
            if has_begun:
                return 0
            _check_empty(publication, settings)
            with transaction(producer):
                _produce_begun(producer, publication)
            return 0
        step("pass.before-fence")
        ids = [publication.sender_id(partition) for partition in range(publication.partitions)]
        in_parallel(partial(transactional_producer, cluster.properties), ids, _AT_ONCE)
        step("pass.fenced")
        made = _corrected(publication)
        step("pass.compared")
        with transaction(producer):
            if not has_begun:
                _check_empty(publication, settings)
                _produce_begun(producer, publication)
            for partition, batches in made.parts.items():
                for batch in batches:
                    for target, record in publication.addressed(batch, partition):
                        produce(producer, publication.topic.name, target, record)
            for partition in range(publication.partitions):
                position = publication.position_at(made.ends.get(partition, 0))
                produce(producer, publication.positions, partition, Outgoing(position.KEY, position.encode()))
            step("pass.sent")
        step("pass.passed")
    return sum(len(batch) for batches in made.parts.values() for batch in batches)


def _produce_begun(producer: Producer, publication: Publication) -> None:
    begun = Begun(topic=publication.state.origin)
    produce(producer, publication.positions, 0, Outgoing(begun.KEY, begun.encode()))


def _has_begun(publication: Publication) -> bool:
    begun = publication.cluster.last_value(publication.positions, 0, Begun.KEY)
    state = publication.state
    if begun is not None and Begun.decode(begun, topic=publication.positions, partition=0).topic != state.origin:
        what = "the topic is not the one that was published to: it is of another cluster, or was created again"
        step_ = f"publish to a topic of another name, or delete {publication.positions} too, to publish all again"
        raise ConfigurationError(what, topic=state.name, next_step=step_)
    return begun is not None


def _check_empty(publication: Publication, settings: Settings) -> None:
    state = publication.state
    if state.begins != state.ends and not settings.publish_onto_records:
        what = "the topic holds records that this job has not published"
        step_ = "publish to another topic, or set publish_onto_records=true to add to it"
        raise ConfigurationError(what, topic=state.name, next_step=step_)


def _positions(publication: Publication) -> dict[int, PublishedPosition | None]:
    partitions = range(publication.partitions)
    return dict(zip(partitions, in_parallel(publication.position, partitions, _AT_ONCE), strict=True))


@dataclass(frozen=True, slots=True)
class _Corrected:
    """What is sent, by partition of the sink, and where the job's own archive ends that has that."""

    parts: Mapping[int, Sequence[pa.RecordBatch]]
    ends: Mapping[int, int]


def _corrected(publication: Publication) -> _Corrected:
    """Compares what readers have with what the job has."""
    warehouse, sink, archive = publication.warehouse, publication.publisher.sink, publication.archive
    owner, before = _published(publication)
    shown = archive.last_transaction(publication.job) if archive is not None else None
    head = standing_commit(warehouse, publication.job, shown)
    after = sink_history(warehouse, publication.job, head.commit).get(sink, ())
    sides = sides_of(warehouse, (sink, before), (sink, after))
    way = default_way(warehouse, owner.job, owner.fingerprint, sink)
    corrections = Corrections(way, *sides)
    with tempfile.TemporaryDirectory(prefix="hindstream-publish-") as scratch:
        found = compare(*sides, way, Resources(Path(scratch)), taker=corrections)
    if not found.is_compared:
        what = f"keys of {publication.job} are of another type than those of {owner.job}, which readers have"
        step_ = "publish to a topic of another name: KafkaTopic(NAME, archive=SINK)"
        raise ConfigurationError(what, topic=publication.topic.name, next_step=step_)
    return _Corrected(corrections.parts(), head.sink_offsets().get(publication.topic.archive_name, {}))


def _published(publication: Publication) -> tuple[Commit, list[Segment]]:
    """The newest commit of the job that has published the topic so far, and what of its sink."""
    warehouse, publisher = publication.warehouse, publication.publisher
    positions = {partition: at for partition, at in _positions(publication).items() if at is not None}
    name, made_at_ms = next(((at.job, at.made_at_ms) for at in positions.values()), (None, None))
    owner = name or publisher.readers
    own_topic = publisher.sink if owner == publisher.readers else fork_topic(publisher.sink, owner)
    first = CommitLog(warehouse, owner).read_if_present(1)
    if first is None or (owner != publisher.readers and first.created_at_ms != made_at_ms):
        what = f"readers have what {owner} has published, and that fork has been dropped"
        step_ = "publish to a topic of another name: KafkaTopic(NAME, archive=SINK)"
        raise ConfigurationError(what, job=publication.job, topic=publication.topic.name, next_step=step_)
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
