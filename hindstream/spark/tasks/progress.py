"""Watches a Spark stage from the driver: its progress, and the end of a stage that can only fail."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Self

from hindstream.console.progress import Progress
from hindstream.spark.session.compiling import COMPILING, mark_of
from hindstream.spark.tasks.locations import cancel_group

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from pyspark import SparkContext

    from hindstream.spark.tasks.told import Told

_POLL_SECONDS = 0.1


class StageProgress:
    """A context manager around a Spark action.

    Args:
        context: Spark's.
        group: The job group of the action.
        name: What is shown beside the figures.
        tasks: How many tasks there are; None: nobody knows.
        has_failed: Whether a task has failed for good; the group is then cancelled.
        told: What tasks tell of their records. None: what is shown is how many tasks have ended.
        records: How many records there are.
    """

    def __init__(
        self,
        context: SparkContext,
        group: str,
        name: str,
        *,
        tasks: int | None,
        has_failed: Callable[[], bool],
        told: Told | None = None,
        records: int | None = None,
    ) -> None:
        self._context = context
        self._group = group
        self._has_failed = has_failed
        self._told = told
        total, unit = (tasks, "tasks") if told is None else (records, "records")
        self._progress = Progress(name, total, unit=unit)
        self._name = name
        self._compiling = mark_of(context)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"progress of {name}", daemon=True)

    def __enter__(self) -> Self:
        self._progress.__enter__()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        self._progress.__exit__(kind, error, trace)

    def _watch(self) -> None:
        while not self._ended.wait(_POLL_SECONDS):
            if self._has_failed():
                cancel_group(self._context, self._group)
                return
            is_compiling = self._compiling is not None and self._compiling.exists()
            self._progress.label(f"{self._name}, {COMPILING}" if is_compiling else self._name)
            self._progress.update(self._completed() if self._told is None else self._told.records())

    def _completed(self) -> int:
        tracker = self._context.statusTracker()
        jobs = (tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group))
        stages = (tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds)
        return sum(stage.numCompletedTasks for stage in stages if stage is not None)
