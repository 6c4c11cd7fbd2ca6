"""The records of a topic as a frame of whichever library one works with."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.commits import late_topic, quarantine_topic
from statelib.commits.archives import open_archive_if_present
from statelib.errors.did_you_mean import did_you_mean
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    import polars as pl

    from statelib.documents.manifests import Commit
    from statelib.job.job import Job
    from statelib.storage import Storage


@dataclass(frozen=True)
class SinkRecords:
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

    def to_arrow(self, *, flat: bool = True) -> pa.Table:
        """As a table of pyarrow."""
        archive = open_archive_if_present(self._warehouse, self.topic)
        if archive is None:
            return pa.table({})
        ends = archive.end_offsets()
        parts = []
        for partition, (first, end) in sorted(self.ranges.items()):
            rows = archive.reader(partition, first, max(first, min(end, ends.get(partition, 0)))).read_all()
            parts.append(
                rows.add_column(
                    0, pa.field("partition", pa.int32()), pa.repeat(pa.scalar(partition, pa.int32()), len(rows))
                )
            )
        table = pa.concat_tables(parts) if parts else pa.table({})
        while flat and any(pa.types.is_struct(field.type) for field in table.schema):
            table = table.flatten()
        return table

    def to_pandas(self, *, flat: bool = True) -> pd.DataFrame:
        """As a frame of pandas."""
        frame: pd.DataFrame = self.to_arrow(flat=flat).to_pandas()
        return frame

    def to_polars(self, *, flat: bool = True) -> pl.DataFrame:
        """As a frame of polars, which Hindstream does not bring along.

        Raises:
            ConfigurationError: It is not installed.
        """
        try:
            import polars as pl  # noqa: PLC0415 - optional
        except ImportError as error:
            raise ConfigurationError("polars is not installed", next_step="pip install polars") from error
        frame = pl.from_arrow(self.to_arrow(flat=flat))
        assert isinstance(frame, pl.DataFrame)  # noqa: S101 - a table is none of a series
        return frame


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
