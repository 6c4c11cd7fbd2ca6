"""Replays a run in this process, task by task: what ``engine = "local"`` does in the place of Spark's stages."""

from __future__ import annotations

import logging
import os
import socket
import sys
import time
import traceback
import uuid
from typing import TYPE_CHECKING, Any

from hindstream.console.progress import Progress
from hindstream.runs import now_ms
from hindstream.spark.tasks.unforeseen import unforeseen
from statelib.errors.kinds import HindstreamError, RetryableError
from statelib.task import kept, run_circle, run_task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from statelib.documents.manifests import TaskOutcome
    from statelib.job.job import Job
    from statelib.task import Stages, TaskWork
    from statelib.topology import SubTopology

_log = logging.getLogger(__name__)

_ATTEMPTS = 4
"""At a task that ends with a `RetryableError`: as many as Spark makes."""


def replay_here(job: Job, stages: Stages) -> list[TaskOutcome]:
    """Runs all tasks that are left.

    Returns:
        What they made, in the order in which Spark's stages give it.

    Raises:
        HindstreamError: What a task has raised.
    """
    nonce = uuid.uuid4().hex[:8]

    def run_stage(stage: Sequence[SubTopology], works: list[TaskWork]) -> list[TaskOutcome]:
        name = f"{job.name}, {stages.name_of(stage)}"
        with Progress(name, sum(work.records for work in works)) as progress:
            if stage[0].returning:
                return _outcomes(works, nonce, progress, run_circle) if works else []
            return [
                outcome
                for n, work in enumerate(works)
                for outcome in _outcomes([work], f"{nonce}-{n}", progress, _run_alone)
            ]

    return stages.outcomes(run_stage)


def _run_alone(works: Sequence[TaskWork], **how: Any) -> list[TaskOutcome]:
    return [run_task(work, **how) for work in works]


def _outcomes(
    works: Sequence[TaskWork], name: str, progress: Progress, run: Callable[..., list[TaskOutcome]]
) -> list[TaskOutcome]:
    """What some tasks make, one or those of a circle."""
    first = works[0]
    for attempt in range(1, _ATTEMPTS + 1):
        began_at_ms = now_ms()
        try:
            made = run(
                works,
                attempt=f"{name}-{attempt}-{os.getpid()}",
                clock=time.perf_counter,
                host=socket.gethostname(),
                told=progress.advance,
            )
        except RetryableError as error:
            if attempt == _ATTEMPTS:
                raise
            _log.warning("%s: attempt %d at task %s failed: %s", first.job, attempt, first.planned.task_id, error)
        except HindstreamError:
            raise
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            raise unforeseen(error, first.planned.task_id, "above") from error
        else:
            began = [outcome.model_copy(update={"began_at_ms": began_at_ms}) for outcome in made]
            return [kept(work, outcome) for work, outcome in zip(works, began, strict=True)]
    raise AssertionError  # the last attempt has returned or raised
