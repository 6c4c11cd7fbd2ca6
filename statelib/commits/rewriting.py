"""Merges small files of the topics that a job writes, compacts its changelogs, and deletes what was replaced.

A commit leaves a file a partition, and each file costs every reader of the topic something. Now and then, when some
more commits cannot be gone back to any more, neighbouring small files become a larger one (`statelib.topics.size_tiers`
says which). These rules keep it safe:

- *Only files before the offsets of every commit that a rollback may go back to.* A rollback takes whole files of the
  commits after its target out of the topic, so those must stay as they are. The offsets are looked at after the mark of
  `statelib.commits.expiry` has been set: a rollback that does not see the mark is seen here.
- *A rewrite is one Delta commit*: a reader sees the topic before or after it, with the same records, or those that are
  left of a changelog (`statelib.commits.compaction`).
- *A file that was replaced stays* for ``keep_replaced_ms`` (queries that have begun, time travel), and as long as an
  open run of any job of the warehouse has planned to read a version of the topic that has it.

docs/decisions/0018-merged-files.md says why.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from statelib.commits.archives import open_archive, open_archive_if_present
from statelib.commits.compaction import ChangelogUse, wanted_cleaning
from statelib.commits.layout import CommitLog, JobLayout, Runs, topic_path
from statelib.commits.rewrite_log import RewriteLog, rewrite_name, rewrite_of
from statelib.documents.upkeep import REWRITES, Rewrite, Rewriting
from statelib.errors.fault_points import step
from statelib.errors.kinds import ConfigurationError
from statelib.topics.merging import merge
from statelib.topics.size_tiers import mergeable
from statelib.topics.writer import FileLimits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from statelib.commits.compaction import ChangelogSettings
    from statelib.documents.manifests import Commit, Plan
    from statelib.storage import Storage, StoredObject
    from statelib.topics.archive import TopicArchive
    from statelib.topics.cleaning import Cleaning
    from statelib.topics.files import ArchiveFile

_AT_ONCE_BYTES = 1 << 30
"""So much of a topic is merged by one maintenance; the next one goes on."""

_PAYLOAD_FACTOR = 4
"""A file takes about a fourth of the keys and values in it."""


@dataclass(frozen=True, slots=True)
class FilePolicy:
    """When files are rewritten, and how long those stay that were replaced.

    Attributes:
        attempt: Unique to this maintenance: letters, digits, ``-`` and ``_``.
        target_bytes: Files from this size on are left alone.
        keep_replaced_ms: How long replaced files stay.
        every_commits: Files are looked at when the states of so many more commits have expired.
        delete_retention_ms: Kafka's ``delete.retention.ms``: how long a tombstone stays in a compacted changelog.
        memory_bytes: For keys while a changelog is compacted (Kafka's ``log.cleaner.dedupe.buffer.size``).
    """

    attempt: str
    target_bytes: int = 128 << 20
    keep_replaced_ms: int = 7 * 86_400_000
    every_commits: int = 32
    delete_retention_ms: int = 86_400_000
    memory_bytes: int = 128 << 20


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What was done.

    Attributes:
        replaced: How many files were replaced.
        files: By how many.
        deleted: What was deleted: files that were replaced, and what killed maintenances have left.
    """

    replaced: int = 0
    files: int = 0
    deleted: tuple[StoredObject, ...] = ()


def rewrite_files(
    warehouse: Storage, job: str, kept: Iterable[Commit], oldest: int, policy: FilePolicy, *, now_ms: int
) -> Rewritten:
    """Merges and compacts files of all topics that a job writes, if it is time to; deletes what was replaced long ago.

    Args:
        warehouse: Root of all durable data.
        job: The job's name.
        kept: Every commit that can still be gone back to, found after the mark was set that others have expired.
        oldest: The number of the oldest one.
        policy: See `FilePolicy`.
        now_ms: The wall clock.

    Raises:
        ConfigurationError: Somebody else has changed a topic's files.
        CorruptedDataError: A file or document is missing or damaged.
        InputError: A file of a topic is missing or damaged.
    """
    before = read_rewriting(warehouse, job)
    if oldest < before.looked_through + policy.every_commits:
        return Rewritten()
    use = ChangelogUse(warehouse, job)
    offsets = _common_offsets(use.seen(kept))
    changelogs = use.settings()
    merged, is_complete = [], True
    deleted: list[StoredObject] = []
    reclaimed = dict(before.reclaimed)
    for topic, ends in sorted(offsets.items()):
        archive = open_archive_if_present(warehouse, topic)
        if archive is not None:
            archive.sync()
            work = _TopicFiles(warehouse, job, archive, policy, now_ms)
            merged += work.rewrite(ends, changelogs.get(topic))
            is_complete = is_complete and work.is_complete
            reclaimed[topic], gone = work.reclaim(reclaimed.get(topic, 0))
            deleted += gone
    after = Rewriting(looked_through=oldest if is_complete else before.looked_through, reclaimed=reclaimed)
    warehouse.put(JobLayout(job).rewriting, after.encode())
    step("rewrite.noted")
    return Rewritten(
        sum(len(rewrite.replaced) for rewrite in merged), sum(len(rewrite.files) for rewrite in merged), tuple(deleted)
    )


def read_rewriting(warehouse: Storage, job: str) -> Rewriting:
    """How far a job's files have been looked at."""
    return Rewriting.read_if_present(warehouse, JobLayout(job).rewriting) or Rewriting()


class _TopicFiles:
    """The files of one topic.

    Attributes:
        is_complete: Whether all has been done that there was to do.
    """

    def __init__(self, warehouse: Storage, job: str, archive: TopicArchive, policy: FilePolicy, now_ms: int) -> None:
        self.is_complete = True
        self._warehouse = warehouse
        self._job = job
        self._archive = archive
        self._topic = archive.topic
        self._policy = policy
        self._now_ms = now_ms
        self._log = RewriteLog(warehouse, archive.topic)

    def rewrite(self, ends: Mapping[int, int], changelog: ChangelogSettings | None) -> list[Rewrite]:
        """Compacts and merges what lies before the offsets ``ends`` and is worth it. Gives the rewrite, if any.

        Args:
            ends: By partition.
            changelog: How the topic is compacted; None: not at all.
        """
        last = self._log.last()
        if last:
            self._archive = self._log.carry_out(self._archive, last)
        settled = [
            list(takewhile(lambda file: file.last_offset < ends.get(file.partition, 0), self._archive.files(partition)))
            for partition in range(self._archive.partitions)
        ]
        cleanings = [] if changelog is None else self._cleanings(settled, changelog, last)
        groups = self._chosen(settled, {cleaning.partition: cleaning.end_offset for cleaning in cleanings})
        if not groups and not cleanings:
            return []
        rewrite = Rewrite(
            topic=self._topic,
            job=self._job,
            rewrite=last + 1,
            replaced=tuple(file for group in (*(one.files for one in cleanings), *groups) for file in group),
            files=self._written(cleanings, groups, last + 1),
            cleaned={cleaning.partition: cleaning.end_offset for cleaning in cleanings},
            created_at_ms=self._now_ms,
        )
        step("rewrite.before-create")
        if not self._log.create(rewrite):  # another maintenance was quicker
            self._delete([f"{topic_path(self._topic)}/{file.path}" for file in rewrite.files])
            self.is_complete = False
            return []
        step("rewrite.created")
        self._archive = self._log.carry_out(self._archive, rewrite.rewrite)
        return [rewrite]

    def reclaim(self, reclaimed: int) -> tuple[int, list[StoredObject]]:
        """Deletes what rewrites after number ``reclaimed`` have replaced, and what killed maintenances have left.

        Returns:
            The rewrite up to which nothing is left, and what went.
        """
        root, last = topic_path(self._topic), self._log.last()
        live = {f"{root}/{path}" for path in _paths(self._archive)}
        due = self._due(reclaimed, self._archive.last_transaction(REWRITES) or 0)
        needed = {f"{root}/{path}" for path in self._planned()} if due else set()
        replaced = {f"{root}/{file.path}": n for n in due for file in self._log.read(n).replaced}
        held = [n for path, n in replaced.items() if path in needed or path in live]
        stored = [
            entry
            for partition in range(self._archive.partitions)
            for entry in self._warehouse.list(f"{root}/partition={partition}")
            if entry.path not in live
        ]
        gone = [e for e in stored if (e.path in replaced and e.path not in needed) or self._is_dead(e, last)]
        if gone:
            step("rewrite.before-delete")
            self._delete([entry.path for entry in gone])
            step("rewrite.deleted")
        return min([*(n - 1 for n in held), max(due, default=reclaimed)]), gone

    def _cleanings(
        self, settled: Sequence[Sequence[ArchiveFile]], changelog: ChangelogSettings, last: int
    ) -> list[Cleaning]:
        """What is compacted now."""
        until_ms = self._now_ms - self._policy.delete_retention_ms

        def tombstones_before(partition: int) -> int:
            return self._log.cleaned_before(partition, until_ms, last)

        wanted = (wanted_cleaning(self._archive, files, changelog, tombstones_before) for files in settled)
        return [cleaning for cleaning in wanted if cleaning is not None]

    def _chosen(self, settled: Sequence[Sequence[ArchiveFile]], cleaned: Mapping[int, int]) -> list[list[ArchiveFile]]:
        """The groups of files to merge now, of those after what has been compacted, or will be (``cleaned``)."""
        chosen: list[list[ArchiveFile]] = []
        size_bytes = 0
        for partition, files in enumerate(settled):
            start = max(cleaned.get(partition, 0), self._archive.cleaned_offset(partition))
            for group in mergeable([file for file in files if file.first_offset >= start], self._policy.target_bytes):
                if size_bytes >= _AT_ONCE_BYTES:
                    self.is_complete = False
                    return chosen
                chosen.append(group)
                size_bytes += sum(file.size_bytes for file in group)
        return chosen

    def _written(
        self, cleanings: Sequence[Cleaning], groups: Sequence[Sequence[ArchiveFile]], n: int
    ) -> tuple[ArchiveFile, ...]:
        name = rewrite_name(self._job, n, self._policy.attempt)
        limits = FileLimits(file_bytes=_PAYLOAD_FACTOR * self._policy.target_bytes)
        files: list[ArchiveFile] = []
        try:
            for cleaning in cleanings:
                # Its compiled kernels take their time to be loaded, and few maintenances have anything to clean.
                from statelib.topics.cleaner import clean  # noqa: PLC0415

                files += clean(
                    self._archive, cleaning, attempt=name, limits=limits, memory_bytes=self._policy.memory_bytes
                )
                step("rewrite.cleaned")
            for group in groups:
                files.append(merge(self._archive, group, attempt=name))
                step("rewrite.written")
        except BaseException:
            self._delete([f"{topic_path(self._topic)}/{file.path}" for file in files])
            raise
        return tuple(files)

    def _due(self, reclaimed: int, done: int) -> list[int]:
        """The rewrites whose replaced files have stayed long enough."""
        until_ms = self._now_ms - self._policy.keep_replaced_ms
        numbers = range(reclaimed + 1, done + 1)
        return list(takewhile(lambda n: self._log.read(n).created_at_ms <= until_ms, numbers))

    def _planned(self) -> set[str]:
        """The files that open runs of any job may want to read."""
        versions = {
            source.delta_version
            for plan in _open_plans(self._warehouse)
            for source in plan.sources
            if source.topic == self._topic
        }
        paths: set[str] = set()
        for version in versions:
            try:
                paths.update(_paths(open_archive(self._warehouse, self._topic, version)))
            except ConfigurationError:  # the log does not go back that far: nobody can read it
                continue
        return paths

    def _is_dead(self, entry: StoredObject, last: int) -> bool:
        """Whether a file was written for a rewrite that somebody else has made without it."""
        n = rewrite_of(entry.path)
        if n is None or n > last:
            return False
        return entry.path not in {f"{topic_path(self._topic)}/{file.path}" for file in self._log.read(n).files}

    def _delete(self, paths: Sequence[str]) -> None:
        portion = 1000  # S3's largest request
        for start in range(0, len(paths), portion):
            self._warehouse.delete(paths[start : start + portion])


def _common_offsets(commits: Iterable[Commit]) -> dict[str, dict[int, int]]:
    """By topic and partition, the offset that none of ``commits`` comes before."""
    least: dict[str, dict[int, int]] | None = None
    for commit in commits:
        at = commit.sink_offsets()
        if least is None:
            least = at
        for topic, ends in least.items():
            least[topic] = {partition: min(end, at.get(topic, {}).get(partition, 0)) for partition, end in ends.items()}
    return least or {}


def _open_plans(warehouse: Storage) -> Iterator[Plan]:
    """The plans of all jobs that may yet be committed."""
    for folder in warehouse.folders("jobs"):
        job = folder.rpartition("/")[2]
        runs = Runs(warehouse, job)
        plans = runs.attempts(CommitLog(warehouse, job).head_number() + 1)
        yield from (plan for plan in plans if not runs.is_quarantined(plan.run_id))


def _paths(archive: TopicArchive) -> list[str]:
    return [file.path for file in archive.all_files()]
