"""Fourth phase: makes a run true, by creating one small object that nobody else can create.

Of several drivers one wins, and the others are told that they lost. A driver whose write landed but was reported as
failed, or which was killed right after it, finds its own run under the number and is content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from statelib.commits.fencing import fenced
from statelib.commits.layout import CommitLog, Runs
from statelib.commits.run.stage import read_staged
from statelib.commits.stored_files import lost_files
from statelib.documents.manifests import Commit, CommittedTask
from statelib.errors.counted import counted
from statelib.errors.fault_points import step
from statelib.errors.kinds import ConfigurationError, CorruptedDataError, InputError

if TYPE_CHECKING:
    from statelib.documents.manifests import Audit, Staged
    from statelib.documents.plans import Plan
    from statelib.storage import Storage

_Document = TypeVar("_Document")


def commit(warehouse: Storage, plan: Plan, *, now_ms: int) -> Commit:
    """Commits the run of ``plan``; a repeat gives the commit that is there.

    Args:
        warehouse: Root of all durable data.
        plan: The run's plan.
        now_ms: The wall clock, for the commit's ``created_at_ms``.

    Raises:
        FencedError: Another run has this commit number.
        ConfigurationError: The run has not been staged or not been audited.
        InputError: Its audit failed.
        CorruptedDataError: A file that it staged is missing or has another size.
    """
    log = CommitLog(warehouse, plan.job)
    standing = log.read_if_present(plan.commit)
    if standing is None:
        with fenced(warehouse, plan.job, plan.commit):  # else what a later maintenance has removed would seem damage
            new = _build(warehouse, plan, now_ms)
        standing = log.claim(new, "commit")
    else:
        log.check_own(standing, plan.run_id)
        log.advise_head(standing.commit)
    step("commit.advised")
    return standing


def _build(warehouse: Storage, plan: Plan, now_ms: int) -> Commit:
    staged = _required(read_staged(warehouse, plan), plan, "staged", "replay")
    audit = _required(Runs(warehouse, plan.job).audit(plan.run_id), plan, "audited", "audit")
    _check_passed(plan, audit)
    _check_files(warehouse, plan, staged)
    return Commit(
        job=plan.job,
        commit=plan.commit,
        run_id=plan.run_id,
        fingerprint=plan.fingerprint,
        until_ms=plan.until_ms,
        end_of_input=plan.end_of_input,
        semantics=plan.semantics,
        evolution=plan.evolution,
        sources=plan.sources,
        tasks={
            outcome.task_id: CommittedTask(state=outcome.state, position=outcome.position) for outcome in staged.tasks
        },
        sinks=tuple(sink for outcome in staged.tasks for sink in outcome.sinks),
        created_at_ms=now_ms,
    )


def _required(document: _Document | None, plan: Plan, done: str, phase: str) -> _Document:
    if document is None:
        next_step = f"run the {phase} phase first"
        raise ConfigurationError(f"the run has not been {done}", job=plan.job, run=plan.run_id, next_step=next_step)
    return document


def _check_passed(plan: Plan, audit: Audit) -> None:
    if not audit.success:
        failed = [check for check in audit.checks if check.stops]
        shown = ", ".join(f"{check.topic}: {check.expectation}" for check in failed[:3])
        raise InputError(
            f"the run is in quarantine: {len(failed)} of {counted(len(audit.checks), 'check')} failed ({shown})",
            job=plan.job,
            run=plan.run_id,
            next_step="fix the cause that the audit shows, and run the same slice again: it gets a new try",
        )


def _check_files(warehouse: Storage, plan: Plan, staged: Staged) -> None:
    """What is committed must be there: looks at the presence and size of every file, not at its bytes."""
    for path, what in lost_files(warehouse, plan.job, staged.tasks):
        raise CorruptedDataError(
            f"a file that the run staged {what}",
            job=plan.job,
            run=plan.run_id,
            file=warehouse.uri(path),
            next_step="restore the file, or run the same slice again: it gets a new try",
        )
