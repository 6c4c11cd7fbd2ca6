"""Fills stores of a job in a commit of its own, by a run over nothing new: see `statelib.commits.topologies.fill`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hindstream.runs import open_warehouse
from hindstream.spark.phases import audit, commit, replay
from hindstream.spark.phases.plan import planner
from statelib.commits import CommitLog, NothingToDo, publish
from statelib.commits.layout import Runs
from statelib.commits.standing import no_commits
from statelib.errors.fault_points import step
from statelib.errors.kinds import ConfigurationError
from statelib.storage.storage import existing_storage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from statelib.documents.manifests import Commit, FillCost
    from statelib.documents.plans import Plan
    from statelib.job.job import Job
    from statelib.settings.settings import Settings
    from statelib.storage import Storage


def preview(job: Job, settings: Settings, stores: Sequence[str]) -> tuple[str, ...]:
    """What would become of the state, in words, a sentence each; changes nothing.

    Raises:
        ConfigurationError: The job has no commits; or as of `statelib.commits.run.plan`.
    """
    warehouse = existing_storage(settings.warehouse, settings.store_options)
    planned = _plan(job, settings, stores, warehouse)(dry_run=True)
    return planned.evolution.changes if not isinstance(planned, NothingToDo) and planned.evolution else ()


def run(job: Job, settings: Settings, stores: Sequence[str]) -> tuple[Commit, FillCost | None]:
    """Fills them and publishes the commit; goes on with what a killed call has left, and a repeat changes nothing.

    Returns:
        The commit, and what it cost.

    Raises:
        ConfigurationError: As of `preview`.
        HindstreamError: That of the phase that failed.
    """
    warehouse = open_warehouse(settings)
    publish(warehouse, job.name)
    if (done := _made(warehouse, job, stores)) is not None:
        return done
    planned = _plan(job, settings, stores, warehouse)()
    if isinstance(planned, NothingToDo):
        raise ConfigurationError(f"nothing can be filled: {planned}", job=job.name, next_step="fill before the seal")
    step("fill.planned")
    staged = replay.run(job, settings, planned.run_id)
    audit.run(job, settings, planned.run_id)
    step("fill.audited")
    made = commit.run(job, settings, planned.run_id)
    publish(warehouse, job.name)
    return made, staged.fill


def _made(warehouse: Storage, job: Job, stores: Sequence[str]) -> tuple[Commit, FillCost | None] | None:
    """The newest commit and what it cost, if it has filled the stores."""
    head = CommitLog(warehouse, job.name).head()
    if head is None or head.evolution is None or head.fingerprint != job.topology.fingerprint:
        return None
    staged = Runs(warehouse, job.name).staged(head.run_id)
    return (head, staged.fill if staged else None) if set(stores) <= set(head.evolution.filled) else None


def _plan(job: Job, settings: Settings, stores: Sequence[str], warehouse: Storage) -> Callable[..., Plan | NothingToDo]:
    head = CommitLog(warehouse, job.name).head()
    if head is None:
        raise no_commits(warehouse, job.name)
    make_plan = planner(job, settings, warehouse)
    return partial(make_plan, end_offsets=head.source_offsets(), fill_stores=stores, refill=True)
