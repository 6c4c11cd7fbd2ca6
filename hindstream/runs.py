"""What every phase begins with: the warehouse of the settings, and the run that is meant."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

from statelib.commits import CommitLog, FilePolicy, Retention, Runs
from statelib.errors.kinds import ConfigurationError
from statelib.storage import Storage

if TYPE_CHECKING:
    from statelib.documents.plans import Plan
    from statelib.settings.settings import Settings


def open_warehouse(settings: Settings) -> Storage:
    """The storage that holds all durable data."""
    return Storage(settings.warehouse, settings.store_options)


def split_commit(reference: str) -> tuple[str, int | None]:
    """What stands before ``@``, and the commit behind it; None: none is given.

    Raises:
        ConfigurationError: What is behind ``@`` is no number.
    """
    job, at, commit = reference.rpartition("@")
    if not at:
        return reference, None
    if not commit.isdecimal():
        step = "write JOB@7 for commit 7: 'hindstream state JOB' lists the commits"
        raise ConfigurationError("a commit is a number", job=job, commit=commit, next_step=step)
    return job, int(commit)


def find_plan(warehouse: Storage, job: str, run_id: str | None) -> Plan:
    """The plan of a run; without a run id that of the newest run, committed or not.

    Raises:
        ConfigurationError: There is no such run.
    """
    runs = Runs(warehouse, job)
    if run_id is not None:
        plan = runs.plan(run_id)
    else:
        log = CommitLog(warehouse, job)
        head = log.head()
        tries = [plan for plan in runs.attempts(head.commit + 1 if head else 1) if plan.rolled_back_to is None]
        plan = tries[-1] if tries else runs.plan(head.run_id) if head else None
    if plan is None:
        next_step = (
            f"plan one: hindstream plan FILE.py:NAME, or look: hindstream status {job} (warehouse {warehouse.uri('')})"
        )
        raise ConfigurationError("there is no such run", job=job, run=run_id, next_step=next_step)
    return plan


def find_replay(warehouse: Storage, job: str, run_id: str | None) -> Plan:
    """As `find_plan`, of a run that replays something.

    Raises:
        ConfigurationError: There is no such run, or it is a rollback, or takes over from an application.
    """
    plan = find_plan(warehouse, job, run_id)
    if plan.instead_of_replay is not None:
        what = f"the run replays nothing: {plan.instead_of_replay}"
        raise ConfigurationError(
            what, job=job, run=plan.run_id, next_step="plan the next run: hindstream plan FILE.py:NAME"
        )
    return plan


def retention(settings: Settings) -> Retention:
    """How long states stay restorable."""
    return Retention(settings.keep_commits, settings.keep_state_for_ms)


def file_policy(settings: Settings) -> FilePolicy:
    """When small files of topics are merged."""
    return FilePolicy(
        attempt=uuid.uuid4().hex[:16],
        target_bytes=settings.target_file_bytes,
        keep_replaced_ms=settings.keep_replaced_files_for_ms,
        merges_sources=settings.merge_source_files,
    )


def now_ms() -> int:
    """The wall clock in milliseconds since 1970."""
    return time.time_ns() // 1_000_000
