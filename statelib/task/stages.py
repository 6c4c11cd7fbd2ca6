"""Turns a plan into work: one stage a sub-topology, each fed by the repartition files of those before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from statelib.commits.archives import open_archive
from statelib.commits.layout import late_topic, quarantine_topic
from statelib.commits.run.kept import KeptOutcomes, made_from
from statelib.commits.run.planned_tasks import planned_tasks
from statelib.commits.topologies.past_plans import past_plans
from statelib.documents.manifests import Staged
from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.settings.max_future import NEVER_MS
from statelib.storage import Storage
from statelib.task.circle import run_circle
from statelib.task.run import run_task
from statelib.task.type_inference import topic_types
from statelib.task.work import SourceFiles, TaskWork
from statelib.topics.future_records import latest_ms as latest_ms_of
from statelib.topology.leading import path_to

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from statelib.commits.job_definition import SourceNode
    from statelib.documents.manifests import Commit, RepartitionFile, TaskOutcome
    from statelib.documents.plans import Plan, PlannedTask, SourceRange
    from statelib.task.observers import NodeSeconds
    from statelib.task.work import TaskSettings
    from statelib.topics.archive import TopicArchive
    from statelib.topics.files import ArchiveFile
    from statelib.topology import Source, SubTopology, Topology


RunStage = Callable[[Sequence["SubTopology"], list["TaskWork"]], Iterable["TaskOutcome"]]
"""Does the tasks of a stage: of one sub-topology, or of those of a circle."""


class Stages:
    """The work of one run.

    Args:
        topology: The job's topology.
        plan: The run's plan.
        previous: The commit that the run continues from; None: the run is the job's first.
        warehouse: Root of all durable data.
        settings: What is the same for all tasks.
        code: What the outcome of each task is kept with as it ends, so that it counts for this code alone; None:
            outcomes are not kept.

    Raises:
        ConfigurationError: The plan is of another topology.
    """

    def __init__(
        self,
        topology: Topology,
        plan: Plan,
        previous: Commit | None,
        warehouse: Storage,
        settings: TaskSettings,
        *,
        code: str | None = None,
    ) -> None:
        if plan.fingerprint != topology.fingerprint:
            raise ConfigurationError(
                "the run was planned for another topology than the job has now",
                job=plan.job,
                run=plan.run_id,
                next_step="plan again, or go back to the topology of the plan",
            )
        _check_circles(topology, plan)
        self._topology = topology
        self._plan = plan
        self._previous = previous
        self._warehouse = warehouse
        self._settings = settings
        deciding = (
            settings.semantics,
            settings.on_bad_record,
            settings.on_processing_error,
            settings.on_future_record,
            settings.on_late_record,
        )
        self._kept_as = None if code is None else made_from(plan, [code, *deciding])

    @property
    def sub_topologies(self) -> tuple[SubTopology, ...]:
        """The stages, in the order in which they have to run."""
        return self._topology.sub_topologies

    def name_of(self, stage: Sequence[SubTopology]) -> str:
        """For whoever looks on: which one it is, of how many."""
        number = next(at for at, one in enumerate(self._topology.stages) if one[0].index == stage[0].index)
        return f"stage {number + 1} of {len(self._topology.stages)}"

    @property
    def restored(self) -> list[str]:
        """The tasks that begin with state of the commit before."""
        return [task_id for task_id, task in self._previous.tasks.items() if task.state.files] if self._previous else []

    @cached_property
    def done_before(self) -> dict[str, TaskOutcome]:
        """By task, what earlier tries at the run have made."""
        return {} if (kept := self._kept) is None else kept.read()

    @property
    def is_anything_left(self) -> bool:
        """Whether a task is still to be done."""
        return len(self.done_before) < len(self._plan.tasks)

    @property
    def _kept(self) -> KeptOutcomes | None:
        if self._kept_as is None:
            return None
        return KeptOutcomes(self._warehouse, self._plan.job, self._plan.run_id, self._kept_as)

    def outcomes(self, run_stage: RunStage) -> list[TaskOutcome]:
        """What all tasks of all stages make, or have made before.

        Args:
            run_stage: Does the tasks of a stage that are left, all or none of them; those of a circle together.

        Returns:
            One for each task, in the order of the plan.

        Raises:
            HindstreamError: What ``run_stage`` has raised. If data is damaged, no earlier outcome is used again.
        """
        done: list[TaskOutcome] = []
        for stage in self._topology.stages:
            works = [work for sub in stage for work in self.works(sub, done)]
            left = [work for work in works if work.planned.task_id not in self.done_before]
            if stage[0].returning and left:
                left = works
            try:
                made = {outcome.task_id: outcome for outcome in run_stage(stage, left)}
            except CorruptedDataError:
                if self._kept is not None:
                    self._kept.forget()
                raise
            done += [(self.done_before | made)[work.planned.task_id] for work in works]
        return done

    def works(self, sub_topology: SubTopology, done: Sequence[TaskOutcome]) -> list[TaskWork]:
        """The tasks of one stage.

        Args:
            sub_topology: The stage.
            done: Outcomes of all tasks of the stages before it.
        """
        plan = self._plan
        restore = self._previous.tasks if self._previous else {}
        written = [file for outcome in done for file in outcome.repartitions]
        return [
            replace(
                self._work(sub_topology, planned, ordinal, plan, written),
                restore=restore.get(planned.task_id),
                end_of_input=plan.end_of_input,
                evolution=plan.evolution,
                sample_keys=plan.sample_keys,
                history=self._history_of(planned, ordinal, done),
            )
            for ordinal, planned in enumerate(plan.tasks)
            if planned.sub_topology == sub_topology.index
        ]

    def _work(
        self,
        sub_topology: SubTopology,
        planned: PlannedTask,
        ordinal: int,
        of: Plan,
        written: Iterable[RepartitionFile],
    ) -> TaskWork:
        """A task that takes up the slice of a plan, and continues from nothing."""
        wanted, plan = set(sub_topology.repartition_sources), self._plan
        return TaskWork(
            job=plan.job,
            run_id=plan.run_id,
            commit=plan.commit,
            fingerprint=plan.fingerprint,
            sub_topology=sub_topology,
            planned=planned,
            ordinal=ordinal,
            leeway=of.leeway,
            source_files=self._source_files(sub_topology, planned, of),
            repartitions=tuple(
                file for file in written if file.topic in wanted and file.partition == planned.partition
            ),
            repartition_types={topic: self.types[topic] for topic in sorted(wanted)},
            partitions=self._partitions,
            restore=None,
            settings=self._settings,
            kept_as=self._kept_as,
        )

    def _history_of(self, planned: PlannedTask, ordinal: int, done: Sequence[TaskOutcome]) -> tuple[TaskWork, ...]:
        """What a task replays before its slice, so that stores can be filled."""
        leading = self._leading.get(planned.sub_topology)
        if leading is None:
            return ()
        replayed = [outcome.history.repartitions for outcome in done if outcome.history is not None]
        return tuple(
            self._work(
                leading,
                past.tasks[ordinal],  # in the same order as those of the plan
                ordinal,
                past,
                [file for files in replayed for file in files[number]],
            )
            for number, past in enumerate(self._past)
        )

    @cached_property
    def _leading(self) -> dict[int, SubTopology]:
        """What leads to the stores that are filled, by the index of the sub-topology."""
        filled = self._plan.evolution.filled if self._plan.evolution is not None else ()
        return {sub.index: sub for sub in path_to(self._topology, stores=filled)} if filled else {}

    @cached_property
    def _past(self) -> list[Plan]:
        """The plans of the job's history, with the tasks of the topology as it is now."""
        counts = self._topology.partitions({source.topic: source.partitions for source in self._plan.sources})
        past = past_plans(self._warehouse, self._plan.job, self._plan.commit - 1)
        return [
            plan.model_copy(update={"tasks": planned_tasks(self._topology, counts, partial(_taken_up, plan))})
            for plan in past
        ]

    @cached_property
    def types(self) -> dict[str, pa.Schema]:
        """The schema (fields ``key`` and ``value``) of each topic that the run writes, repartition topics included."""
        readers = {topic: archive.reader(0, 0, 0) for topic, archive in self._archives.items()}
        return topic_types(self._topology, readers, self._settings.semantics)

    @cached_property
    def _archives(self) -> dict[str, TopicArchive]:
        """The planned version of each source, read with the planned types."""
        return {
            s.topic: open_archive(self._warehouse, s.topic, s.delta_version).reading_as(s.delta_schema)
            for s in self._plan.sources
        }

    def _source_files(self, sub_topology: SubTopology, planned: PlannedTask, of: Plan) -> dict[str, SourceFiles]:
        files: dict[str, dict[int, tuple[ArchiveFile, ...]]] = {}
        for part in planned.sources:
            found = self._archives[part.topic].files(part.partition, part.start_offset, part.end_offset)
            files.setdefault(part.topic, {})[part.partition] = tuple(found)
        sources = [source for source in sub_topology.all_sources if not source.internal]
        return {
            source.topic: SourceFiles(
                self._archives[source.topic].schema,
                self._archives[source.topic].table_schema,
                by_partition := files.get(source.topic, {}),
                self._latest_ms(source, by_partition, of),
            )
            for source in sorted(sources, key=lambda source: source.topic)
        }

    def _latest_ms(
        self, source: Source, by_partition: Mapping[int, Sequence[ArchiveFile]], of: Plan
    ) -> dict[int, tuple[int, ...]]:
        """See `SourceFiles.latest_ms`: of partitions of which the files may hold records from the future."""
        if (max_future := of.max_future) is None:
            return {}
        archive, planned_at_ms = self._archives[source.topic], of.created_at_ms
        latest_ms = {
            partition: tuple(latest_ms_of(max_future, archive, file, planned_at_ms) for file in files)
            for partition, files in by_partition.items()
        }
        # Where times are extracted, the log knows nothing of them.
        extracts = source.consumed.timestamp_extractor.mapper is not None
        return {
            partition: latest
            for partition, latest in latest_ms.items()
            if extracts
            or any(
                (NEVER_MS if file.max_timestamp_ms is None else file.max_timestamp_ms) > bound
                for file, bound in zip(by_partition[partition], latest, strict=True)
            )
        }

    @cached_property
    def _partitions(self) -> dict[str, int]:
        of_sources = {source.topic: source.partitions for source in self._plan.sources}
        repartitions = self._topology.repartition_partitions(of_sources)
        job, tasks = self._plan.job, len(self._plan.tasks)
        aside = {quarantine_topic(job): tasks, late_topic(job): tasks}
        return {**aside, **self._plan.sink_partitions, **repartitions}


