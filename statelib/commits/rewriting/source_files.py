"""Merges small files of archives that no job writes: sources, filled by loads, copies of Kafka topics and programs.

A source that came in by many small commits costs each of its readers an opened file a commit. Its files are merged as
those of a job's own topics are (`statelib.commits.rewriting.rewrite`), under the same numbered documents, so that
several jobs which read it may all do so: one gets the number, the others put nothing into the table. Who may:

- *An archive that some job of the warehouse writes is left to that job.* A rollback takes whole files out of it, and
  only its own maintenance knows which ones. Its writer's transactions in the table say whose it is.
- *An archive that another program has changed is left alone*, as far back as the table's log tells: what that program
  expects of its files nobody here knows. `compact_topic` does it where a person says so.
- *Nobody takes files out of a source again*: loads, copies and appends only add at the end. So all of its files may be
  merged, but for those that have come within `REST_MS`: whoever has just added them may still look for them by name.

Plans and time travel read what was replaced for as long as that stays: see `statelib.commits.rewriting.rewrite`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from statelib.commits.archives import open_archive, open_archive_if_present
from statelib.commits.layout import CommitLog
from statelib.commits.rewriting.topic_files import TopicFiles
from statelib.errors.kinds import ConfigurationError
from statelib.topics.other_writers import history

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from statelib.commits.rewriting.topic_files import FilePolicy
    from statelib.documents.upkeep import Rewrite
    from statelib.storage import Storage
    from statelib.topics.archive import TopicArchive

COMPACTOR = "hindstream"
"""By which name `compact_topic` writes files, where a job's maintenance takes the job's."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction did.

    Attributes:
        replaced: How many files were merged.
        files: Into how many.
        left: How many files the archive has now.
        deleted: How many files went that had been replaced long ago.
    """

    replaced: int
    files: int
    left: int
    deleted: int


def merge_sources(
    warehouse: Storage, job: str, policy: FilePolicy, reclaimed: Mapping[str, int], *, now_ms: int
) -> Iterator[tuple[str, TopicFiles, list[Rewrite]]]:
    """Merges small files of the sources of a job's newest commit, where its maintenance may.

    Args:
        warehouse: Root of all durable data.
        job: The job's name.
        policy: See `FilePolicy`.
        reclaimed: By topic, the rewrite up to which nothing is left of what was replaced.
        now_ms: The wall clock.

    Yields:
        Each topic of which something was merged, or may have to be deleted: its files, and what was merged.
    """
    head = CommitLog(warehouse, job).head()
    for topic in [source.topic for source in head.sources] if head is not None else []:
        archive = open_archive_if_present(warehouse, topic)
        if archive is None:
            continue
        work = TopicFiles(warehouse, job, archive, policy, now_ms)
        has_small, has_replaced = work.has_small(), work.has_replaced_since(reclaimed.get(topic, 0))
        if not (has_small or has_replaced) or writer_of(warehouse, archive) is not None:
            continue
        archive.sync()
        merged = work.rewrite_small() if has_small and _others_wrote(archive) is None else []
        if merged or has_replaced:
            yield topic, work, merged


def compact_topic(
    warehouse: Storage, topic: str, policy: FilePolicy, *, now_ms: int, despite_others: bool = False
) -> Compacted:
    """Merges all small files of an archive that no job writes, whoever reads it; deletes what was replaced long ago.

    Nobody should add to the archive meanwhile: a load that ends just then deletes at once what was merged of it.

    Args:
        warehouse: Root of all durable data.
        topic: The topic.
        policy: See `FilePolicy`.
        now_ms: The wall clock.
        despite_others: Whether it is done although other programs have written to the table.

    Raises:
        ConfigurationError: There is no such archive, a job writes it, or another program has.
        CorruptedDataError: A document is missing or damaged.
        InputError: A file is missing or damaged.
    """
    archive = open_archive(warehouse, topic)
    archive.sync()
    owner = writer_of(warehouse, archive)
    if owner is not None:
        raise ConfigurationError(
            f"the job {owner} writes the topic, and merges its files itself, as far as no rollback needs them",
            topic=topic,
            next_step=f"leave it to the job's maintenance, which each run of {owner} ends with",
        )
    by = None if despite_others else _others_wrote(archive)
    if by is not None:
        raise ConfigurationError(
            f"another program has written to the topic's table: {by}",
            topic=topic,
            file=archive.uri,
            next_step=f"merge its files nevertheless: hindstream topic compact {topic} --despite-other-writers",
        )
    replaced = written = 0
    work = TopicFiles(warehouse, COMPACTOR, archive, replace(policy, fully=True), now_ms)
    while merged := work.rewrite(archive.end_offsets(), None):  # so much at once
        replaced += sum(len(rewrite.replaced) for rewrite in merged)
        written += sum(len(rewrite.files) for rewrite in merged)
    _, deleted = work.reclaim(0)
    return Compacted(replaced, written, len(archive.refresh().all_files()), len(deleted))


def writer_of(warehouse: Storage, archive: TopicArchive) -> str | None:
    """The job of the warehouse that has published to an archive; None: none has."""
    jobs = (folder.rpartition("/")[2] for folder in warehouse.folders("jobs"))
    return next((job for job in jobs if archive.last_transaction(job) is not None), None)


def _others_wrote(archive: TopicArchive) -> str | None:
    """What another program has done to a table, but for VACUUM; None: nothing that its log tells of."""
    for commit in history(archive.uri, options=archive.storage.options):
        if not commit.is_ours and not commit.operation.startswith("VACUUM"):
            return f"version {commit.version}, {commit.operation} by {commit.by}"
    return None
