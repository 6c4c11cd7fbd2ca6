"""Fifth phase: shows committed files to the readers of the sinks' archives.

Each archive carries the job's application transaction: the number of the last commit whose files it has. That is all
there is to know, so publishing starts where the archive says, makes good what an interrupted publish missed, in the
order of the commits, and does nothing when repeated. A commit without files for a topic is published to it as well:
the transaction then says that the topic is complete up to that commit.

A rollback is published by taking out of each archive, in one Delta commit, the files of the commits that it goes back
behind; nothing is rewritten or deleted. Commits that have been rolled back before they were published are passed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.commits.archives import open_archive_if_present
from statelib.commits.dropped import nothing_left_if_dropped
from statelib.commits.layout import CommitLog, Runs, rollback_path, rolled_back, topic_path
from statelib.commits.publication.lost_plans import ensure_plan
from statelib.commits.rewriting.rewrite_log import RewriteLog
from statelib.documents.manifests import sink_files
from statelib.documents.upkeep import ROLLBACKS, Rollback
from statelib.errors.fault_points import step
from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.storage import ObjectNotFoundError
from statelib.topics.actions import FileToCommitError
from statelib.topics.archive import TopicArchive
from statelib.topics.parquet.footer import read_footer
from statelib.topics.parquet.schema import topic_schema_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.documents.manifests import Commit
    from statelib.storage import Storage
    from statelib.topics.files import ArchiveFile


@dataclass(frozen=True, slots=True)
class Published:
    """What one commit added to one topic's archive; less than nothing: what a rollback took out of it."""

    topic: str
    commit: int
    files: int
    rows: int


_A_COPY = (
    "restore the topic's folder from a copy of the warehouse, or give the job a new name: it then replays from the"
    " beginning (docs/runbooks/damaged-data.md)"
)
"""The way on where a sink's files are gone."""


def publish(warehouse: Storage, job: str, *, through: int | None = None) -> tuple[Published, ...]:
    """Publishes every commit that the sinks' archives lack; creates archives that are not there.

    Args:
        warehouse: Root of all durable data.
        job: The job's name.
        through: The last commit to publish; None: the head.

    Returns:
        What was added, in the order of the commits; empty if all was there already.

    Raises:
        CorruptedDataError: A committed file is missing or damaged, or an archive has lost records that were published.
        ConfigurationError: Somebody else has written to a sink's archive.
    """
    log = CommitLog(warehouse, job)
    number = log.head_number()
    last = number if through is None else min(through, number)
    if last == 0:
        return ()
    newest = log.read(last)
    warehouse.sync(f"{log.layout.root}/commits")  # no reader may know of a commit that a power cut takes back
    archives = {topic: open_archive_if_present(warehouse, topic) for topic in _topics(log, newest)}
    for archive in archives.values():
        if archive is not None:
            archive.sync()
    _check_not_lost(warehouse, job, archives)
    done = {topic: (archive.last_transaction(job) or 0) if archive else 0 for topic, archive in archives.items()}
    _check_newest(log, done)
    first = min(done.values(), default=last) + 1
    taken_back = rolled_back(newest if n == last else log.read(n) for n in range(first, number + 1))
    published: list[Published] = []
    made = [topic_path(topic) for topic, archive in archives.items() if archive is None]
    with nothing_left_if_dropped(warehouse, job, made):
        for n in range(first, last + 1):
            if n in taken_back:
                continue
            commit = newest if n == last else log.read(n)
            retracted = _retracted(log, commit)
            for topic, archive in archives.items():
                files = [sink.file for sink in commit.sinks if sink.topic == topic]
                if n <= done[topic] or (archive is None and not files):
                    continue
                if archive is not None and commit.rolled_back_to is not None:
                    target, files = archive, retracted.get(topic, [])
                    _take_out(warehouse, archive, commit, files)
                    published.append(Published(topic, n, -len(files), -sum(file.rows for file in files)))
                else:
                    target = archive or create_archive(warehouse, commit, topic, files[0])
                    _add(target, commit, files)
                    published.append(Published(topic, n, len(files), sum(file.rows for file in files)))
                step("publish.committed")
                archives[topic] = target.refresh() if n < last else target
    return tuple(published)


def _check_newest(log: CommitLog, done: Mapping[str, int]) -> None:
    """No archive shows a commit that there is not: its files would pass for what a failed run has left."""
    topic, shown = max(done.items(), key=lambda entry: entry[1], default=("", 0))
    if shown > log.head_number():  # read anew: somebody may have made that commit meanwhile
        raise CorruptedDataError(
            f"the topic's archive shows commit {shown}, whose document is gone: the newest is {log.head_number()}",
            job=log.job,
            topic=topic,
            file=log.layout.commit(shown),
            next_step="put that file back from a copy of the warehouse (docs/runbooks/damaged-data.md)",
        )


def _check_not_lost(warehouse: Storage, job: str, archives: Mapping[str, TopicArchive | None]) -> None:
    """Commits name files that rewrites have replaced since; an archive that shows nothing is not made of them."""
    for topic, archive in archives.items():
        is_lost = archive is None or not (archive.rows or archive.last_transaction(job))
        if is_lost and RewriteLog(warehouse, topic).last():
            raise CorruptedDataError(
                "the topic's archive is gone, or republishing it was interrupted: it holds nothing that the job wrote",
                job=job,
                topic=topic,
                next_step=f"republish it: hindstream state republish {job} {topic} (docs/runbooks/damaged-data.md)",
            )


