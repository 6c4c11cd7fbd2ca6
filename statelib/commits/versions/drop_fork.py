"""Drops a fork: its folder and the archives of its sinks go, and the state files that nobody but it needed.

Nothing of the job that it stands on changes. The record that it is being dropped is created before the look for forks
that stand on the fork itself, and is the last that goes. So a drop that was stopped is ended by the same command, and a
fork of it that is made meanwhile is refused, or seen (`statelib.commits.forks`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.commits.archives import open_archive_if_present
from statelib.commits.dropped import delete_folder
from statelib.commits.forks import ancestors, begins_empty, forked_from, forks_of, holder_of
from statelib.commits.hold import check_free
from statelib.commits.job_names import check_job_name
from statelib.commits.layout import CommitLog, JobLayout, Runs, topic_path
from statelib.commits.maintenance.maintain import free_state
from statelib.commits.open_runs import check_no_replay_open
from statelib.commits.standing import job_meant
from statelib.commits.versions.promotion import check_serves_nobody
from statelib.documents.upkeep import Dropping, Hold
from statelib.errors.fault_points import step
from statelib.errors.kinds import ConfigurationError, HindstreamError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.storage import Storage

_HOLDER = "drop"


@dataclass(frozen=True, slots=True)
class Dropped:
    """What went with a fork.

    Attributes:
        job: The fork.
        forked_from: The job that it stood on.
        topics: The topics that it had written, of those that were still there.
        files: How many files went, documents included, of this call.
        size_bytes: How large they were.
    """

    job: str
    forked_from: str
    topics: tuple[str, ...]
    files: int
    size_bytes: int


def drop_fork(warehouse: Storage, job: str, *, now_ms: int, supersede: bool = False) -> Dropped:
    """Drops a fork. Given again after it was stopped, it goes on.

    Args:
        warehouse: Root of all durable data.
        job: The fork.
        now_ms: The wall clock.
        supersede: Whether to drop it although a run of it is open, which nobody runs any more.

    Raises:
        ConfigurationError: The job is no fork; other forks stand on it; it serves the readers of another job; somebody
            holds it; or a run is open.
    """
    check_job_name(job)
    check_free(warehouse, job, _HOLDER)
    record = Dropping.read_if_present(warehouse, JobLayout(job).dropping)
    if record is None:
        record = _begin(warehouse, job, now_ms=now_ms, supersede=supersede)
    _check_no_forks(warehouse, job)
    check_serves_nobody(warehouse, job)
    layout = JobLayout(job)
    files = size_bytes = 0
    gone = []
    for topic in record.topics:
        if warehouse.list(f"{topic_path(topic)}/_delta_log"):
            gone.append(topic)
        # The log goes first: without one there is no such topic.
        for folder in (f"{topic_path(topic)}/_delta_log", topic_path(topic)):
            count, size = delete_folder(warehouse, folder)
            files, size_bytes = files + count, size_bytes + size
        warehouse.remove_empty_folders(topic_path(topic))
        step("drop.topic-gone")
    count, size = delete_folder(warehouse, layout.root, but={layout.dropping, layout.hold})
    step("drop.folder-gone")
    above = list(ancestors(warehouse, record.forked_from))
    warehouse.delete(JobLayout(record.forked_from).fork(job))
    step("drop.reference-gone")
    for ancestor in above:
        free_state(warehouse, ancestor)
    warehouse.delete(layout.hold)
    step("drop.released")
    warehouse.delete(layout.dropping)
    warehouse.remove_empty_folders(layout.root)
    return Dropped(job, record.forked_from, tuple(gone), files + count, size_bytes + size)


def _begin(warehouse: Storage, job: str, *, now_ms: int, supersede: bool) -> Dropping:
    """Says that the fork is being dropped, after all that can be in the way."""
    base = _base(warehouse, job)
    hold = Hold(holder=_HOLDER, reason="it is being dropped", since_ms=now_ms)
    step("drop.before-hold")
    warehouse.put_if_absent(JobLayout(job).hold, hold.encode())
    step("drop.held")
    check_free(warehouse, job, _HOLDER)
    try:
        head = CommitLog(warehouse, job).head_number()
        if head:
            check_no_replay_open(warehouse, job, head, supersede=supersede)
        _check_no_forks(warehouse, job)
        check_serves_nobody(warehouse, job)
        record = Dropping(job=job, forked_from=base, topics=tuple(_topics(warehouse, job, head)))
    except HindstreamError:
        warehouse.delete(JobLayout(job).hold)
        raise
    step("drop.before-record")
    warehouse.put_if_absent(JobLayout(job).dropping, record.encode())
    step("drop.recorded")
    return record


def _base(warehouse: Storage, job: str) -> str:
    """The job that a fork stands on, or was to stand on.

    Raises:
        ConfigurationError: It is no fork.
    """
    base = forked_from(warehouse, job)
    if base is not None:
        return base.job
    if CommitLog(warehouse, job).head_number() and not begins_empty(warehouse, job):
        what = "the job is no fork, and nothing but a fork is dropped"
        raise ConfigurationError(what, job=job, next_step="name a fork: hindstream jobs lists all jobs")
    begun = holder_of(warehouse, job)
    if begun is None:
        step_ = job_meant(warehouse, job) or "name one: hindstream jobs lists all jobs"
        raise ConfigurationError("there is no such fork", job=job, next_step=step_)
    return begun


def _check_no_forks(warehouse: Storage, job: str) -> None:
    if forks := forks_of(warehouse, job):
        what = f"other forks stand on this one: {', '.join(forks)}"
        raise ConfigurationError(what, job=job, next_step=f"drop them first: hindstream drop {forks[0]}")


def _topics(warehouse: Storage, job: str, head: int) -> Iterator[str]:
    """The topics that a fork has written, or was about to; none that shows the records of somebody else."""
    runs = Runs(warehouse, job)
    planned = {topic for n in range(1, head + 2) for plan in runs.attempts(n) for topic in plan.sink_partitions}
    for topic in sorted(planned):
        archive = open_archive_if_present(warehouse, topic)
        if archive is None or not archive.rows or archive.last_transaction(job) is not None:
            yield topic
