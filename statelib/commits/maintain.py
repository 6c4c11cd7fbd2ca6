"""Last phase: removes what nobody can need any more.

Three rules keep it safe at any instant, also beside a driver that runs, hangs or was killed:

- *Commits are never deleted* (see `statelib.commits.layout`), only the state files that old ones point to.
- *A run's leftovers go only when its commit number is taken.* Then it can never be committed. Those in quarantine stay
  for inspection as long as the checkpoint of the commit that came in their place.
- *State is swept only while no run is open.* State files are named by content, so a run may be about to upload, or just
  have uploaded, a file that an expired checkpoint had as well. (Should a run begin during the sweep and lose such a
  file, its commit is refused: `statelib.commits.commit` looks whether all files are there.)

That a checkpoint expires is written down before its first file goes: whoever comes later is told so, instead of finding
a file missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.checkpoint.retention import oldest_kept, unneeded_files
from statelib.commits.layout import CommitLog, JobLayout, Runs
from statelib.commits.leftovers import find_leftovers
from statelib.errors import ConfigurationError
from statelib.manifests import Maintenance
from statelib.steps import step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.storage import Storage, StoredObject


@dataclass(frozen=True, slots=True)
class Maintained:
    """What maintenance did.

    Attributes:
        oldest_restorable: The state of this commit and of all later ones can be restored.
        deleted_files: How many files went.
        deleted_bytes: How large they were.
        skipped: What could not be done yet, for a person; None: everything was done.
    """

    oldest_restorable: int
    deleted_files: int
    deleted_bytes: int
    skipped: str | None = None


def maintain(warehouse: Storage, job: str, *, keep_commits: int) -> Maintained:
    """Expires old checkpoints and what dead runs left behind.

    Args:
        warehouse: Root of all durable data.
        job: The job's name.
        keep_commits: The newest commits whose state stays restorable, at least 1.

    Raises:
        ConfigurationError: ``keep_commits`` is less than 1.
    """
    if keep_commits < 1:
        raise ConfigurationError("the head's state cannot expire", setting="keep_commits", next_step="keep at least 1")
    log = CommitLog(warehouse, job)
    head = log.head_number()
    oldest = max(read_maintenance(warehouse, job).oldest_restorable, oldest_kept(head, keep_commits))
    swept, skipped = _sweep_state(warehouse, log, oldest, head)
    cleaned = _clean_runs(warehouse, log, oldest, head)
    deleted = [*swept, *cleaned]
    return Maintained(
        oldest_restorable=read_maintenance(warehouse, job).oldest_restorable,
        deleted_files=len(deleted),
        deleted_bytes=sum(entry.size_bytes for entry in deleted),
        skipped=skipped,
    )


def read_maintenance(warehouse: Storage, job: str) -> Maintenance:
    """What maintenance has expired of a job so far."""
    path = JobLayout(job).maintenance
    data = warehouse.get_if_present(path)
    return Maintenance() if data is None else Maintenance.decode(data, file=warehouse.uri(path))


def check_restorable(warehouse: Storage, job: str, commit: int) -> None:
    """Makes sure that the state of ``commit`` has not expired.

    Raises:
        ConfigurationError: It has.
    """
    oldest = read_maintenance(warehouse, job).oldest_restorable
    if commit < oldest:
        raise ConfigurationError(
            f"the state of commit {commit} has expired",
            job=job,
            setting="keep_commits",
            next_step=f"ask for commit {oldest} or a later one; keep_commits says how many stay",
        )


def _note(warehouse: Storage, job: str, **changes: int) -> None:
    before = read_maintenance(warehouse, job)
    after = before.model_copy(update=changes)
    if after != before:
        warehouse.put(JobLayout(job).maintenance, after.encode())
        step("maintain.noted")


def _sweep_state(
    warehouse: Storage, log: CommitLog, oldest: int, head: int
) -> tuple[Sequence[StoredObject], str | None]:
    """Deletes state files that no commit from ``oldest`` to ``head`` has; what went, and why nothing could."""
    record = read_maintenance(warehouse, log.job)
    if record.swept_through == head and record.oldest_restorable == oldest:
        return (), None
    folder = f"{log.layout.root}/state"
    stored = warehouse.list(folder)
    kept = [
        {task_id: task.state for task_id, task in log.read(n).tasks.items()} for n in range(max(1, oldest), head + 1)
    ]
    unneeded = unneeded_files(stored, kept, folder)
    open_run = _open_run(warehouse, log.job, head)  # after the listing: what a later run uploads is not in it
    if open_run is not None:
        return (), f"run {open_run} is open: state files were left alone"
    _note(warehouse, log.job, oldest_restorable=oldest)
    _delete(warehouse, unneeded)
    _note(warehouse, log.job, swept_through=head)
    return unneeded, None


def _open_run(warehouse: Storage, job: str, head: int) -> str | None:
    """A run that may yet be committed."""
    runs = Runs(warehouse, job)
    for plan in runs.attempts(head + 1):
        audit = runs.audit(plan.run_id)
        if audit is None or audit.success:
            return plan.run_id
    return None


def _clean_runs(warehouse: Storage, log: CommitLog, oldest: int, head: int) -> Sequence[StoredObject]:
    """Deletes what runs left behind whose commit number is taken.

    Runs are looked at again as long as their commits' state is kept: a driver that was overtaken may still be writing.
    """
    cleaned = read_maintenance(warehouse, log.job).cleaned_through
    leftovers = find_leftovers(warehouse, log, range(cleaned + 1, head + 1), quarantine_from=oldest)
    _delete(warehouse, leftovers)
    _note(warehouse, log.job, cleaned_through=max(cleaned, min(oldest - 1, head)))
    return leftovers


def _delete(warehouse: Storage, entries: Sequence[StoredObject]) -> None:
    """Deletes in portions, so that a kill in between is an ordinary case."""
    portion = 1000  # S3's largest request
    for start in range(0, len(entries), portion):
        step("maintain.before-delete")
        warehouse.delete([entry.path for entry in entries[start : start + portion]])
    step("maintain.deleted")
