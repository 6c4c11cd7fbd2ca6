"""Replays a run on Spark: one stage per sub-topology, and on a cluster each task on the host that has its state."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING

from hindstream.spark.phases.spark_stage import run_circle_stage, run_stage
from hindstream.spark.placement import standbys
from hindstream.spark.placement.round import elsewhere, place_run, restores
from hindstream.spark.session.session import spark_context
from hindstream.spark.tasks.works import carry_user_code
from statelib.errors.counted import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.documents.manifests import TaskOutcome
    from statelib.documents.plans import Plan
    from statelib.job.job import Job
    from statelib.settings.settings import Settings
    from statelib.storage import Storage
    from statelib.task import Stages, TaskWork
    from statelib.topology import SubTopology

_log = logging.getLogger(__name__)


def replay_on_spark(job: Job, plan: Plan, warehouse: Storage, settings: Settings, stages: Stages) -> list[TaskOutcome]:
    """Runs all tasks that are left.

    Raises:
        HindstreamError: See `hindstream.spark.tasks.works.run_works`.
    """
    context = spark_context(settings)
    carry_user_code()
    with ExitStack() as copies:
        copies.enter_context(standbys.held())
        placement = place_run(context, job, plan, warehouse, settings)
        if not restores(placement, stages.restored):
            copies.close()  # nothing is fetched: copies may be made beside the tasks

        def run(stage: Sequence[SubTopology], works: list[TaskWork]) -> list[TaskOutcome]:
            name = f"{job.name}, {stages.name_of(stage)}"
            if stage[0].returning:
                return run_circle_stage(context, works, name=name)
            return run_stage(context, works, name=name, placement=placement)

        outcomes = stages.outcomes(run)
    if astray := elsewhere(placement, [task for task in outcomes if task.task_id not in stages.done_before]):
        _log.warning("%s: Spark has run %s on other hosts than planned", job.name, counted(len(astray), "task"))
    return outcomes
