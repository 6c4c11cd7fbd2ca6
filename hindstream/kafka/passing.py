"""Passes the publication of a topic from one job to another: the one that was promoted, or back.

A promotion (`statelib.commits.versions.promotion`) says who publishes from then on. What Kafka has follows, in order:

1. The producers of all partitions are fenced. A job that still publishes can send nothing more; one that begins later
   meets the promotion, because it looks for it after its producer has begun.
2. Up to the positions that stand now readers have what the job before has written. That is compared with what the job
   has that was promoted.
3. One transaction holds the records that make a difference, and all positions, which are from then on those of
   the job that was promoted. So readers meet either nothing of it or all, and whoever is killed when, it is done once.

The producer of that transaction has a name of its own, so of two that pass a topic on, Kafka stops the older one.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hindstream.kafka.differences import of_published, of_topic
from hindstream.kafka.producer import Outgoing, produce, transaction, transactional_producer
from hindstream.kafka.publication import check_not_rolled_back
from hindstream.kafka.published_position import Begun, PublishedPosition
from statelib.errors.fault_points import step
from statelib.errors.kinds import ConfigurationError
from statelib.storage.transfers import in_parallel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka import Producer

    from hindstream.kafka.differences import Differences
    from hindstream.kafka.publication import Publication
    from statelib.settings.settings import Settings

_AT_ONCE = 8
"""How many partitions are asked at a time."""

_TRANSACTION_MS = 900_000
"""The longest that brokers allow unless they are told otherwise (``transaction.max.timeout.ms``)."""


def pass_to(publication: Publication, settings: Settings) -> int:
    """Makes sure that the topic is published by this job; the first time, that it is nobody else's.

    Args:
        publication: The publication.
        settings: See `Settings`: ``publish``, ``publish_onto_records``.

    Returns:
        How many records correct what readers have; 0 if the job published it already.

    Raises:
        ConfigurationError: The topic is another one than before, or holds records of others; or what readers have
            cannot be told any more, or not be compared.
        RetryableError: Somebody else has written to the topic meanwhile.
        FencedError: Another process does the same, or readers have been moved meanwhile.
    """
    cluster = publication.cluster
    name = f"hindstream-{publication.positions}-begin"
    with cluster.errors(topic=publication.positions, transactional_id=name):
        producer = transactional_producer(cluster.properties, name, timeout_ms=_TRANSACTION_MS)
        publication.check_serves()  # after that: who passes the topic on for a promotion before cannot end it any more
        has_begun = _has_begun(publication)  # what somebody was about to say when he was killed is said now
        wants_changed = settings.publish == "changed"
        positions = _positions(publication)
        if all(map(publication.has_passed_to, positions.values())):
            if has_begun and not (wants_changed and _are_rolled_back(publication, positions)):
                return 0
            if not has_begun and (_is_empty(publication) or not wants_changed):
                _check_may_add(publication, settings)
                with transaction(producer):
                    _produce_begun(producer, publication)
                return 0
        step("pass.before-fence")
        ids = [publication.sender_id(partition) for partition in range(publication.partitions)]
        in_parallel(partial(transactional_producer, cluster.properties), ids, _AT_ONCE)
        step("pass.fenced")
        made = _differences(publication, settings, has_begun=has_begun)
        step("pass.compared")
        with transaction(producer):
            if not has_begun:
                _produce_begun(producer, publication)
            _produce(producer, publication, made)
            step("pass.sent")
        step("pass.passed")
    return sum(len(batch) for batches in made.parts.values() for batch in batches)


def _differences(publication: Publication, settings: Settings, *, has_begun: bool) -> Differences:
    wants_changed = settings.publish == "changed"
    if not has_begun:
        if wants_changed and not _is_empty(publication):
            return of_topic(publication)
        _check_may_add(publication, settings)
    return of_published(publication, _positions(publication), or_topic=wants_changed)


def _produce(producer: Producer, publication: Publication, made: Differences) -> None:
    """Sends what differs, and the positions of all partitions."""
    for partition, batches in made.parts.items():
        for batch in batches:
            for target, record in publication.addressed(batch, partition):
                produce(producer, publication.topic.name, target, record)
    for partition in range(publication.partitions):
        position = publication.position_at(made.ends.get(partition, 0))
        produce(producer, publication.positions, partition, Outgoing(position.KEY, position.encode()))


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


def _is_empty(publication: Publication) -> bool:
    return publication.state.begins == publication.state.ends


def _check_may_add(publication: Publication, settings: Settings) -> None:
    if not _is_empty(publication) and not settings.publish_onto_records:
        what = "the topic holds records that this job has not published"
        step_ = "publish to another topic, or set publish=changed to publish what differs from them,"
        step_ += " or publish_onto_records=true to add all records to them"
        raise ConfigurationError(what, topic=publication.state.name, next_step=step_)


def _are_rolled_back(publication: Publication, positions: Mapping[int, PublishedPosition | None]) -> bool:
    archive = publication.archive
    try:
        for partition, at in positions.items():
            if archive is not None and at is not None:
                check_not_rolled_back(publication, archive, partition, at)
    except ConfigurationError:
        return True
    return False


def _positions(publication: Publication) -> dict[int, PublishedPosition | None]:
    partitions = range(publication.partitions)
    return dict(zip(partitions, in_parallel(publication.position, partitions, _AT_ONCE), strict=True))
