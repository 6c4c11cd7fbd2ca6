"""Slices of a job through the phases of a run, in this process and without Spark: what is left must not grow."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.scale.processes import read_bytes
from statelib.commits import (
    CommitLog,
    FilePolicy,
    NothingToDo,
    Retention,
    commit,
    maintain,
    plan,
    publish,
    record_audit,
    stage,
)
from statelib.documents.manifests import Audit, Staged
from statelib.settings.settings import load_settings
from statelib.storage import Storage
from statelib.task import Stages, TaskSettings, replay_here

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from benchmarks.dataset import Dataset
    from statelib.documents.plans import Plan
    from statelib.job.job import Job


NEIGHBOURS = 9
"""Slices that `typical` looks at."""


@dataclass(frozen=True, slots=True)
class PhaseCost:
    """Of a phase, over all threads of this process; what was read from files need not have come from a disk."""

    wall_seconds: float
    cpu_seconds: float
    read_bytes: int
    requests: int = 0


@dataclass(slots=True)
class Slice:
    """A slice that was replayed, committed, published and maintained.

    Attributes:
        plan: What it was to do.
        staged: What its tasks made.
        phases: What each phase cost.
    """

    plan: Plan
    staged: Staged | None = None
    phases: dict[str, PhaseCost] = field(default_factory=dict)

    @property
    def cpu_seconds(self) -> float:
        """Of all phases."""
        return sum(cost.cpu_seconds for cost in self.phases.values())

    @property
    def wall_seconds(self) -> float:
        """Of all phases."""
        return sum(cost.wall_seconds for cost in self.phases.values())

    @property
    def state_bytes(self) -> int:
        """Of all tasks, after the slice."""
        return sum(task.state.size_bytes for task in self.staged.tasks)


class Replays:
    """A job over a warehouse of its own.

    Args:
        folder: For the warehouse and the state.
        job: What to run.
        dataset: Its topics; the files are linked. None: the warehouse has them already.
        is_audited: Whether runs are audited and reported; else a verdict is recorded unseen.
        warehouse: Where it is; None: in ``folder``. One in an object store has its topics already.
        requests: How many requests have been made of the warehouse so far; None: nobody counts.
        task_settings: Of `TaskSettings`.
    """

    def __init__(
        self,
        folder: Path,
        job: Job,
        dataset: Dataset | None = None,
        *,
        is_audited: bool = False,
        warehouse: str | None = None,
        requests: Callable[[], int] | None = None,
        **task_settings: Any,
    ) -> None:
        self.job = job
        root = warehouse or str(folder / "warehouse")
        if dataset is not None:
            shutil.copytree(dataset.folder / "topics", f"{root}/topics", copy_function=os.link)
        self.settings = TaskSettings(root, str(folder / "state"), **task_settings)
        self.warehouse = Storage(root, self.settings.storage_options)
        self._is_audited = is_audited
        self._requests = requests or (lambda: 0)

    def run(self, *, until_ms: int | None = None) -> Slice:
        """The slice up to ``until_ms``, or to the end of the topics."""
        phases: dict[str, PhaseCost] = {}
        warehouse, name = self.warehouse, self.job.name
        with self._timed("plan", phases):
            planned = plan(self.job, warehouse, now_ms=0, until_ms=until_ms)
        if isinstance(planned, NothingToDo):
            raise SystemExit(str(planned))
        with self._timed("replay", phases):
            staged = stage(
                warehouse,
                planned,
                replay_here(self.stages(planned), planned, attempt="a", clock=time.process_time),
            )
        with self._timed("audit", phases):
            self._audit(planned)
        with self._timed("commit", phases):
            commit(warehouse, planned, now_ms=0)
        with self._timed("publish", phases):
            publish(warehouse, name)
        with self._timed("maintain", phases):
            retention, files = Retention(self._job_settings().keep_commits), FilePolicy(attempt="maintenance")
            maintain(warehouse, name, retention, now_ms=0, files=files)
        if self._is_audited:
            with self._timed("report", phases):
                self._report(planned)
        return Slice(planned, staged, phases)

    def stages(self, planned: Plan) -> Stages:
        """The work of a planned run."""
        log = CommitLog(self.warehouse, self.job.name)
        previous = log.read(planned.commit - 1) if planned.commit > 1 else None
        return Stages(self.job.topology, planned, previous, self.warehouse, self.settings)

    def _audit(self, planned: Plan) -> None:
        if self._is_audited:
            from hindstream.spark.phases import audit  # noqa: PLC0415 - brings Spark and Great Expectations

            audit.run(self.job, self._job_settings(), planned.run_id)
            return
        verdict = Audit(run_id=planned.run_id, success=True, checks=(), data_docs=None, seconds=0)
        record_audit(self.warehouse, planned, verdict)

    def _report(self, planned: Plan) -> None:
        from hindstream.spark.phases import report  # noqa: PLC0415

        report.run(self.job, self._job_settings(), planned.run_id)

    def _job_settings(self):
        places = {
            "warehouse": self.settings.warehouse,
            "state_dir": self.settings.state_dir,
            "storage_options": dict(self.settings.storage_options),
            "audit_engine": "pandas",
        }
        return load_settings(places, environ={})

    @contextmanager
    def _timed(self, phase: str, phases: dict[str, PhaseCost]) -> Iterator[None]:
        wall, cpu, read, requests = time.perf_counter(), time.process_time(), read_bytes(), self._requests()
        yield
        phases[phase] = PhaseCost(
            time.perf_counter() - wall, time.process_time() - cpu, read_bytes() - read, self._requests() - requests
        )


def typical(figures: Sequence[Mapping[str, float]], around: int) -> dict[str, float]:
    """The median of each phase's figure over the slices up to number ``around``, from 1."""
    chosen = figures[max(around - NEIGHBOURS, 1) : around]
    return {phase: median(figure[phase] for figure in chosen) for phase in chosen[0]}
