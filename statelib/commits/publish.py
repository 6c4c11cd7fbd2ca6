"""Fifth phase: shows committed files to the readers of the sinks' archives.

Each archive carries the job's application transaction: the number of the last commit whose files it has. That is all
there is to know, so publishing starts where the archive says, makes good what an interrupted publish missed, in the
order of the commits, and does nothing when repeated. A commit without files for a topic is published to it as well:
the transaction then says that the topic is complete up to that commit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from statelib.commits.archives import open_archive_if_present
from statelib.commits.layout import CommitLog, Runs, topic_path
from statelib.errors import CorruptedDataError
from statelib.steps import step
from statelib.topics.archive import TopicArchive
from statelib.topics.schema import topic_schema

if TYPE_CHECKING:
    from statelib.manifests import Commit
    from statelib.storage import Storage
    from statelib.topics.files import ArchiveFile


@dataclass(frozen=True, slots=True)
class Published:
    """What one commit added to one topic's archive."""

    topic: str
    commit: int
    files: int
    rows: int


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
    archives = {topic: open_archive_if_present(warehouse, topic) for topic in _written_topics(newest)}
    done = {topic: (archive.last_transaction(job) or 0) if archive else 0 for topic, archive in archives.items()}
    published: list[Published] = []
    for n in range(min(done.values(), default=last) + 1, last + 1):
        commit = newest if n == last else log.read(n)
        for topic, archive in archives.items():
            files = [sink.file for sink in commit.sinks if sink.topic == topic]
            if n <= done[topic] or (archive is None and not files):
                continue
            target = archive or _create(warehouse, commit, topic, files[0])
            step("publish.before-commit")
            _add(target, commit, files)
            step("publish.committed")
            archives[topic] = target.refresh() if n < last else target
            published.append(Published(topic, n, len(files), sum(file.rows for file in files)))
    return tuple(published)


def published_through(warehouse: Storage, job: str) -> int:
    """The last commit that all sinks' archives have; 0: none."""
    head = CommitLog(warehouse, job).head()
    if head is None:
        return 0
    archives = [open_archive_if_present(warehouse, topic) for topic in _written_topics(head)]
    return min(((archive.last_transaction(job) or 0) if archive else 0 for archive in archives), default=head.commit)


def _written_topics(commit: Commit) -> list[str]:
    """Topics that have had records up to ``commit``: one that never had any needs no archive yet."""
    topics = {
        place.rpartition("/")[0]
        for task in commit.tasks.values()
        for place, offset in task.position.sink_offsets.items()
        if offset > 0
    }
    return sorted(topics)


def _create(warehouse: Storage, commit: Commit, topic: str, file: ArchiveFile) -> TopicArchive:
    """Makes a sink's archive: columns as in its first file, partitions as planned."""
    runs = Runs(warehouse, commit.job)
    plan = runs.plan(commit.run_id)
    if plan is None:
        raise CorruptedDataError(
            f"the plan of commit {commit.commit} is missing",
            file=warehouse.uri(runs.layout.plan(commit.run_id)),
            next_step="restore the file from a copy of the warehouse",
        )
    root = topic_path(topic)
    with warehouse.open_input(f"{root}/{file.path}") as opened:
        columns = pq.read_schema(opened)
    schema = topic_schema(columns.field("key").type, columns.field("value").type)
    step("publish.before-create-archive")
    return TopicArchive.ensure(
        warehouse.uri(root), schema, plan.sink_partitions[topic], topic=topic, options=warehouse.options
    )


def _add(archive: TopicArchive, commit: Commit, files: list[ArchiveFile]) -> None:
    """Adds a commit's files to the newest version of an archive."""
    _check_no_gap(archive, commit, files)
    archive.commit(files, app_id=commit.job, app_version=commit.commit, modification_time_ms=commit.created_at_ms)


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
                next_step="restore the archive's former version (Delta time travel), then publish again",
            )
        ends[file.partition] = file.last_offset + 1
