"""The files of one topic: which are merged or compacted now, and which of those that were replaced can go.

See `statelib.commits.rewriting.rewrite` and `statelib.commits.rewriting.source_files`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from statelib.commits.archives import open_archive
from statelib.commits.layout import CommitLog, Runs, topic_path
from statelib.commits.rewriting.compaction import wanted_cleaning
from statelib.commits.rewriting.rewrite_log import RewriteLog, rewrite_name, rewrite_of
from statelib.documents.upkeep import REWRITES, Rewrite
from statelib.errors.fault_points import step
from statelib.errors.kinds import ConfigurationError
from statelib.topics.merging import merge
from statelib.topics.parquet.writer import FileLimits
from statelib.topics.size_tiers import all_small, mergeable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from statelib.commits.rewriting.compaction import ChangelogSettings
    from statelib.documents.plans import Plan
    from statelib.storage import Storage, StoredObject
    from statelib.topics.archive import TopicArchive
    from statelib.topics.cleaning import Cleaning
    from statelib.topics.files import ArchiveFile

_AT_ONCE_BYTES = 1 << 30
"""So much of a topic is merged by one maintenance; the next one goes on."""

REST_MS = 600_000
"""So long files of a source are left alone after they have come."""

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
        merges_sources: Whether archives are merged too that no job writes (`statelib.commits.rewriting.source_files`).
        fully: Whether all small neighbours are merged, not only those that `mergeable` finds worth it.
    """

    attempt: str
    target_bytes: int = 128 << 20
    keep_replaced_ms: int = 7 * 86_400_000
    every_commits: int = 32
    delete_retention_ms: int = 86_400_000
    memory_bytes: int = 128 << 20
    merges_sources: bool = True
    fully: bool = False


class TopicFiles:
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

    def rewrite_small(self) -> list[Rewrite]:
        """Merges what is worth it of an archive that nobody takes files out of; what has come just now stays."""
        until_ms = self._now_ms - REST_MS
        ends = {}
        for partition, end in self._archive.end_offsets().items():
            young = (f for f in self._archive.files(partition) if (self._archive.archived_at_ms(f) or 0) > until_ms)
            ends[partition] = next((file.first_offset for file in young), end)
        return self.rewrite(ends, None)

    def has_small(self) -> bool:
        """Whether some partition has several files below the target."""
        target = self._policy.target_bytes
        partitions = range(self._archive.partitions)
        return any((self._archive.file_columns(p).size_bytes < target).sum() > 1 for p in partitions)

    def has_replaced_since(self, reclaimed: int) -> bool:
        """Whether rewrites after number ``reclaimed`` have replaced files."""
        return (self._archive.last_transaction(REWRITES) or 0) > reclaimed

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
            for entry in self._warehouse.list(root)  # in one go: a request a partition would be dearer
            if entry.path.startswith(f"{root}/partition=") and entry.path not in live
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
        choose = all_small if self._policy.fully else mergeable
        for partition, files in enumerate(settled):
            start = max(cleaned.get(partition, 0), self._archive.cleaned_offset(partition))
            for group in choose([file for file in files if file.first_offset >= start], self._policy.target_bytes):
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


def _open_plans(warehouse: Storage) -> Iterator[Plan]:
    """The plans of all jobs that may yet be committed."""
    for folder in warehouse.folders("jobs"):
        job = folder.rpartition("/")[2]
        runs = Runs(warehouse, job)
        plans = runs.attempts(CommitLog(warehouse, job).head_number() + 1)
        yield from (plan for plan in plans if not runs.is_quarantined(plan.run_id))


def _paths(archive: TopicArchive) -> list[str]:
    return [file.path for file in archive.all_files()]