def _taken_up(plan: Plan, source: SourceNode, partition: int) -> Iterator[SourceRange]:
    """What a task takes up of a source where the slice is that of a plan, maybe of another topology."""
    ranges = {(part.topic, part.partition): part for task in plan.tasks for part in task.sources}
    for (topic, number), part in sorted(ranges.items()):
        if topic == source.topic and (source.is_global or number == partition):
            yield part


def replay_here(
    stages: Stages,
    plan: Plan,
    *,
    attempt: str,
    clock: Callable[[], float],
    spent: NodeSeconds | None = None,
) -> Staged:
    """Runs every task in this process, one after the other: for notebooks and tests, and where there is no cluster.

    Args:
        stages: The work.
        plan: The run's plan.
        attempt: Unique among all attempts at this run: letters, digits, ``-``, ``_``.
        clock: Seconds, for the figures of phases only.
        spent: See `run_task`.
    """
    began = clock()

    def run_stage(stage: Sequence[SubTopology], works: list[TaskWork]) -> list[TaskOutcome]:
        if stage[0].returning:
            made = run_circle(works, attempt=attempt, clock=clock)
        else:
            made = [run_task(work, attempt=attempt, clock=clock, spent=spent) for work in works]
        return [kept(work, outcome) for work, outcome in zip(works, made, strict=True)]

    tasks = stages.outcomes(run_stage)
    return Staged(run_id=plan.run_id, tasks=tuple(tasks), seconds=clock() - began, done_before=len(stages.done_before))


