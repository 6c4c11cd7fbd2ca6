"""The jobs of a warehouse: how far each has come, what it has read and written, and what keeps it from going on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from statelib.commits.archives import open_archive
from statelib.commits.forks import forked_from
from statelib.commits.hold import read_hold
from statelib.commits.layout import CommitLog, Runs
from statelib.commits.versions.promotion import serving
from statelib.errors.kinds import HindstreamError
from statelib.storage.transfers import in_parallel
from statelib.topics.summary import records_before

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.documents.manifests import Commit
    from statelib.documents.plans import ForkedFrom
    from statelib.documents.upkeep import Hold
    from statelib.storage import Storage
    from statelib.topics.version import TopicVersion

OpenRunState = Literal["to be replayed", "to be audited", "to be committed", "quarantined"]


@dataclass(frozen=True, slots=True)
class OpenRun:
    """The newest run that is not committed."""

    run_id: str
    state: OpenRunState


@dataclass(frozen=True, slots=True)
class JobSummary:
    """A job as of its newest commit.

    Attributes:
        job: Its name.
        commits: The newest commit's number; 0: it has made none.
        committed_at_ms: When that was made; None: there is none.
        until_ms: Where its slice ended in event time; None: at the end of what there was, or there is none.
        is_sealed: Whether it has ended the job.
        records_read: Of the sources, up to where it has come; None: an archive of them cannot be read.
        sinks: By topic that it writes, the number of records written.
        hold: Who holds the job; None: nobody.
        forked_from: The commit that it stands on, of a fork; None: it is none.
        serves: Jobs whose readers read this one instead, by name.
        open_run: A run that is not committed.
    """

    job: str
    commits: int
    committed_at_ms: int | None
    until_ms: int | None
    is_sealed: bool
    records_read: int | None
    sinks: Mapping[str, int]
    hold: Hold | None
    forked_from: ForkedFrom | None
    serves: tuple[str, ...]
    open_run: OpenRun | None


@dataclass(frozen=True, slots=True)
class UnreadableJob:
    """A job whose documents cannot be read, and why."""

    job: str
    error: HindstreamError


def job_summaries(warehouse: Storage) -> list[JobSummary | UnreadableJob]:
    """All jobs of a warehouse, by name."""
    names = [path.rpartition("/")[2] for path in warehouse.folders("jobs")]

    def newest(job: str) -> Commit | HindstreamError | None:
        try:
            return CommitLog(warehouse, job).head()
        except HindstreamError as error:
            return error

    def archive(topic: str) -> TopicVersion | None:
        try:
            return open_archive(warehouse, topic)
        except HindstreamError:
            return None

    def read_instead(job: str) -> str | None:
        try:
            return serving(warehouse, job)
        except HindstreamError:
            return None

    heads = dict(zip(names, in_parallel(newest, names, warehouse.requests_at_once), strict=True))
    instead = dict(zip(names, in_parallel(read_instead, names, warehouse.requests_at_once), strict=True))
    commits = [head for head in heads.values() if head is not None and not isinstance(head, HindstreamError)]
    topics = sorted({source.topic for head in commits for source in head.sources})
    archives = dict(zip(topics, in_parallel(archive, topics, warehouse.requests_at_once), strict=True))

    def summary(job: str) -> JobSummary | UnreadableJob:
        head = heads[job]
        if isinstance(head, HindstreamError):
            return UnreadableJob(job, head)
        try:
            serves = tuple(over for over, by in instead.items() if by == job != over)
            return _summary(warehouse, job, head, archives, serves)
        except HindstreamError as error:
            return UnreadableJob(job, error)

    return in_parallel(summary, names, warehouse.requests_at_once)


def _summary(
    warehouse: Storage,
    job: str,
    head: Commit | None,
    archives: Mapping[str, TopicVersion | None],
    serves: tuple[str, ...],
) -> JobSummary:
    return JobSummary(
        job=job,
        commits=head.commit if head else 0,
        committed_at_ms=head.created_at_ms if head else None,
        until_ms=head.until_ms if head else None,
        is_sealed=head is not None and head.end_of_input == "seal",
        records_read=_records_read(head, archives) if head else 0,
        sinks={topic: sum(ends.values()) for topic, ends in head.sink_offsets().items()} if head else {},
        hold=read_hold(warehouse, job),
        forked_from=forked_from(warehouse, job),
        serves=serves,
        open_run=_open_run(Runs(warehouse, job), head.commit + 1 if head else 1),
    )


def _records_read(head: Commit, archives: Mapping[str, TopicVersion | None]) -> int | None:
    total = 0
    for topic, offsets in head.source_offsets().items():
        archive = archives[topic]
        if archive is None or max(offsets, default=0) >= archive.partitions:
            return None
        try:
            total += records_before(archive, offsets)
        except HindstreamError:
            return None
    return total


def _open_run(runs: Runs, commit: int) -> OpenRun | None:
    tries = list(runs.attempts(commit))
    if not tries:
        return None
    run_id = tries[-1].run_id
    audit = runs.audit(run_id)
    if audit is not None:
        return OpenRun(run_id, "to be committed" if audit.success else "quarantined")
    return OpenRun(run_id, "to be audited" if runs.staged(run_id) is not None else "to be replayed")
