"""Second phase: checks the sources, replays the planned slice, on Spark or in this process, and stages the result."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from hindstream.lineage.reported import reported
from hindstream.runs import find_replay, now_ms, open_warehouse
from hindstream.spark.phases.command import phase_main
from hindstream.spark.phases.examined import failure
from hindstream.spark.phases.replay_here import replay_here
from hindstream.spark.phases.source_checks import check_sources
from hindstream.spark.phases.task_work import stages_of
from statelib.commits import Runs, fenced, read_staged, stage
from statelib.documents.manifests import Staged
from statelib.errors.counted import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.job.job import Job
    from statelib.settings.settings import Settings

_log = logging.getLogger(__name__)


@reported("replay")
def run(job: Job, settings: Settings, run_id: str | None = None) -> Staged:
    """Replays a run: the tasks that no earlier try has done. One that has staged its result already is left as it is.

    Args:
        job: The job.
        settings: See `Settings`.
        run_id: The run; None: the newest.

    Returns:
        The result that stands, stored as the run's ``staged.json``.

    Raises:
        InputError: Records or files of the sources cannot be used; names task, topic, partition and offset. Or a source
            is not as the job expects: nothing was replayed, and the run is in quarantine.
        FencedError: Another driver has made the commit before this one was through.
        HindstreamError: See `hindstream.spark.tasks.works.run_works` and `statelib.commits.run.stage`.
    """
    warehouse = open_warehouse(settings)
    plan = find_replay(warehouse, job.name, run_id)
    if (standing := read_staged(warehouse, plan)) is not None:
        _log.info("%s: run %s has been replayed already", job.name, plan.run_id)
        return standing
    if (audit := Runs(warehouse, job.name).audit(plan.run_id)) is not None and not audit.success:
        raise failure(job, settings, warehouse, plan, audit)
    stages = stages_of(job, plan, warehouse, settings)
    with fenced(warehouse, job.name, plan.commit):
        source_checks = check_sources(job, plan, warehouse, settings)
        started, began_at_ms = time.perf_counter(), now_ms()
        if before := len(stages.done_before):
            tasks = counted(len(plan.tasks), "task")
            _log.info("%s: run %s: %d of %s were done before", job.name, plan.run_id, before, tasks)
        if settings.engine == "local" or not stages.is_anything_left:
            outcomes = replay_here(job, stages)
        else:
            from hindstream.spark.phases.replay_on_spark import replay_on_spark  # noqa: PLC0415 - Spark: half a second

            outcomes = replay_on_spark(job, plan, warehouse, settings, stages)
    seconds = time.perf_counter() - started
    _log.info("%s: run %s replayed %s in %.1f s", job.name, plan.run_id, counted(plan.records, "record"), seconds)
    staged = Staged(
        run_id=plan.run_id,
        tasks=tuple(outcomes),
        seconds=seconds,
        began_at_ms=began_at_ms,
        done_before=before,
        source_checks=source_checks,
    )
    if staged.fill is not None and plan.evolution is not None:
        what, cost = ", ".join(plan.evolution.filled), staged.fill
        replayed = counted(cost.records, "record")
        _log.info("%s: %s of history replayed to fill %s, in %.1f s of tasks", job.name, replayed, what, cost.seconds)
    return stage(warehouse, plan, staged)


def main(argv: Sequence[str] | None = None) -> None:
    """The command line of ``spark_jobs/replay.py``: ``--job FILE.py:NAME [--run RUN_ID] [--SETTING VALUE ...]``."""
    phase_main(run, argv, description="Replays the planned slice and stages the result.")