def _check_circles(topology: Topology, plan: Plan) -> None:
    """Refuses what cannot be done where records come back: see `statelib.task.circle`.

    Raises:
        ConfigurationError: The run is one of those.
    """
    returning = sorted(topic for stage in topology.stages for topic in stage[0].returning)
    refused = {
        "run that ends the input": plan.end_of_input == "seal",
        "repair that lets late records in": plan.leeway is not None,
    }
    for what, is_asked_for in refused.items():
        if returning and is_asked_for:
            raise ConfigurationError(
                f"there is no {what} where repartition topics form a circle: {', '.join(returning)}",
                job=plan.job,
                next_step="leave the option out, or break the circle with a copy:"
                " table.to_stream().repartition().to_table()",
            )
    for store in plan.evolution.filled if plan.evolution is not None else ():
        topics = {topic for sub in path_to(topology, stores=[store]) for topic in sub.returning}
        if topics:
            raise ConfigurationError(
                "the store lies in or behind repartition topics that form a circle, so it is not filled from history:"
                f" {', '.join(sorted(topics))}",
                job=plan.job,
                store=store,
                next_step="give the job a new name: it then replays from the beginning; or let the store begin empty:"
                " leave it out of fill_stores, and name it in reset_stores if it has changed",
            )


def kept(work: TaskWork, outcome: TaskOutcome) -> TaskOutcome:
    """Keeps what a task has made, so that no later try at the run does it again; gives the outcome that counts."""
    if work.kept_as is None:
        return outcome
    storage = Storage(work.settings.warehouse, work.settings.storage_options)
    return KeptOutcomes(storage, work.job, work.run_id, work.kept_as).keep(outcome)
