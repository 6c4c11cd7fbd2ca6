"""The tasks of a plan: each partition of each sub-topology, and what it takes up of the sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.assignment.model import TaskId
from statelib.documents.plans import PlannedTask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from statelib.commits.job_definition import SourceNode, Topology
    from statelib.documents.plans import SourceRange


def planned_tasks(
    topology: Topology, tasks: Mapping[int, int], taken_up: Callable[[SourceNode, int], Iterable[SourceRange]]
) -> tuple[PlannedTask, ...]:
    """Every task of a job, those without records of sources too: a repartition topic may feed them.

    Args:
        topology: The job's.
        tasks: The number of tasks of each sub-topology, by its index.
        taken_up: What a task takes up of a source, given the task's partition.
    """
    return tuple(
        PlannedTask(
            task_id=str(TaskId(sub.index, partition)),
            sub_topology=sub.index,
            partition=partition,
            sources=tuple(
                part for source in sub.all_sources if not source.internal for part in taken_up(source, partition)
            ),
        )
        for sub in topology.sub_topologies
        for partition in range(tasks[sub.index])
    )
