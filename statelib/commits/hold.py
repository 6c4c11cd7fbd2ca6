"""Holds a job: while somebody changes what cannot be changed beside a run, nobody else plans one.

``jobs/<job>/hold.json`` is created only if absent and deleted by who created it. It has no time-out: a clock that is
wrong, or a holder that sleeps, must not let two at the job at once. What was left behind is taken up by its name, or
removed by a person (``release``).

A hold is for order, not for safety: whatever happens, one run gets a commit number, and the others lose it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.commits.layout import CommitLog, JobLayout
from statelib.commits.open_runs import open_run_after
from statelib.documents.upkeep import Hold
from statelib.errors.fault_points import step
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from statelib.storage import Storage


def take_hold(warehouse: Storage, job: str, holder: str, *, reason: str, now_ms: int) -> Hold:
    """Holds ``job``; a repeat by the same holder gives the hold that is there.

    Raises:
        ConfigurationError: Somebody else holds it, or a run is open.
    """
    wanted = Hold(holder=holder, reason=reason, since_ms=now_ms)
    step("hold.before-create")
    created = warehouse.put_if_absent(JobLayout(job).hold, wanted.encode())
    step("hold.created")
    standing = wanted if created else read_hold(warehouse, job)
    if standing is None:
        return take_hold(warehouse, job, holder, reason=reason, now_ms=now_ms)  # released in between
    _check_holder(job, standing, holder)
    open_run = open_run_after(warehouse, job, CommitLog(warehouse, job).head_number())
    if created and open_run is not None:
        release_hold(warehouse, job, holder)
        raise ConfigurationError(
            "a run is open",
            job=job,
            run=open_run,
            next_step="let it finish: hindstream run continues it",
        )
    return standing


def release_hold(warehouse: Storage, job: str, holder: str) -> None:
    """Lets ``job`` go; nothing happens if nobody holds it.

    Raises:
        ConfigurationError: Somebody else holds it.
    """
    standing = read_hold(warehouse, job)
    if standing is not None:
        _check_holder(job, standing, holder)
        step("hold.before-release")
        warehouse.delete(JobLayout(job).hold)


def read_hold(warehouse: Storage, job: str) -> Hold | None:
    """Who holds ``job``; None: nobody."""
    return Hold.read_if_present(warehouse, JobLayout(job).hold)


def check_free(warehouse: Storage, job: str, holder: str | None) -> None:
    """Makes sure that nobody but ``holder`` holds ``job``.

    Raises:
        ConfigurationError: Somebody does.
    """
    standing = read_hold(warehouse, job)
    if standing is not None:
        _check_holder(job, standing, holder)


def _check_holder(job: str, standing: Hold, holder: str | None) -> None:
    if standing.holder != holder:
        raise ConfigurationError(
            f"the job is held by {standing.holder}: {standing.reason}",
            job=job,
            next_step=f"let it end; or if nobody is at work on it: hindstream release {job} {standing.holder}"
            " (docs/runbooks/held-job.md)",
        )
