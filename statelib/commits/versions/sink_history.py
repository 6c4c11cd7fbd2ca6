"""Where the records of each sink lie, as of a commit.

A sink's history is a list of segments: offsets from one to another in a partition of a topic. Two histories that share
a segment have the same records there, which nobody need read to know it: a topic's records stay as they are until a
rollback takes them back, and a commit that has been taken back has no history.

The history of a fork begins with that of the commit that it stands on, and goes on in topics of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.commits.forks import ancestors, begins_empty, forked_from, holder_of
from statelib.commits.layout import Runs, fork_topic, late_topic, quarantine_topic
from statelib.commits.standing import standing_commit
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from statelib.documents.manifests import Commit
    from statelib.documents.plans import ForkedFrom
    from statelib.storage import Storage


@dataclass(frozen=True, slots=True)
class Segment:
    """Some records of a partition of a topic, at least one.

    Attributes:
        topic: The topic whose archive has them.
        partition: The partition.
        first_offset: Of the first record.
        end_offset: Behind the last one. A sink's offsets have no holes.
    """

    topic: str
    partition: int
    first_offset: int
    end_offset: int

    def __len__(self) -> int:
        """How many records it has."""
        return self.end_offset - self.first_offset


def sink_history(warehouse: Storage, job: str, commit: int | None = None) -> Mapping[str, tuple[Segment, ...]]:
    """The segments of each sink of a job at a commit, ordered by partition, in each in the order of the records.

    Topics for late and for quarantined records are sinks as well, changelogs are not. A sink is there from the run on
    that could have written to it; one without records has no segments. Records of a commit that has not been published
    yet are not yet in the archives. The sinks of a fork are under the names that the job at the beginning gives them.

    Args:
        warehouse: Root of all durable data.
        job: The job's name.
        commit: The commit; None: the newest.

    Raises:
        ConfigurationError: There is no such commit, or it has been rolled back since, or that which a fork stands on.
        CorruptedDataError: A document of the job is damaged.
    """
    _, history = _history(warehouse, job, commit)
    # What is behind one another in a partition has been put there in that order: the job that was forked comes first.
    return {name: tuple(sorted(history[name], key=lambda part: part.partition)) for name in sorted(history)}


def topics_aside(warehouse: Storage, job: str) -> frozenset[str]:
    """Topics of late and of quarantined records, as the job calls them and the jobs that it was forked from.

    They tell what was dropped, and are no results.

    Raises:
        CorruptedDataError: A document of the job is damaged.
    """
    names = ancestors(warehouse, job)
    return frozenset(topic for name in names for topic in (late_topic(name), quarantine_topic(name)))


def own_topics(warehouse: Storage, job: str) -> dict[str, str]:
    """By sink, the topic that the job itself writes, as of its newest commit; one that has not run yet knows of none.

    Raises:
        ConfigurationError: See `sink_history`.
        CorruptedDataError: A document of the job is damaged.
    """
    first, _ = _history(warehouse, job, None)
    return {_name_of(topic, job, first): topic for topic in _sink_offsets(warehouse, standing_commit(warehouse, job))}


def _history(warehouse: Storage, job: str, commit: int | None) -> tuple[str, dict[str, list[Segment]]]:
    """The job at the beginning, a fork of which the job is; and the segments by what that one calls its sinks."""
    made = standing_commit(warehouse, job, commit)
    base, offsets = forked_from(warehouse, job), _sink_offsets(warehouse, made)
    first, history = (_begun_as(warehouse, job, offsets), {}) if base is None else _up_to_fork(warehouse, job, base)
    for topic, ends in offsets.items():
        history.setdefault(_name_of(topic, job, first), []).extend(_own(topic, ends))
    return first, history


def _begun_as(warehouse: Storage, job: str, topics: Iterable[str]) -> str:
    """The job at the beginning of one that goes on from no commit: itself, unless it is a fork of commit 0."""
    is_fork = any(topic.endswith(fork_topic("", job)) for topic in topics) and begins_empty(warehouse, job)
    holder = holder_of(warehouse, job) if is_fork else None
    if holder is None:
        return job
    while (base := forked_from(warehouse, holder)) is not None:
        holder = base.job
    return holder


def _up_to_fork(warehouse: Storage, job: str, base: ForkedFrom) -> tuple[str, dict[str, list[Segment]]]:
    try:
        return _history(warehouse, base.job, base.commit)
    except ConfigurationError as error:
        what = f"the records before the fork are not to be had: {error.what}"
        step = "look at what it has written itself: hindstream topics"
        raise ConfigurationError(what, **{"fork": job, **error.place}, next_step=step) from error


def _name_of(topic: str, job: str, first: str) -> str:
    """What the job at the beginning calls a sink."""
    if job == first:
        return topic
    of_job = {late_topic(job): late_topic(first), quarantine_topic(job): quarantine_topic(first)}
    return of_job.get(topic, topic.removesuffix(fork_topic("", job)))


def _own(topic: str, ends: Mapping[int, int]) -> Iterator[Segment]:
    """What a job has written to a topic of its own."""
    for partition, end in sorted(ends.items()):
        if end:
            yield Segment(topic, partition, 0, end)


def _sink_offsets(warehouse: Storage, made: Commit) -> dict[str, dict[int, int]]:
    """Where the sinks end; stores that the job had once have left their changelogs, known by Kafka's name for them."""
    topology = Runs(warehouse, made.job).topology(made.fingerprint)
    nodes = topology.nodes if topology is not None else ()
    declared = {node.settings.get("topic") for node in nodes if node.settings.get("node") == "sink"}
    return {
        topic: ends
        for topic, ends in made.sink_offsets().items()
        if topic in declared or not (topic.startswith(f"{made.job}-") and topic.endswith("-changelog"))
    }
