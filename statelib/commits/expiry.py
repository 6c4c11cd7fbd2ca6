"""From which commit on state can be restored: a mark that only ever moves on.

::

    jobs/<job>/expired/<oldest restorable commit, 20 digits>.json   {"format_version": 1}

The name says it all, and the largest one counts. Documents are created, never overwritten, so two that maintain a job
at once cannot move the mark back. It moves before the first file goes: whoever comes later is told that a state has
expired, instead of finding a file missing. Up to version 3 of the documents the mark was in ``maintenance.json`` only.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from statelib.commits.layout import CommitLog, JobLayout, Runs, numbers_in
from statelib.documents.upkeep import Maintenance
from statelib.errors.fault_points import step
from statelib.errors.kinds import ConfigurationError
from statelib.storage.transfers import look_ahead

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.documents.manifests import Commit
    from statelib.storage import Storage

FORMAT_VERSION = 1


def read_maintenance(warehouse: Storage, job: str) -> Maintenance:
    """What maintenance has done of a job so far."""
    return Maintenance.read_if_present(warehouse, JobLayout(job).maintenance) or Maintenance()


def oldest_restorable(warehouse: Storage, job: str) -> int:
    """The first commit whose state has not expired; 1 if none has."""
    return max([read_maintenance(warehouse, job).oldest_restorable, *_marks(warehouse, job)])


def restorable_commits(
    warehouse: Storage, job: str, oldest: int | None = None, head: int | None = None
) -> Iterator[Commit]:
    """The commits that can be gone back to.

    Args:
        warehouse: Root of all durable data.
        job: The job's name.
        oldest: The first one, where the mark says that the others have expired; None: as the mark says.
        head: The last one; None: the newest.
    """
    log = CommitLog(warehouse, job)
    oldest = oldest_restorable(warehouse, job) if oldest is None else oldest
    head = log.head_number() if head is None else head
    numbers = (*_wanted_by_rollbacks(warehouse, job, head, oldest), *range(oldest, head + 1))
    yield from look_ahead(log.read, numbers, warehouse.requests_at_once)


def expire_before(warehouse: Storage, job: str, commit: int) -> None:
    """Says that the states of all commits before ``commit`` may go; a repeat changes nothing."""
    marks = _marks(warehouse, job)
    if commit <= max(marks, default=1):
        return
    step("maintain.before-expire")
    warehouse.put_if_absent(JobLayout(job).expired(commit), (json.dumps({"format_version": FORMAT_VERSION})).encode())
    step("maintain.expired")
    warehouse.delete([JobLayout(job).expired(mark) for mark in marks])  # smaller ones, which say nothing any more


def _wanted_by_rollbacks(warehouse: Storage, job: str, head: int, oldest: int) -> list[int]:
    """Commits before the oldest to keep that an open rollback goes back to: it may have come before the mark."""
    targets = [plan.rolled_back_to for plan in Runs(warehouse, job).attempts(head + 1)]
    return [n for n in targets if n is not None and n < oldest]


def check_restorable(warehouse: Storage, job: str, commit: int) -> None:
    """Makes sure that the state of ``commit`` has not expired.

    Raises:
        ConfigurationError: It has.
    """
    oldest = oldest_restorable(warehouse, job)
    if commit < oldest:
        raise ConfigurationError(
            f"the state of commit {commit} has expired",
            job=job,
            setting="keep_commits, keep_state_for",
            next_step=f"ask for commit {oldest} or a later one: 'hindstream state' lists them",
        )


def _marks(warehouse: Storage, job: str) -> list[int]:
    return numbers_in(warehouse, f"{JobLayout(job).root}/expired")
