"""Sixth phase: removes what nobody can need any more.

These rules keep it safe at any instant, beside drivers that run, hang or were killed, and for a maintenance that sleeps
between its decision and its deletes:

- *Commits are never deleted* (see `statelib.commits.layout`), only what old ones point to.
- *Whatever goes has a name that nobody writes or refers to any more.* State files and staged files are named by their
  run. A run whose commit number is taken by another can never be committed; the files of one that was committed are
  needed by those of the commits to keep that have them, and by what is made from the newest, which has them too.
- *A state expires before its first file goes* (`statelib.commits.expiry`), and a rollback writes down which commit it
  wants before it looks whether that one has expired: one of the two sees the other.
- *State files that forks need stay*, and a fork is made as a rollback is: it says what it stands on before it looks
  whether that has expired (`statelib.commits.forks`).
- State files of the older layout, named by content alone, may be stored again by a run of an older Hindstream: they
  only go while no run is open.

docs/decisions/0014-state-files-of-a-run.md has the proof. Then it merges small files of the job's topics
(`statelib.commits.rewriting.rewrite`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.checkpoint.retention import is_named_by_content, oldest_kept, unneeded_files
from statelib.commits.dropped import nothing_left_if_dropped
from statelib.commits.expiry import expire_before, oldest_restorable, read_maintenance, restorable_commits
from statelib.commits.forks import files_held_by_forks, forks_of
from statelib.commits.layout import CommitLog, JobLayout
from statelib.commits.maintenance.leftovers import find_leftovers
from statelib.commits.open_runs import open_run_after
from statelib.commits.publication.publish import published_through
from statelib.commits.rewriting.rewrite import FilePolicy, Rewritten, rewrite_files
from statelib.documents.document import FORMAT_VERSION
from statelib.errors.fault_points import step
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from statelib.documents.manifests import Commit
    from statelib.storage import Storage, StoredObject


@dataclass(frozen=True, slots=True)
class Retention:
    """How long the state of a commit stays restorable: as long as one of the two keeps it.

    Attributes:
        commits: The newest commits whose state stays, at least 1.
        for_ms: States that were the newest within this time stay too; None: age keeps nothing.
    """

    commits: int = 10
    for_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Maintained:
    """What maintenance did, or would do.

    Attributes:
        oldest_restorable: The state of this commit and of all later ones can be restored.
        deleted_files: How many files went.
        deleted_bytes: How large they were.
        skipped: What could not be done yet, for a person; None: everything was done.
        merged_files: How many files of topics were merged.
        merged_into: Into how many.
    """

    oldest_restorable: int
    deleted_files: int
    deleted_bytes: int
    skipped: str | None = None
    merged_files: int = 0
    merged_into: int = 0


def maintain(
    warehouse: Storage,
    job: str,
    retention: Retention,
    *,
    now_ms: int,
    files: FilePolicy | None = None,
    dry_run: bool = False,
) -> Maintained:
    """Expires old checkpoints and what dead runs left behind, and merges small files of the job's topics.

    Args:
        warehouse: Root of all durable data.
        job: The job's name.
        retention: What stays.
        now_ms: The wall clock.
        files: When files of topics are merged; None: they stay as they are.
        dry_run: Only says what would be deleted of states and runs.

    Raises:
        ConfigurationError: ``retention`` keeps less than 1 commit; or see `rewrite_files`.
        CorruptedDataError: A file or document is missing or damaged.
        InputError: A file of a topic is missing or damaged.
    """
    if retention.commits < 1:
        raise ConfigurationError("the head's state cannot expire", setting="keep_commits", next_step="keep at least 1")
    log = CommitLog(warehouse, job)
    head = log.head_number()
    oldest = oldest_kept(
        head,
        keep_commits=retention.commits,
        oldest=oldest_restorable(warehouse, job),
        made_ms=lambda n: log.read(n).created_at_ms,
        kept_since_ms=None if retention.for_ms is None else now_ms - retention.for_ms,
    )
    work = _Maintenance(warehouse, log, oldest, dry_run=dry_run)
    rewritten = Rewritten()
    with nothing_left_if_dropped(warehouse, job, [] if dry_run or not head else [log.layout.root]):
        swept, skipped = work.sweep_state(head)
        deleted = [*swept, *work.clean_runs(head)]
        if files is not None and not dry_run:
            rewritten = rewrite_files(warehouse, job, work.kept(), oldest, files, now_ms=now_ms)
            deleted += rewritten.deleted
    return Maintained(
        oldest_restorable=oldest,
        deleted_files=len(deleted),
        deleted_bytes=sum(entry.size_bytes for entry in deleted),
        skipped=skipped,
        merged_files=rewritten.replaced,
        merged_into=rewritten.files,
    )


def free_state(warehouse: Storage, job: str) -> None:
    """Deletes the state files that nobody needs any more, as of what has expired already."""
    log = CommitLog(warehouse, job)
    _Maintenance(warehouse, log, oldest_restorable(warehouse, job), dry_run=False).sweep_state(log.head_number())


class _Maintenance:
    """One maintenance of a job; ``oldest``: the first commit whose state stays."""

    def __init__(self, warehouse: Storage, log: CommitLog, oldest: int, *, dry_run: bool) -> None:
        self._warehouse = warehouse
        self._log = log
        self._oldest = oldest
        self._dry_run = dry_run

    def sweep_state(self, head: int) -> tuple[Sequence[StoredObject], str | None]:
        """Deletes state files that no commit to keep has; what went, and why some could not."""
        record = read_maintenance(self._warehouse, self._log.job)
        forks = forks_of(self._warehouse, self._log.job)
        is_same = record.swept_through == head and record.oldest_restorable == self._oldest
        if is_same and not forks and not record.forks:
            return (), None
        if not self._dry_run:
            expire_before(self._warehouse, self._log.job, self._oldest)
        head = self._log.head_number()  # after the mark: a rollback that has not seen the mark is here, or is planned
        folder = f"{self._log.layout.root}/state"
        stored = self._warehouse.list(folder)
        needed = {path for commit in self.kept(head) for path in commit.state_files()}
        needed |= files_held_by_forks(self._warehouse, self._log.job)
        unneeded = unneeded_files(stored, needed, head=head)
        skipped = None
        if any(map(is_named_by_content, unneeded)):
            open_run = open_run_after(self._warehouse, self._log.job, head)  # after the listing
            if open_run is not None:
                unneeded = [entry for entry in unneeded if not is_named_by_content(entry)]
                skipped = f"run {open_run} is open: state files of an older Hindstream were left alone"
        self._delete(unneeded)
        if skipped is None:
            self._note(oldest_restorable=self._oldest, swept_through=head, forks=forks)
        return unneeded, skipped

    def clean_runs(self, head: int) -> Sequence[StoredObject]:
        """Deletes what runs left behind whose commit number is taken.

        Runs are looked at again as long as their commits' state is kept: a driver that was overtaken may still be
        writing.
        """
        is_rollback = head > 0 and self._log.read(head).rolled_back_to is not None
        if is_rollback and published_through(self._warehouse, self._log.job) < head:
            return ()  # readers still see what has been taken back
        cleaned = read_maintenance(self._warehouse, self._log.job).cleaned_through
        leftovers = find_leftovers(self._warehouse, self._log, range(cleaned + 1, head + 1), kept_from=self._oldest)
        self._delete(leftovers)
        self._note(cleaned_through=max(cleaned, min(self._oldest - 1, head)))
        return leftovers

    def kept(self, head: int | None = None) -> Iterator[Commit]:
        """The commits that can be gone back to, up to ``head`` (None: the newest); the mark says so of the others."""
        return restorable_commits(self._warehouse, self._log.job, self._oldest, head)

    def _note(self, **changes: int | tuple[str, ...]) -> None:
        if self._dry_run:
            return
        before = read_maintenance(self._warehouse, self._log.job)
        after = before.model_copy(update={**changes, "format_version": FORMAT_VERSION})
        if after != before:
            self._warehouse.put(JobLayout(self._log.job).maintenance, after.encode())
            step("maintain.noted")

    def _delete(self, entries: Sequence[StoredObject]) -> None:
        """Deletes in portions, so that a kill in between is an ordinary case."""
        if self._dry_run:
            return
        portion = 1000  # S3's largest request
        for start in range(0, len(entries), portion):
            step("maintain.before-delete")
            self._warehouse.delete([entry.path for entry in entries[start : start + portion]])
        step("maintain.deleted")
