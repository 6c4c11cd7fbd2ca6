"""Runs the tasks of one sub-topology as one Spark stage, those of a circle as one Spark task."""

from __future__ import annotations

import json
import socket
import time
import uuid
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from hindstream.runs import now_ms
from hindstream.spark.tasks.told import tell
from hindstream.spark.tasks.works import Work, run_works
from statelib.documents.manifests import TaskOutcome
from statelib.placement.process import process_id
from statelib.task import kept, run_circle, run_task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark import SparkContext

    from statelib.placement.documents import Placement
    from statelib.task import TaskWork


def run_stage(
    context: SparkContext, works: Sequence[TaskWork], *, name: str, placement: Placement | None = None
) -> list[TaskOutcome]:
    """Runs every task of ``works`` and waits for all of them.

    Args:
        context: Spark's.
        works: The tasks; each becomes one Spark task, those with most records first.
        name: For Spark's and our own progress.
        placement: Where each is to run; None: anywhere. One that Spark runs elsewhere is as right, and may be slower.

    Returns:
        What the winning attempts made, in the order of ``works``.

    Raises:
        HindstreamError: See `hindstream.spark.tasks.works.run_works`.
    """
    largest_first = sorted(works, key=attrgetter("records"), reverse=True)
    executors = {task_id: host.executors for task_id, host in placement.owners().items()} if placement else {}
    doing = [work_on(work, on_cluster=placement is not None) for work in largest_first]
    results = run_works(context, doing, name=name, executors=executors, records=sum(work.records for work in works))
    outcomes = {outcome.task_id: outcome for outcome in map(TaskOutcome.model_validate_json, results)}
    return [outcomes[work.planned.task_id] for work in works]


def run_circle_stage(context: SparkContext, works: Sequence[TaskWork], *, name: str) -> list[TaskOutcome]:
    """Runs the tasks of a circle together, in one Spark task. Args, result and errors as of `run_stage`."""
    if not works:
        return []
    first = works[0]
    do = partial(_circle_replayed, tuple(works))
    work = Work(first.job, first.run_id, first.planned.task_id, first.settings.state_dir, do)
    (made,) = run_works(context, [work], name=name, records=sum(work.records for work in works))
    return [TaskOutcome.model_validate(outcome) for outcome in json.loads(made)]


def work_on(work: TaskWork, *, on_cluster: bool = False) -> Work:
    """The replay of one task's slice; makes a `TaskOutcome` as JSON.

    Args:
        work: The task.
        on_cluster: Whether the outcome says by its process id which host it was.
    """
    do = partial(_replayed, work, on_cluster=on_cluster)
    return Work(work.job, work.run_id, work.planned.task_id, work.settings.state_dir, do)


def _circle_replayed(works: Sequence[TaskWork], attempt: str) -> bytes:
    began_at_ms = now_ms()
    made = run_circle(works, attempt=attempt, clock=time.perf_counter, host=socket.gethostname(), told=tell)
    outcomes = [
        kept(work, outcome.model_copy(update={"began_at_ms": began_at_ms}))
        for work, outcome in zip(works, made, strict=True)
    ]
    return json.dumps([outcome.model_dump(mode="json") for outcome in outcomes]).encode()


def _replayed(work: TaskWork, attempt: str, *, on_cluster: bool) -> bytes:
    began_at_ms = now_ms()
    outcome = run_task(work, attempt=attempt, clock=time.perf_counter, host=socket.gethostname(), told=tell)
    host = process_id(work.settings.local_state_dir, uuid.uuid4) if on_cluster else None
    outcome = outcome.model_copy(update={"began_at_ms": began_at_ms, "process_id": host})
    return kept(work, outcome).model_dump_json().encode()
