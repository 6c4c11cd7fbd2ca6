"""Turns a plan into descriptions of tasks, stage by stage: a stage reads what those before have repartitioned."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from statelib.commits import CommitLog
from statelib.commits.archives import open_archive
from statelib.errors import ConfigurationError
from statelib.task import TaskSettings, TaskWork, topic_types

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from statelib.config import Settings
    from statelib.job import Job
    from statelib.manifests import Plan, RepartitionFile
    from statelib.storage import Storage
    from statelib.topology import SubTopology


class TaskWorks:
    """Makes the `TaskWork` of each sub-topology of a planned run.

    Raises:
        ConfigurationError: The plan is of another topology than the job's, or an operator cannot work on what the
            sources hold.
    """

    def __init__(self, job: Job, plan: Plan, warehouse: Storage, settings: Settings) -> None:
        if plan.fingerprint != job.topology.fingerprint:
            raise ConfigurationError(
                "the run was planned for another topology than the job has now",
                job=job.name,
                run=plan.run_id,
                next_step="plan again, or go back to the topology of the plan",
            )
        self._plan = plan
        self._settings = TaskSettings(
            warehouse=warehouse.uri(""),
            state_dir=str(Path(settings.state_dir).absolute()),
            storage_options=settings.storage_options,
            memory_budget_bytes=settings.memory_budget_bytes,
            batch_records=settings.batch_records,
            semantics=settings.semantics,
            on_bad_record=settings.on_bad_record,
        )
        self._source_versions = {source.topic: source.delta_version for source in plan.sources}
        source_partitions = {source.topic: source.partitions for source in plan.sources}
        self._partitions = {**plan.sink_partitions, **job.topology.repartition_partitions(source_partitions)}
        self._types = sink_types(job, plan, warehouse, settings)
        before = CommitLog(warehouse, job.name).read(plan.commit - 1) if plan.commit > 1 else None
        self._restore = before.tasks if before else {}

    def of(self, sub: SubTopology, repartitions: Iterable[RepartitionFile]) -> list[TaskWork]:
        """The tasks of ``sub``; ``repartitions`` are all files that earlier stages of this run have written."""
        files = [file for file in repartitions if file.topic in sub.repartition_sources]
        return [
            TaskWork(
                job=self._plan.job,
                run_id=self._plan.run_id,
                commit=self._plan.commit,
                fingerprint=self._plan.fingerprint,
                sub_topology=sub,
                planned=planned,
                ordinal=ordinal,
                source_versions=self._source_versions,
                repartitions=tuple(file for file in files if file.partition == planned.partition),
                repartition_types={topic: self._types[topic] for topic in sub.repartition_sources},
                partitions=self._partitions,
                restore=self._restore.get(planned.task_id),
                settings=self._settings,
            )
            for ordinal, planned in enumerate(self._plan.tasks)
            if planned.sub_topology == sub.index
        ]


def sink_types(job: Job, plan: Plan, warehouse: Storage, settings: Settings) -> Mapping[str, pa.Schema]:
    """The schema (``key`` and ``value``) of each topic that the job writes, repartition topics included."""
    readers = {
        source.topic: open_archive(warehouse, source.topic, source.delta_version).reader(0, 0, 0)
        for source in plan.sources
    }
    return topic_types(job.topology, readers, settings.semantics)