def published_through(warehouse: Storage, job: str) -> int:
    """The last commit that all sinks' archives have; 0: none."""
    log = CommitLog(warehouse, job)
    head = log.head()
    if head is None:
        return 0
    shown: list[int] = []
    for topic in _topics(log, head):
        archive = open_archive_if_present(warehouse, topic)
        if archive is not None or topic in _written(
            head
        ):  # else its records were taken back before they were published
            shown.append((archive.last_transaction(job) or 0) if archive else 0)
    return min(shown, default=head.commit)


def check_published(warehouse: Storage, head: Commit) -> None:
    """Makes sure that the readers of the sinks have seen ``head``, if it is a rollback, before anything follows it.

    Raises:
        ConfigurationError: They have not.
    """
    if head.rolled_back_to is not None and published_through(warehouse, head.job) < head.commit:
        raise ConfigurationError(
            f"commit {head.commit}, a rollback to {head.rolled_back_to}, has not been published",
            job=head.job,
            next_step="publish it first: hindstream publish",
        )


def _topics(log: CommitLog, commit: Commit) -> list[str]:
    """Topics that have to show ``commit``: those that have had records up to it, or up to what it has taken back."""
    return sorted(_written(commit) | _retracted(log, commit).keys())


def _written(commit: Commit) -> set[str]:
    """Topics that have had records up to ``commit``: one that never had any needs no archive yet."""
    return {topic for topic, ends in commit.sink_offsets().items() if any(ends.values())}


def _retracted(log: CommitLog, commit: Commit) -> dict[str, list[ArchiveFile]]:
    """The files that a rollback takes back, by topic."""
    if commit.rolled_back_to is None:
        return {}
    return sink_files(log.read(n) for n in range(commit.rolled_back_to + 1, commit.commit))


def tell_readers(warehouse: Storage, commit: Commit, archive: TopicArchive) -> None:
    """Leaves the notice of a rollback with the topic, before its records go."""
    ends = commit.sink_offsets().get(archive.topic, {})
    notice = Rollback(
        topic=archive.topic,
        job=commit.job,
        commit=commit.commit,
        rolled_back_to=commit.rolled_back_to or 0,
        end_offsets={p: ends.get(p, 0) for p in range(archive.partitions)},
    )
    step("publish.before-notice")
    warehouse.put_if_absent(rollback_path(archive.topic, commit.commit), notice.encode())


def create_archive(warehouse: Storage, commit: Commit, topic: str, file: ArchiveFile) -> TopicArchive:
    """Makes a sink's archive: columns as in its first file, partitions as planned.

    Raises:
        CorruptedDataError: That file is missing or damaged, or the commit's plan.
    """
    ensure_plan(warehouse, commit)
    plan = Runs(warehouse, commit.job).plan_of(commit)
    root = topic_path(topic)
    path = f"{root}/{file.path}"
    try:
        with warehouse.open_input(path, size_bytes=file.size_bytes) as opened:
            columns = read_footer(opened).schema.to_arrow_schema()
    except ObjectNotFoundError:
        raise CorruptedDataError(
            f"the topic's archive is gone, and with it the files that commit {commit.commit} has written",
            job=commit.job,
            topic=topic,
            partition=file.partition,
            file=warehouse.uri(path),
            next_step=_A_COPY,
        ) from None
    except pa.ArrowException as error:
        next_step = "restore the file from a copy of the warehouse"
        raise CorruptedDataError(
            f"a committed file is damaged: {error}", file=warehouse.uri(path), next_step=next_step
        ) from error
    schema = topic_schema_of(columns)
    step("publish.before-create-archive")
    return TopicArchive.ensure(
        warehouse.uri(root), schema, plan.sink_partitions[topic], topic=topic, options=warehouse.options
    )


def _take_out(warehouse: Storage, archive: TopicArchive, commit: Commit, files: list[ArchiveFile]) -> None:
    """Takes the files out of an archive that a rollback takes back."""
    tell_readers(warehouse, commit, archive)
    step("publish.before-commit")
    archive.retract(
        files,
        app_id=commit.job,
        app_version=commit.commit,
        marker=ROLLBACKS,
        deletion_time_ms=commit.created_at_ms,
    )


def _add(archive: TopicArchive, commit: Commit, files: list[ArchiveFile]) -> None:
    """Adds a commit's files to the newest version of an archive.

    Raises:
        CorruptedDataError: A file is gone or has changed; the archive has lost records that were published.
    """
    step("publish.before-commit")
    _check_no_gap(archive, commit, files)
    try:
        archive.commit(files, app_id=commit.job, app_version=commit.commit, modification_time_ms=commit.created_at_ms)
    except FileToCommitError as error:
        raise CorruptedDataError(
            f"{error.what}, which commit {commit.commit} has written",
            job=commit.job,
            next_step=_A_COPY,
            **error.place,
        ) from error


def _check_no_gap(archive: TopicArchive, commit: Commit, files: list[ArchiveFile]) -> None:
    """A sink's offsets have no holes: a file that begins further on means that published records are gone."""
    if archive.has_committed(commit.job, commit.commit):
        return
    ends = archive.end_offsets()
    for file in sorted(files, key=lambda file: (file.partition, file.first_offset)):
        if file.first_offset > ends[file.partition]:
            raise CorruptedDataError(
                f"the archive ends at offset {ends[file.partition]}, commit {commit.commit} goes on at"
                f" {file.first_offset}: records that were published before are gone",
                job=commit.job,
                topic=archive.topic,
                partition=file.partition,
                file=archive.uri,
                next_step=f"republish the topic: hindstream state republish {commit.job} {archive.topic}"
                " (docs/runbooks/damaged-data.md)",
            )
        ends[file.partition] = file.last_offset + 1
