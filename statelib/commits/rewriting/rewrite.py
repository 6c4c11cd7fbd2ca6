"""Merges small files of the topics that a job writes, compacts its changelogs, and deletes what was replaced.

A commit leaves a file a partition, and each file costs every reader of the topic something. Now and then, when some
more commits cannot be gone back to any more, neighbouring small files become a larger one (`statelib.topics.size_tiers`
says which). These rules keep it safe:

- *Only files before the offsets of every commit that a rollback may go back to.* A rollback takes whole files of the
  commits after its target out of the topic, so those must stay as they are. The offsets are looked at after the mark of
  `statelib.commits.expiry` has been set: a rollback that does not see the mark is seen here.
- *A rewrite is one Delta commit*: a reader sees the topic before or after it, with the same records, or those that are
  left of a changelog (`statelib.commits.rewriting.compaction`).
- *A file that was replaced stays* for ``keep_replaced_ms`` (queries that have begun, time travel), and as long as an
  open run of any job of the warehouse has planned to read a version of the topic that has it.

docs/decisions/0018-merged-files.md says why.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from statelib.commits.archives import open_archive_if_present
from statelib.commits.layout import JobLayout
from statelib.commits.rewriting.compaction import ChangelogUse
from statelib.commits.rewriting.source_files import merge_sources
from statelib.commits.rewriting.topic_files import FilePolicy, TopicFiles
from statelib.documents.upkeep import Rewriting
from statelib.errors.fault_points import step

if TYPE_CHECKING:
    from collections.abc import Iterable

    from statelib.documents.manifests import Commit
    from statelib.documents.upkeep import Rewrite
    from statelib.storage import Storage, StoredObject

__all__ = ["FilePolicy", "Rewritten", "read_rewriting", "rewrite_files"]


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


@dataclass
class _Done:
    """What has been done so far; ``reclaimed``: by topic, as `Rewriting` has it."""

    reclaimed: dict[str, int]
    merged: list[Rewrite] = field(default_factory=list)
    deleted: list[StoredObject] = field(default_factory=list)

    def reclaim(self, topic: str, work: TopicFiles) -> None:
        """Deletes what was replaced long ago."""
        self.reclaimed[topic], gone = work.reclaim(self.reclaimed.get(topic, 0))
        self.deleted += gone


def rewrite_files(
    warehouse: Storage, job: str, kept: Iterable[Commit], oldest: int, policy: FilePolicy, *, now_ms: int
) -> Rewritten:
    """Merges and compacts files of all topics that a job writes, if it is time to; deletes what was replaced long ago.

    Small files of its sources are merged too, where no job writes them (`statelib.commits.rewriting.source_files`).

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
    done = _Done(reclaimed=dict(before.reclaimed))
    looked_through = before.looked_through
    if oldest >= looked_through + policy.every_commits:
        use = ChangelogUse(warehouse, job)
        offsets = _common_offsets(use.seen(kept))
        changelogs = use.settings()
        is_complete = True
        for topic, ends in sorted(offsets.items()):
            archive = open_archive_if_present(warehouse, topic)
            if archive is not None:
                archive.sync()
                work = TopicFiles(warehouse, job, archive, policy, now_ms)
                done.merged += work.rewrite(ends, changelogs.get(topic))
                is_complete = is_complete and work.is_complete
                done.reclaim(topic, work)
        looked_through = oldest if is_complete else looked_through
    if policy.merges_sources:
        for topic, work, merged in merge_sources(warehouse, job, policy, done.reclaimed, now_ms=now_ms):
            done.merged += merged
            done.reclaim(topic, work)
    after = Rewriting(looked_through=looked_through, reclaimed=done.reclaimed)
    if after != before:
        warehouse.put(JobLayout(job).rewriting, after.encode())
        step("rewrite.noted")
    return Rewritten(
        sum(len(rewrite.replaced) for rewrite in done.merged),
        sum(len(rewrite.files) for rewrite in done.merged),
        tuple(done.deleted),
    )


def read_rewriting(warehouse: Storage, job: str) -> Rewriting:
    """How far a job's files have been looked at."""
    return Rewriting.read_if_present(warehouse, JobLayout(job).rewriting) or Rewriting()


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
