"""Runs the tasks of one sub-topology as one Spark stage."""

from __future__ import annotations

import socket
import time
from functools import partial
from typing import TYPE_CHECKING

from spark_jobs.spark_tasks import Work, run_works
from statelib.manifests import TaskOutcome
from statelib.task import run_task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from statelib.task import TaskWork


def run_stage(spark: SparkSession, works: Sequence[TaskWork], *, name: str) -> list[TaskOutcome]:
    """Runs every task of ``works`` and waits for all of them.

    Args:
        spark: The session.
        works: The tasks; each becomes one Spark task, those with most records first.
        name: For Spark's and our own progress.

    Returns:
        What the winning attempts made, in the order of ``works``.

    Raises:
        HindstreamError: See `spark_jobs.spark_tasks.run_works`.
    """
    largest_first = sorted(works, key=_records, reverse=True)
    results = run_works(spark, list(map(work_on, largest_first)), name=name)
    outcomes = {outcome.task_id: outcome for outcome in map(TaskOutcome.model_validate_json, results)}
    return [outcomes[work.planned.task_id] for work in works]


def work_on(work: TaskWork) -> Work:
    """The replay of one task's slice; makes a `TaskOutcome` as JSON."""
    return Work(work.job, work.run_id, work.planned.task_id, work.settings.state_dir, partial(_replayed, work))


def _replayed(work: TaskWork, attempt: str) -> bytes:
    outcome = run_task(work, attempt=attempt, clock=time.perf_counter, host=socket.gethostname())
    return outcome.model_dump_json().encode()


def _records(work: TaskWork) -> int:
    return sum(s.records for s in work.planned.sources) + sum(file.rows for file in work.repartitions)
