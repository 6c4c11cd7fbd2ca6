"""How many partitions the topics have that a job writes: sinks, changelogs, those for what could not be used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.commits.archives import open_archive_if_present
from statelib.commits.forks import forked_from
from statelib.commits.layout import Runs, changelog_topic, late_topic, quarantine_topic, renamed_changelogs
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from statelib.commits.job_definition import JobDefinition, SinkNode
    from statelib.documents.manifests import Commit
    from statelib.documents.topologies import Evolution
    from statelib.storage import Storage
    from statelib.topics.archive import TopicArchive


def sink_partitions(
    job: JobDefinition,
    warehouse: Storage,
    archives: Mapping[str, TopicArchive],
    head: Commit | None,
    changelogs: Collection[str],
    evolution: Evolution | None,
) -> dict[str, int]:
    """Partitions of each topic that the job writes: as declared, else as in its archive, else as many as its tasks.

    The topics for quarantined and for late records have one for each task of the job. The archive of a sink must be the
    job's own from the beginning, because a job writes its offsets from 0. Later they are what they were for the head:
    no archive of a sink that the head's run had need be opened.

    Raises:
        ConfigurationError: A sink's archive is somebody else's or has other partitions; there is no store of that name,
            or it has been written to without a changelog.
    """
    counts = job.topology.partitions({topic: archive.partitions for topic, archive in archives.items()})
    partitions = dict.fromkeys((quarantine_topic(job.name), late_topic(job.name)), sum(counts.values()))
    before = Runs(warehouse, job.name).plan(head.run_id) if head is not None else None
    if before is not None:
        renamed = renamed_changelogs(job.name, evolution.migrations if evolution else ())
        partitions |= {renamed.get(topic, topic): count for topic, count in before.sink_partitions.items()}
    begun = _stores_begun(warehouse, head, evolution)
    is_fork = bool(changelogs) and forked_from(warehouse, job.name) is not None
    partitions |= _changelog_partitions(job, counts, partitions, begun, changelogs, is_fork=is_fork)
    for sub in job.topology.sub_topologies:
        for sink in sub.all_sinks:
            if sink.internal:
                continue
            known = partitions.get(sink.topic)
            if known is not None:
                _check_declared(job, sink, known)
                continue
            archive = open_archive_if_present(warehouse, sink.topic)
            if archive is not None and any(archive.end_offsets().values()):
                as_fork = f"; or run the fork with its sinks renamed: --fork {job.name}"
                or_renamed = as_fork if forked_from(warehouse, job.name) is not None else ""
                raise ConfigurationError(
                    "the sink's archive already holds records, and the job has written none",
                    job=job.name,
                    topic=sink.topic,
                    next_step=f"write to another topic, or move that archive away{or_renamed}",
                )
            if archive is not None:
                _check_declared(job, sink, archive.partitions)
            existing = archive.partitions if archive else None
            partitions[sink.topic] = sink.partitions or existing or counts[sub.index]
            _check_placed(job, sink, partitions[sink.topic], counts[sub.index])
    return partitions


def _stores_begun(warehouse: Storage, head: Commit | None, evolution: Evolution | None) -> set[str] | None:
    """The stores that may hold something before the run; None: any store may."""
    if head is None:
        return set()
    before = None if evolution is None else Runs(warehouse, head.job).topology(evolution.fingerprint)
    if evolution is None or before is None:
        return None
    dropped = {family for families in evolution.dropped_families.values() for family in families}
    return {store.name for store in before.stores if not dropped.issuperset(store.families)} | set(evolution.filled)


def _changelog_partitions(
    job: JobDefinition,
    tasks: Mapping[int, int],
    known: Mapping[str, int],
    begun: Collection[str] | None,
    changelogs: Collection[str],
    *,
    is_fork: bool,
) -> dict[str, int]:
    """Partitions of the changelogs that are wanted, beside those that are ``known``: one a task.

    Args:
        job: The job.
        tasks: The number of tasks of each sub-topology.
        known: Partitions of the topics that the head's run had.
        begun: The stores that may hold something already; None: any.
        changelogs: Names of stores.
        is_fork: Whether the job is a fork, for the error.
    """
    stores = {store.name: tasks[sub.index] for sub in job.topology.sub_topologies for store in sub.stores}
    partitions: dict[str, int] = {}
    for name in changelogs:
        topic = changelog_topic(job.name, name)
        if name not in stores:
            step = f"name one of: {', '.join(stores)}" if stores else "leave it out"
            raise ConfigurationError(
                "there is no such store to keep a changelog of", job=job.name, store=name, next_step=step
            )
        if topic not in known and (begun is None or name in begun):
            raise ConfigurationError(
                "a changelog begins with its store, which has been written to already",
                job=job.name,
                store=name,
                next_step="leave it out of `changelogs`: a fork keeps changelogs of stores that are new in it only"
                if is_fork
                else "leave it out of `changelogs`, or give the job a new name: it then replays all",
            )
        partitions[topic] = stores[name]
    return partitions


def _check_placed(job: JobDefinition, sink: SinkNode, partitions: int, chosen_among: int) -> None:
    if sink.is_placed and partitions != chosen_among:
        raise ConfigurationError(
            f"a partitioner chooses among {counted(chosen_among, 'partition')}, the sink's archive has {partitions}",
            job=job.name,
            topic=sink.topic,
            next_step=f"declare them: Produced.with_partitions({partitions})",
        )


def _check_declared(job: JobDefinition, sink: SinkNode, partitions: int) -> None:
    if sink.partitions not in {None, partitions}:
        raise ConfigurationError(
            f"the sink is declared with {counted(sink.partitions, 'partition')}, its archive has {partitions}",
            job=job.name,
            topic=sink.topic,
            next_step=f"declare {counted(partitions, 'partition')}, or write to another topic",
        )
