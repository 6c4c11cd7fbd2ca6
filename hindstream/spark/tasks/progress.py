"""Watches a Spark stage from the driver: a progress bar in a terminal, and the end of a stage that can only fail."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from hindstream.spark.tasks.locations import cancel_group

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from pyspark import SparkContext

_POLL_SECONDS = 0.1


class StageProgress:
    """A context manager around a Spark action. The bar is on the standard error: who redirects that has none.

    Args:
        context: Spark's.
        group: The job group of the action.
        name: What the bar is labelled with.
        tasks: How many tasks there are.
        has_failed: Whether a task has failed for good; the group is then cancelled.
    """

    def __init__(
        self, context: SparkContext, group: str, name: str, *, tasks: int, has_failed: Callable[[], bool]
    ) -> None:
        self._context = context
        self._group = group
        self._has_failed = has_failed
        self._tasks = tasks
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"progress of {name}", daemon=True)
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("tasks"),
            TimeElapsedColumn(),
            console=Console(file=sys.stderr),
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        self._row = self._bar.add_task(name, total=tasks)

    def __enter__(self) -> Self:
        self._bar.start()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        if kind is None:
            self._bar.update(self._row, completed=self._tasks)
        self._bar.stop()

    def _watch(self) -> None:
        while not self._ended.wait(_POLL_SECONDS):
            if self._has_failed():
                cancel_group(self._context, self._group)
                return
            if not self._bar.disable:
                self._bar.update(self._row, completed=self._completed())

    def _completed(self) -> int:
        tracker = self._context.statusTracker()
        jobs = (tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group))
        stages = (tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds)
        return sum(stage.numCompletedTasks for stage in stages if stage is not None)
