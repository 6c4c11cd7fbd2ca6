"""How much there is to replay: records and bytes of each partition of a job's sources."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hindstream.spark.phases.preview import preview
from statelib.commits import CommitLog, NothingToDo
from statelib.commits.archives import open_archive
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.job.job import Job
    from statelib.settings.settings import Settings
    from statelib.storage import Storage


@dataclass(frozen=True, slots=True)
class Part:
    """Of one partition of a source."""

    topic: str
    partition: int
    records: float
    size_bytes: float


@dataclass(frozen=True, slots=True)
class History:
    """What is to be replayed.

    Attributes:
        parts: By source and partition, those without records too.
        before: Records that the job has replayed before.
        begin_ms: The least timestamp that is known of.
    """

    parts: tuple[Part, ...]
    before: float = 0
    begin_ms: int = 0

    @property
    def records(self) -> float:
        """Of all partitions."""
        return sum(part.records for part in self.parts)

    @property
    def size_bytes(self) -> float:
        """Of all partitions, as they are archived."""
        return sum(part.size_bytes for part in self.parts)

    def of_topic(self, topic: str) -> list[float]:
        """Records of each partition of a topic."""
        return [part.records for part in self.parts if part.topic == topic]

    def scaled(self, *, records: float | None = None, size_bytes: float | None = None) -> History:
        """As much of it, or as much more of the same, in all partitions alike; None: all of it.

        Raises:
            ConfigurationError: It is empty: nobody knows what more of it would be.
        """
        if records is None and size_bytes is None:
            return self
        if not self.records:
            step = "archive a part of the history first: hindstream ingest, or hindstream archive"
            raise ConfigurationError("the sources hold no records to scale up", next_step=step)
        factor = records / self.records if records is not None else (size_bytes or 0) / self.size_bytes
        parts = [replace(p, records=p.records * factor, size_bytes=p.size_bytes * factor) for p in self.parts]
        return replace(self, parts=tuple(parts))


def archived(topics: Sequence[str], warehouse: Storage) -> History:
    """All that the archives of the topics hold, from the beginning.

    Raises:
        ConfigurationError: A topic is not archived.
    """
    parts, times_ms = [], []
    for topic in topics:
        archive = open_archive(warehouse, topic)
        for partition in range(archive.partitions):
            files = archive.files(partition)
            rows, size_bytes = sum(file.rows for file in files), sum(file.size_bytes for file in files)
            parts.append(Part(topic, partition, rows, size_bytes))
            times_ms += [file.min_timestamp_ms for file in files if file.min_timestamp_ms is not None]
    return History(tuple(parts), begin_ms=min(times_ms, default=0))


def next_slice(job: Job, settings: Settings, warehouse: Storage) -> History | NothingToDo:
    """What the next run to ``settings.until`` would replay, as ``hindstream run --dry-run`` says.

    Raises:
        HindstreamError: What the plan of the run would raise.
    """
    found = preview(job, settings)
    if isinstance(found.planned, NothingToDo):
        return found.planned
    reads = {(read.topic, read.partition): read for read in found.reads}
    whole = archived(job.topology.source_topics, warehouse)
    parts = []
    for part in whole.parts:
        read = reads.get((part.topic, part.partition))
        if read is None:
            parts.append(replace(part, records=0, size_bytes=0))
            continue
        # Its files may hold more records than the slice has.
        size_bytes = part.size_bytes * read.records / part.records if part.records else 0
        parts.append(Part(part.topic, part.partition, read.records, size_bytes))
    head = CommitLog(warehouse, job.name).head()
    before = sum(sum(of_topic.values()) for of_topic in head.source_offsets().values()) if head else 0
    return History(tuple(parts), before, whole.begin_ms)
