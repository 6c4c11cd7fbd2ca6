"""What a drop of a fork leaves to those who were at work on it: to delete what they write when it is gone.

A drop has looked into their folders before they wrote. One that begins later finds what is there.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from statelib.commits.forks import is_being_dropped
from statelib.commits.layout import CommitLog, JobLayout, Runs
from statelib.errors.fault_points import step
from statelib.errors.kinds import ConfigurationError, HindstreamError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from statelib.storage import Storage

_PORTION = 1000  # S3's largest request


def is_dropped(warehouse: Storage, job: str) -> bool:
    """Whether a job is being dropped or is gone."""
    if is_being_dropped(warehouse, job):
        return True
    return not CommitLog(warehouse, job).head_number() and next(Runs(warehouse, job).attempts(1), None) is None


def delete_if_dropped(warehouse: Storage, job: str, folder: str) -> bool:
    """Deletes what lies below a folder of a job that is being dropped or is gone.

    Args:
        warehouse: Root of all durable data.
        job: The job.
        folder: Its folder, one below it, or that of a topic that nobody else has written.

    Returns:
        Whether the job is being dropped or is gone.
    """
    if not is_dropped(warehouse, job):
        return False
    layout = JobLayout(job)
    delete_folder(warehouse, folder, but={layout.dropping, layout.hold})
    warehouse.remove_empty_folders(folder)
    warehouse.remove_empty_folders(layout.root)
    return True


@contextmanager
def nothing_left_if_dropped(warehouse: Storage, job: str, folders: Sequence[str]) -> Iterator[None]:
    """Does `delete_if_dropped` at the end of a context, however it ends.

    Args:
        warehouse: Root of all durable data.
        job: The job.
        folders: What is written there within the context goes; none: nothing is looked at.

    Raises:
        ConfigurationError: The job was dropped meanwhile.
    """
    try:
        yield
    except HindstreamError as error:
        _leave(warehouse, job, folders, error)
        raise
    _leave(warehouse, job, folders)


def _leave(warehouse: Storage, job: str, folders: Sequence[str], error: HindstreamError | None = None) -> None:
    gone = [folder for folder in folders if delete_if_dropped(warehouse, job, folder)]
    if gone:
        what, step_ = "the fork was dropped meanwhile", "fork the job again, to go on: hindstream fork JOB NEW"
        raise ConfigurationError(what, job=job, next_step=step_) from error


def delete_folder(warehouse: Storage, folder: str, but: frozenset[str] | set[str] = frozenset()) -> tuple[int, int]:
    """Deletes what lies in a folder, in portions; how many files that were, and how large in bytes."""
    entries = [entry for entry in warehouse.list(folder) if entry.path not in but]
    for start in range(0, len(entries), _PORTION):
        step("drop.before-delete")
        warehouse.delete([entry.path for entry in entries[start : start + _PORTION]])
    return len(entries), sum(entry.size_bytes for entry in entries)
