"""The records of a sink that runs have written: see `hindstream.interactive.frames`."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hindstream.interactive.frames import Frames
from statelib.commits import late_topic, quarantine_topic
from statelib.commits.archives import open_archive_if_present
from statelib.errors.did_you_mean import did_you_mean
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from statelib.documents.manifests import Commit
    from statelib.job.job import Job
    from statelib.storage import Storage


@dataclass(frozen=True)
class SinkRecords(Frames):
    """The records of a sink up to a commit, ordered by partition and offset. They are read when they are asked for.

    Columns: partition, offset, timestamp, key, value, headers. A frame is flat: fields of a key or value are columns of
    their own, ``key.window_start``, ``value.delay``, null in a tombstone. ``flat=False`` keeps keys and values whole.

    Attributes:
        topic: The sink.
        ranges: By partition, the first offset and the one behind the last.
    """

    topic: str
    ranges: Mapping[int, tuple[int, int]]
    _warehouse: Storage = dataclasses.field(repr=False)

    def __len__(self) -> int:
        """How many records there are; a sink's offsets have no holes."""
        return sum(end - first for first, end in self.ranges.values())

    def _tables(self) -> Iterator[tuple[int, pa.Table]]:
        archive = open_archive_if_present(self._warehouse, self.topic)
        ends = {} if archive is None else archive.end_offsets()
        for partition, (first, end) in sorted(self.ranges.items()):
            if archive is not None:
                yield (
                    partition,
                    archive.reader(partition, first, max(first, min(end, ends.get(partition, 0)))).read_all(),
                )


@dataclass(frozen=True)
class Sinks:
    """The topics that a job writes, as they are at a commit.

    Attributes:
        job: The job.
        warehouse: Where they are.
        head: The commit; None: there is none yet.
        new: The commits whose records are new.
    """

    job: Job
    warehouse: Storage
    head: Commit | None
    new: tuple[Commit, ...] = ()

    def records(self, topic: str, *, only_new: bool) -> SinkRecords:
        """See `hindstream.interactive.result.RunResult.sink`."""
        name = self.job.name
        known = [*self.job.topology.sink_topics, late_topic(name), quarantine_topic(name)]
        if topic not in known:
            step = did_you_mean(topic, known, "one of:")
            raise ConfigurationError("the job does not write this topic", topic=topic, job=name, next_step=step)
        ends = self.head.sink_offsets().get(topic, {}) if self.head else {}
        first = dict.fromkeys(ends, 0)
        if only_new:
            files = [sink.file for commit in self.new for sink in commit.sinks if sink.topic == topic]
            for partition, end in ends.items():
                own = [file.first_offset for file in files if file.partition == partition]
                first[partition] = min(own, default=end)
        return SinkRecords(topic, {p: (first[p], end) for p, end in ends.items()}, self.warehouse)
