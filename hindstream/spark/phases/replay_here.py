"""Replays a run in this process, task by task: what ``engine = "local"`` does in the place of Spark's stages."""

from __future__ import annotations

import logging
import os
import socket
import sys
import time
import traceback
import uuid
from typing import TYPE_CHECKING

from hindstream.console.progress import Progress
from hindstream.runs import now_ms
from hindstream.spark.tasks.unforeseen import unforeseen
from statelib.errors.kinds import HindstreamError, RetryableError
from statelib.task import kept, run_task

if TYPE_CHECKING:
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

    def run_stage(sub: SubTopology, works: list[TaskWork]) -> list[TaskOutcome]:
        name = f"{job.name}, stage {sub.index + 1} of {len(stages.sub_topologies)}"
        with Progress(name, sum(work.records for work in works)) as progress:
            return [_outcome(work, f"{nonce}-{n}", progress) for n, work in enumerate(works)]

    return stages.outcomes(run_stage)


def _outcome(work: TaskWork, name: str, progress: Progress) -> TaskOutcome:
    for attempt in range(1, _ATTEMPTS + 1):
        began_at_ms = now_ms()
        try:
            outcome = run_task(
                work,
                attempt=f"{name}-{attempt}-{os.getpid()}",
                clock=time.perf_counter,
                host=socket.gethostname(),
                told=progress.advance,
            )
        except RetryableError as error:
            if attempt == _ATTEMPTS:
                raise
            _log.warning("%s: attempt %d at task %s failed: %s", work.job, attempt, work.planned.task_id, error)
        except HindstreamError:
            raise
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            raise unforeseen(error, work.planned.task_id, "above") from error
        else:
            return kept(work, outcome.model_copy(update={"began_at_ms": began_at_ms}))
    raise AssertionError  # the last attempt has returned or raised
