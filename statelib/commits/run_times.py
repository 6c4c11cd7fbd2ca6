"""How long the next run of a job may take, by those before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from statelib.commits.layout import CommitLog, Runs
from statelib.storage.transfers import in_parallel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.documents.manifests import Commit
    from statelib.storage import Storage

_RUNS = 10
"""The newest that are looked at."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """How long replay and audit may take, in seconds, and by how many former runs that is told."""

    seconds: float
    runs: int


def estimated_time(warehouse: Storage, job: str, records: int) -> Estimate | None:
    """The time of a run over so many records; None: no committed run is there to tell by."""
    runs = Runs(warehouse, job)

    def measured(commit: Commit) -> tuple[int, float] | None:
        plan, staged, audit = runs.plan(commit.run_id), runs.staged(commit.run_id), runs.audit(commit.run_id)
        if plan is None or staged is None or plan.instead_of_replay is not None or staged.done_before:
            return None  # where an earlier try had done a part, nobody knows how long the whole takes
        return plan.records, staged.seconds + (audit.seconds if audit is not None else 0)

    commits = list(CommitLog(warehouse, job).history(_RUNS))
    found = [one for one in in_parallel(measured, commits, warehouse.requests_at_once) if one is not None]
    return Estimate(fitted(found, records), len(found)) if found else None


def fitted(measured: Sequence[tuple[int, float]], records: int) -> float:
    """The seconds of so many records by a line through the records and seconds of some runs (at least one).

    A run has a fixed share and one for each record. Where the line says that one of them is negative, chance has drawn
    it: then all is taken for the other one.
    """
    counts, seconds = (np.array(column, np.float64) for column in zip(*measured, strict=True))
    spread = counts - counts.mean()
    of_one = float((spread * (seconds - seconds.mean())).sum() / ((spread**2).sum() or 1))
    fixed = float(seconds.mean() - of_one * counts.mean())
    if of_one < 0:
        return float(seconds.mean())
    if fixed < 0:
        return float(seconds.sum() / counts.sum()) * records
    return fixed + of_one * records
