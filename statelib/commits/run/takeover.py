"""The first commit of a job that goes on where a live Kafka Streams application has stopped.

State and positions are the application's, and there are no outputs. It is a run with a plan and a commit, fenced as any
other; given again after it was stopped, it goes on with the same plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from statelib.commits.archives import open_archive
from statelib.commits.layout import CommitLog, Runs, run_id
from statelib.commits.run.planned_tasks import planned_tasks
from statelib.commits.run.sink_partitions import sink_partitions
from statelib.commits.sources.checks import source_topics
from statelib.commits.sources.unlisted import check_all_listed
from statelib.commits.topologies.settle import settle_topology
from statelib.documents.manifests import Commit, TaskPosition
from statelib.documents.places import place_of
from statelib.documents.plans import Plan, SourceRange, TakenOver
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError, CorruptedDataError, InputError
from statelib.records.batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from statelib.commits.job_definition import JobDefinition, SourceNode
    from statelib.documents.manifests import CommittedTask
    from statelib.documents.plans import PlannedTask
    from statelib.documents.topologies import TopologyDescription
    from statelib.settings.semantics import Semantics
    from statelib.storage import Storage
    from statelib.topics.archive import TopicArchive


@dataclass(frozen=True, slots=True)
class Reached:
    """How far an application has come.

    Attributes:
        application_id: The application's.
        offsets: The next offset of each of the job's sources but global ones, by topic and partition.
        times: The stream time that it has noted, by ``<topic>/<partition>`` of these; where it has noted none: nothing.
        changelogs: By store and partition, where its changelog ends.
    """

    application_id: str
    offsets: Mapping[str, Mapping[int, int]]
    times: Mapping[str, int]
    changelogs: Mapping[str, Mapping[int, int]]


def taken_over_by(warehouse: Storage, job: str, application_id: str) -> Commit | None:
    """The job's first commit, if it has one, and that took over from the application.

    Raises:
        ConfigurationError: The job has commits, and they did not begin there.
    """
    first = CommitLog(warehouse, job).read_if_present(1)
    if first is not None and (first.taken_over is None or first.taken_over.application_id != application_id):
        what = "the job has commits already, and only a job without any can take over from an application"
        raise ConfigurationError(what, job=job, next_step="give the job a new name")
    return first


def plan_taking_over(
    job: JobDefinition,
    warehouse: Storage,
    reached: Reached,
    *,
    now_ms: int,
    semantics: Semantics,
    describe: Callable[[Mapping[str, TopicArchive]], TopologyDescription],
) -> Plan:
    """The plan of the job's first commit. It is not stored yet (`statelib.commits.run.plan.settle_plan`).

    Args:
        job: The job.
        warehouse: Root of all durable data.
        reached: How far the application has come.
        now_ms: The wall clock, for the plan's ``created_at_ms``.
        semantics: See `Semantics`.
        describe: Describes the job's topology, given the archives of its sources.

    Raises:
        ConfigurationError: A source has no archive, or that does not go as far as the application has come; a
            changelog has other partitions than the job has tasks; or a sink's archive is somebody else's.
        InputError: An archive begins behind where the application stands.
    """
    check_all_listed(job, warehouse)
    archives = {topic: open_archive(warehouse, topic) for topic in job.topology.source_topics}
    for topic, offsets in reached.offsets.items():
        _check_reached(archives[topic], offsets)
    counts = job.topology.partitions({topic: archive.partitions for topic, archive in archives.items()})
    _check_changelogs(job, counts, reached)
    settle_topology(
        warehouse,
        job.name,
        job.topology.fingerprint,
        None,
        tasks=counts,
        describe=lambda: describe(archives),
        reset_stores=(),
        migrate_stores=(),
    )
    return Plan(
        job=job.name,
        run_id=run_id(1, 1),
        commit=1,
        fingerprint=job.topology.fingerprint,
        until_ms=None,
        semantics=semantics,
        sources=source_topics(archives),
        tasks=planned_tasks(job.topology, counts, partial(_position, reached)),
        sink_partitions=sink_partitions(job, warehouse, archives, None, (), None),
        created_at_ms=now_ms,
        taken_over=TakenOver(
            application_id=reached.application_id,
            changelogs={store: dict(ends) for store, ends in reached.changelogs.items()},
            times=dict(reached.times),
        ),
    )


def _check_changelogs(job: JobDefinition, tasks: Mapping[int, int], reached: Reached) -> None:
    """Makes sure that each task finds its share of each store: the partition of the changelog that has its number."""
    for sub in job.topology.sub_topologies:
        for store in sub.stores:
            found = reached.changelogs.get(store.name)
            if found is not None and sorted(found) != list(range(tasks[sub.index])):
                theirs, ours = counted(len(found), "partition"), counted(tasks[sub.index], "task")
                what = f"the changelog has {theirs}, and the job {ours} with the store"
                step = "give the repartition topic before it as many partitions as the application's has"
                raise ConfigurationError(what, job=job.name, store=store.name, next_step=step)


def _check_reached(archive: TopicArchive, offsets: Mapping[int, int]) -> None:
    """Makes sure that the job can go on from some offsets."""
    if sorted(offsets) != list(range(archive.partitions)):
        what = f"the topic has {counted(len(offsets), 'partition')} in Kafka, and {archive.partitions} in its archive"
        step = "archive the topic as it is now, under another name"
        raise ConfigurationError(what, topic=archive.topic, file=archive.uri, next_step=step)
    for partition, (begin, end) in archive.spans().items():
        offset = offsets[partition]
        place = {"topic": archive.topic, "partition": partition, "file": archive.uri}
        if end < offset:
            what = f"the archive ends at offset {end}, and the application has come to {offset}"
            raise ConfigurationError(what, **place, next_step="archive what is missing: hindstream archive")
        if offset < begin:
            what = f"the application has come to offset {offset}, and the archive begins at {begin}"
            step = "let the application read what Kafka still has, or begin the job anew from there"
            raise InputError(what, **place, next_step=step)


def _position(reached: Reached, source: SourceNode, partition: int) -> Iterator[SourceRange]:
    """Where a task begins; a global table is read anew from its topic's beginning, as by the application."""
    offset = None if source.is_global else reached.offsets[source.topic].get(partition)
    if offset is not None:
        yield SourceRange(topic=source.topic, partition=partition, start_offset=offset, end_offset=offset, records=0)


