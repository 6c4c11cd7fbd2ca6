"""Runs that have begun and may yet be committed: whatever changes a job's head looks for them first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.commits.layout import Runs
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from statelib.storage import Storage


def open_run_after(warehouse: Storage, job: str, head: int, *, rollbacks: bool = True) -> str | None:
    """A run that may yet be committed after ``head``; ``rollbacks``: whether these count too."""
    runs = Runs(warehouse, job)
    for plan in runs.attempts(head + 1):
        if plan.rolled_back_to is not None and not rollbacks:
            continue
        if not runs.is_quarantined(plan.run_id):
            return plan.run_id
    return None


def open_replay(warehouse: Storage, job: str, head: int) -> str | None:
    """A run that may yet be committed and is no rollback."""
    return open_run_after(warehouse, job, head, rollbacks=False)


def check_no_replay_open(warehouse: Storage, job: str, head: int, *, supersede: bool) -> None:
    """Makes sure that no replay loses its commit number to what follows ``head``, unless it may (``supersede``).

    Raises:
        ConfigurationError: One would.
    """
    open_run = open_replay(warehouse, job, head)
    if open_run is not None and not supersede:
        raise ConfigurationError(
            "a run is open, and would lose its commit number",
            job=job,
            run=open_run,
            next_step="let it finish; or give --supersede if nobody is running it or it should not count",
        )
