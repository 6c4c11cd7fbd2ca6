"""Replays a run in this process, task by task: what ``engine = "local"`` does in the place of Spark's stages."""

from __future__ import annotations

import logging
import os
import socket
import sys
import time
import traceback
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hindstream.console.progress import Progress
from hindstream.runs import now_ms
from hindstream.spark.session.compiling import COMPILING
from hindstream.spark.tasks.unforeseen import unforeseen
from statelib.errors.kinds import HindstreamError, RetryableError
from statelib.kernels.compiled import compiling_told
from statelib.task import kept, run_circle, run_task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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
        with _shown(name, sum(work.records for work in works)) as advance:
            if stage[0].returning:
                return _outcomes(works, nonce, advance, run_circle) if works else []
            return [
                outcome
                for n, work in enumerate(works)
                for outcome in _outcomes([work], f"{nonce}-{n}", advance, _run_alone)
            ]

    return stages.outcomes(run_stage)


@contextmanager
def _shown(name: str, records: int) -> Iterator[Callable[[int], None]]:
    """Shows how far a stage is, and why it stands still; gives what is told of each so many records."""
    with Progress(name, records) as progress:

        def advance(count: int) -> None:
            progress.label(name)
            progress.advance(count)

        with compiling_told(lambda: progress.label(f"{name}, {COMPILING}")):
            yield advance


def _run_alone(works: Sequence[TaskWork], **how: Any) -> list[TaskOutcome]:
    return [run_task(work, **how) for work in works]


def _outcomes(
    works: Sequence[TaskWork], name: str, advance: Callable[[int], None], run: Callable[..., list[TaskOutcome]]
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
                told=advance,
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
