"""Slices of a job through all phases of a run but audit and report, in this process and without Spark.

What is left is what grows, or must not: the tasks and the run protocol. The audit's verdict is recorded unseen.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statelib.commits import CommitLog, NothingToDo, commit, maintain, plan, publish, record_audit, stage
from statelib.manifests import Audit, Staged
from statelib.storage import Storage
from statelib.task import Stages, TaskSettings, replay_here

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.dataset import Dataset
    from statelib.commits.plan import EndOffsets
    from statelib.job import Job

KEPT_COMMITS = 10
"""As many as the setting ``keep_commits`` keeps by default."""


@dataclass(slots=True)
class Cost:
    """Seconds of a phase: of the wall clock, and of this process' threads."""

    wall_seconds: float
    cpu_seconds: float


@dataclass(slots=True)
class Slice:
    """A slice that was replayed, committed, published and maintained.

    Attributes:
        records: Taken up from the sources.
        staged: What its tasks made.
        costs: By phase: plan, replay, stage, commit, publish, maintain.
    """

    records: int = 0
    staged: Staged | None = None
    costs: dict[str, Cost] = field(default_factory=dict)

    @property
    def cpu_seconds(self) -> float:
        """Of all phases."""
        return sum(cost.cpu_seconds for cost in self.costs.values())

    @property
    def wall_seconds(self) -> float:
        """Of all phases."""
        return sum(cost.wall_seconds for cost in self.costs.values())

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Adds what the context costs to ``phase``."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.costs[phase] = Cost(time.perf_counter() - wall, time.process_time() - cpu)


class Replays:
    """A job over a warehouse of its own.

    Args:
        folder: For the warehouse and the state.
        job: What to run.
        dataset: Its topics; the files are linked. None: the warehouse has them already.
        settings: Of `TaskSettings`.
    """

    def __init__(self, folder: Path, job: Job, dataset: Dataset | None = None, **settings: Any) -> None:
        self.folder, self.job = folder, job
        root = folder / "warehouse"
        if dataset is not None:
            shutil.copytree(dataset.folder / "topics", root / "topics", copy_function=os.link)
        self.warehouse = Storage(str(root))
        self.settings = TaskSettings(str(root), str(folder / "state"), **settings)

    def stages(self, planned) -> Stages:
        """The work of a planned run."""
        log = CommitLog(self.warehouse, self.job.name)
        previous = log.read(planned.commit - 1) if planned.commit > 1 else None
        return Stages(self.job.topology, planned, previous, self.warehouse, self.settings)

    def run(self, *, until_ms: int | None = None, end_offsets: EndOffsets | None = None) -> Slice:
        """The slice up to ``until_ms``, or ``end_offsets``, or the end of the topics."""
        done, warehouse, name = Slice(), self.warehouse, self.job.name
        with done.timed("plan"):
            planned = plan(self.job, warehouse, now_ms=0, until_ms=until_ms, end_offsets=end_offsets)
        if isinstance(planned, NothingToDo):
            raise SystemExit(str(planned))
        done.records = planned.records
        with done.timed("replay"):
            staged = replay_here(self.stages(planned), planned, attempt="a", clock=time.process_time)
        with done.timed("stage"):
            done.staged = stage(warehouse, planned, staged)
            verdict = Audit(run_id=planned.run_id, success=True, checks=(), data_docs=None, seconds=0)
            record_audit(warehouse, planned, verdict)
        with done.timed("commit"):
            commit(warehouse, planned, now_ms=0)
        with done.timed("publish"):
            publish(warehouse, name)
        with done.timed("maintain"):
            maintain(warehouse, name, keep_commits=KEPT_COMMITS)
        return done