def begun_position(plan: Plan, planned: PlannedTask) -> TaskPosition:
    """Where a task of a job that takes over stands, but for the clocks of operators.

    Stream time is what the application would have it begin with (``StreamTask.initializeTaskTime``).

    Args:
        plan: See `plan_taking_over`.
        planned: The task.
    """
    noted = plan.taken_over.times if plan.taken_over is not None else {}
    offsets = {place_of(part.topic, part.partition): part.end_offset for part in planned.sources}
    times = {place: noted[place] for place in offsets if place in noted}
    return TaskPosition(
        task_id=planned.task_id,
        commit=plan.commit,
        fingerprint=plan.fingerprint,
        source_offsets=offsets,
        source_times=times,
        stream_time=max(times.values(), default=NO_TIMESTAMP),
    )


def commit_taken_over(warehouse: Storage, plan: Plan, tasks: Mapping[str, CommittedTask], *, now_ms: int) -> Commit:
    """Makes the commit of `plan_taking_over`.

    Args:
        warehouse: Root of all durable data.
        plan: The plan.
        tasks: What was made, by task.
        now_ms: The wall clock, for the commit's ``created_at_ms``.

    Raises:
        FencedError: Another run was quicker to commit.
    """
    new = Commit(
        job=plan.job,
        commit=plan.commit,
        run_id=plan.run_id,
        fingerprint=plan.fingerprint,
        until_ms=None,
        semantics=plan.semantics,
        sources=plan.sources,
        tasks=dict(tasks),
        sinks=(),
        created_at_ms=now_ms,
        taken_over=plan.taken_over,
    )
    return CommitLog(warehouse, plan.job).claim(new, "take-over")


def described_topology(warehouse: Storage, plan: Plan) -> TopologyDescription:
    """What a plan's topology is made of.

    Raises:
        CorruptedDataError: Its description is missing.
    """
    runs = Runs(warehouse, plan.job)
    described = runs.topology(plan.fingerprint)
    if described is None:
        file = warehouse.uri(runs.layout.topology(plan.fingerprint))
        raise CorruptedDataError("the description of the topology is missing", file=file, next_step="plan again")
    return described
