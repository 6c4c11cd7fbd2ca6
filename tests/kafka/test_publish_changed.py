"""``publish=changed``: a topic that has records of others gets only what differs from them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from hindstream.kafka.publish import publish_to_kafka
from statelib.commits import rollback
from statelib.commits.versions.drop_fork import drop_fork
from statelib.errors.kinds import ConfigurationError, InputError, RetryableError
from tests.commits.versions.test_fork import at
from tests.kafka.cluster import Message
from tests.kafka.test_passing import World, job_of, replayed, world
from tests.repair.histories import HOUR, topology
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    pass

__all__ = ["replayed", "world"]

pytestmark = pytest.mark.thorough


def live(world: World, **wrong: int) -> dict[str, int]:
    """What a live application has published: what the job has, spelled otherwise, and some of it wrong or not there.

    Returns:
        By topic, how many records it has written.
    """
    counts = {}
    for topic, sink in (("totals", "so-far"), ("large", "large")):
        messages = []
        for n, (_, _, key, value, timestamp_ms) in enumerate(world.job.output(sink)):
            fields = dict(reversed(value.items()))
            if n in wrong.values():
                fields |= dict.fromkeys([name for name, of in value.items() if isinstance(of, int)], -1)
            messages.append(Message(key.encode(), json.dumps(fields, indent=1).encode(), timestamp_ms))
        counts[topic] = len(messages) - 3
        world.cluster.produce(f"{world.prefix}-{topic}", messages[:-3])
    return counts


def test_a_topic_of_a_live_application(world: World) -> None:
    before = live(world, wrong=5)
    with pytest.raises(ConfigurationError, match="holds records that this job has not published") as refused:
        world.publish("job")
    assert "publish=changed" in (refused.value.next_step or "")
    totals, large = world.publish("job", publish="changed")
    assert world.seen() == world.has("job")
    assert 0 < totals.corrections <= 3
    assert large.corrections == 5, "three that were missing, one that was wrong, and what takes that back"
    assert len(world.records("large")) == before["large"] + 5
    assert [sent.records for sent in world.publish("job", publish="changed")] == [0, 0]
    world.job.run(40 * HOUR)
    assert [sent.corrections for sent in world.publish("job")] == [0, 0]
    assert world.seen() == world.has("job")


def test_another_job_replays_anew(world: World) -> None:
    """The job before is not known to the new one: its records are in the topic."""
    world.publish("job")
    renamed = topology(60)
    renamed = renamed.with_sinks({name: f"{name}-2" for name in renamed.sink_topics})
    anew = Pipeline(world.directory / "anew", renamed, "anew", warehouse=world.warehouse.uri(""))
    anew.run(30 * HOUR)
    sinks = [replace(topic, archive=f"{topic.archive_name}-2") for topic in job_of(world.prefix).kafka_sinks]
    job = replace(job_of(world.prefix), name="anew", topology=anew.topology, kafka_sinks=tuple(sinks))
    before = len(world.records("large"))
    publish_to_kafka(job, world.warehouse, world.settings(publish="changed"))
    assert world.seen() == world.has("anew", "-2")
    assert before < len(world.records("large")) < 2 * before


def test_an_empty_topic_gets_all(world: World) -> None:
    assert [sent.corrections for sent in world.publish("job", publish="changed")] == [0, 0]
    assert world.seen() == world.has("job")


def test_records_that_were_rolled_back(world: World) -> None:
    world.publish("job")
    rollback(world.warehouse, "job", 1, now_ms=9)
    right = Pipeline(world.directory / "job", topology(50))
    right.run(30 * HOUR)
    with pytest.raises(ConfigurationError, match="rolled back by commit 3") as refused:
        world.publish("job")
    assert "publish=changed" in (refused.value.next_step or "")
    world.publish("job", publish="changed")
    assert world.seen() == world.has("job")
    right.run()
    world.publish("job")
    assert world.seen() == world.has("job")


def test_a_promotion_over_records_that_nobody_knows_any_more(world: World) -> None:
    world.publish("job")
    rollback(world.warehouse, "job", 1, now_ms=9)
    world.promote(allow_behind=True)
    world.publish("new", publish="changed")
    assert world.seen() == world.has("new")


def test_a_fork_that_was_dropped(world: World) -> None:
    """Its retractions cannot be read from the topic alone; of a table's stream nothing has to be."""
    world.publish("job")
    world.promote()
    world.publish("new")
    world.back()
    drop_fork(world.warehouse, "new", now_ms=9)
    totals, large = world.declared("job").kafka_sinks
    publish_to_kafka(
        replace(world.declared("job"), kafka_sinks=(totals,)), world.warehouse, world.settings(publish="changed")
    )
    assert world.seen_totals() == world.has("job")["totals"]
    with pytest.raises(ConfigurationError, match="records of the topic take others back"):
        publish_to_kafka(
            replace(world.declared("job"), kafka_sinks=(large,)), world.warehouse, world.settings(publish="changed")
        )


def test_somebody_writes_meanwhile(world: World) -> None:
    live(world)
    message = Message(b"x", b'{"events":1,"total":1}', 7)
    written = at("pass.topic-read", lambda: world.cluster.produce(f"{world.prefix}-totals", [message]))
    with written, pytest.raises(RetryableError, match="somebody has written to the topic meanwhile"):
        world.publish("job", publish="changed")
    world.publish("job", publish="changed")
    assert world.seen() == world.has("job")


def test_what_kafka_may_have_deleted_is_refused(world: World) -> None:
    live(world)
    name = f"{world.prefix}-large"
    world.cluster.delete_records(name, {0: 1})
    with pytest.raises(ConfigurationError, match="Kafka has deleted records of the topic, or may") as refused:
        world.publish("job", publish="changed")
    assert refused.value.place["topic"] == name


def test_what_cannot_be_decoded_is_named(world: World) -> None:
    world.cluster.produce(f"{world.prefix}-totals", [Message(b"k", b"{", 7, partition=2)])
    with pytest.raises(InputError, match="a value cannot be decoded") as refused:
        world.publish("job", publish="changed")
    assert (refused.value.place["partition"], refused.value.place["offset"]) == (2, 0)
