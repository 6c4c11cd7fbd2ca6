"""``hindstream.read``: a sink as of a commit, whole or not at all."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from hindstream.interactive.frames import Frames
from statelib.commits import published_through
from statelib.commits.archives import open_archive_if_present
from statelib.commits.standing import standing_commit
from statelib.commits.versions.promotion import serving
from statelib.commits.versions.sink_history import sink_history
from statelib.errors.did_you_mean import did_you_mean
from statelib.errors.kinds import ConfigurationError
from statelib.settings.settings import load_settings
from statelib.storage.storage import existing_storage
from statelib.topics.parquet.schema import HEADERS, TIMESTAMP
from statelib.topics.parquet.schema_changes import read_as

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from os import PathLike

    from pyspark.sql import DataFrame, SparkSession

    from statelib.commits.versions.sink_history import Segment
    from statelib.storage import Storage
    from statelib.topics.archive import TopicArchive


_NO_RECORDS = pa.schema(
    [("offset", pa.int64()), ("timestamp", TIMESTAMP), ("key", pa.null()), ("value", pa.null()), ("headers", HEADERS)]
)


@dataclass(frozen=True)
class CommittedSink(Frames):
    """The records of a sink up to a commit, ordered by partition and offset. They are read when they are asked for.

    Columns: partition, offset, timestamp, key, value, headers. A frame is flat: fields of a key or value are columns of
    their own, ``key.window_start``, ``value.delay``, null in a tombstone. ``flat=False`` keeps keys and values whole.
    The records of a fork begin with those of the job that it stands on, and offsets count through.

    Attributes:
        sink: The sink, as the job calls it that was not forked itself.
        job: The job.
        commit: The commit; given to `read`, it gives other sinks as of the same instant.
        segments: Where the records lie.
    """

    sink: str
    job: str
    commit: int
    segments: tuple[Segment, ...]
    _archives: Mapping[str, TopicArchive] = dataclasses.field(repr=False)

    def __len__(self) -> int:
        """How many records there are."""
        return sum(map(len, self.segments))

    @property
    def versions(self) -> dict[str, int]:
        """By topic, a version of its Delta table that has all of these records: for readers that travel in time.

        It may have records of later commits too: `segments` says where these end.
        """
        return {part.topic: self._archives[part.topic].version for part in self.segments}

    def to_reader(self) -> pa.RecordBatchReader:
        """As a stream of batches, for data larger than memory: pyarrow, DuckDB and polars read such.

        Keys and values are whole.

        ::

            records = delays.to_reader()
            duckdb.sql("select key.key, max(value.max_delay) from records group by 1")
        """
        partition = pa.field("partition", pa.int32())
        return pa.RecordBatchReader.from_batches(pa.schema([partition, *self._schema]), self._batches())

    def to_spark(self, spark: SparkSession) -> DataFrame:
        """As a frame of Spark, which reads the files itself. Keys and values are whole.

        Args:
            spark: The session. It must be able to read the warehouse: of S3, with Hadoop's ``s3a``.
        """
        from hindstream.interactive.spark_frame import spark_frame  # noqa: PLC0415 - pyspark

        return spark_frame(spark, self._parts(), self._archives, self._schema)

    @property
    def _schema(self) -> pa.Schema:
        """The columns of the newest topic: before a fork, values may have had other fields."""
        newest = {part.topic: self._archives[part.topic] for part in self.segments}
        return [archive.schema for archive in newest.values()][-1] if newest else _NO_RECORDS

    def _parts(self) -> Iterator[tuple[int, Segment]]:
        """The segments, each with the offset that its first record gets."""
        ends: dict[int, int] = {}
        for part in self.segments:
            begin = ends.get(part.partition, 0)
            ends[part.partition] = begin + len(part)
            yield begin, part

    def _batches(self) -> Iterator[pa.RecordBatch]:
        schema = self._schema
        for begin, part in self._parts():
            reader = self._archives[part.topic].reader(part.partition, part.first_offset, part.end_offset)
            offset = begin
            for batch in reader:
                columns = {
                    "partition": pa.repeat(pa.scalar(part.partition, pa.int32()), len(batch)),
                    **{name: batch.column(name) for name in schema.names},
                    "offset": pa.array(range(offset, offset + len(batch)), pa.int64()),
                    "value": read_as(batch.column("value"), schema.field("value").type),
                }
                offset += len(batch)
                yield pa.RecordBatch.from_pydict(columns)

    def _tables(self) -> Iterator[tuple[int, pa.Table]]:
        for begin, part in self._parts():
            rows = self._archives[part.topic].reader(part.partition, part.first_offset, part.end_offset).read_all()
            offsets = pa.array(range(begin, begin + len(part)), pa.int64())
            yield part.partition, rows.set_column(rows.schema.get_field_index("offset"), "offset", offsets)


def read(
    sink: str,
    *,
    job: str,
    commit: int | Literal["latest"] = "latest",
    promoted: bool = True,
    warehouse: str | PathLike[str] | None = None,
    **settings: object,
) -> CommittedSink:
    """Reads a sink of a job as of a commit: all of its records, and none of a later one.

    ::

        delays = hindstream.read("delays-by-hour", job="flight-delays")
        late = hindstream.read("flight-delays-late", job="flight-delays", commit=delays.commit)  # the same instant
        delays.to_pandas()

    If a fork was promoted over the job, the fork is read: ``delays.job`` says who was. With a commit, or with
    ``promoted=False``, it is the job itself.

    What is published, rolled back or merged later does not change what is read, as long as maintenance keeps the files.
    ``job="flight-delays@6"`` is the same as ``commit=6``.

    Args:
        sink: The sink. Of a fork: as the job calls it that was not forked itself.
        job: The job's name.
        commit: The commit; ``latest``: the newest one that all sinks show.
        promoted: Whether to read the fork that was promoted over the job, if one was and no commit is given.
        warehouse: Root of all durable data, a directory or URL; None: as environment and file say.
        settings: Other settings, by name; they override environment and file.

    Raises:
        ConfigurationError: There is no such warehouse, job, commit or sink; the commit is no number, has been rolled
            back, or is not published yet.
        CorruptedDataError: A document of the job is damaged.
    """
    root = None if warehouse is None else str(warehouse)
    given = load_settings({**settings, "warehouse": root}, given_by="hindstream.read()")
    store = existing_storage(given.warehouse, given.store_options)
    job, n = _job_and_commit(job, commit)
    if n is None and promoted:
        job = serving(store, job)
    number = _latest(store, job) if n is None else n
    history = sink_history(store, job, number)
    if sink not in history:
        step = did_you_mean(sink, list(history), "one of:")
        raise ConfigurationError("the job does not write this topic", topic=sink, job=job, next_step=step)
    segments = history[sink]
    archives = _opened(store, job, number, segments)
    standing_commit(
        store, job, number
    )  # still, now that the archives have been opened: a rollback comes before or after
    return CommittedSink(sink, job, number, segments, archives)


def _job_and_commit(job: str, commit: int | Literal["latest"]) -> tuple[str, int | None]:
    if commit != "latest" and (isinstance(commit, bool) or not isinstance(commit, int)):
        step = 'give its number, such as 7, or "latest"'
        raise ConfigurationError("a commit is a number", job=job, commit=commit, next_step=step)
    name, at, behind = job.rpartition("@")
    asked = None if commit == "latest" else commit
    if not at:
        return job, asked
    if not behind.isdecimal():
        raise ConfigurationError(
            "a commit is a number", job=name, commit=behind, next_step='write "JOB@7" for commit 7'
        )
    if asked not in {None, int(behind)}:
        raise ConfigurationError("two commits are given", job=job, commit=asked, next_step="give one of them")
    return name, int(behind)


def _latest(warehouse: Storage, job: str) -> int:
    """The newest commit whose records all sinks show."""
    head = standing_commit(warehouse, job)
    if head.rolled_back_to is not None:
        return head.commit  # its records are there, whether those that it takes back have gone or not
    shown = min(published_through(warehouse, job), head.commit)
    if not shown:
        raise ConfigurationError("no commit of the job is published", job=job, next_step="hindstream publish")
    return shown


def _opened(warehouse: Storage, job: str, commit: int, segments: Sequence[Segment]) -> dict[str, TopicArchive]:
    """The archives, as they are now.

    Raises:
        ConfigurationError: One does not show the commit yet.
    """
    archives: dict[str, TopicArchive] = {}
    for part in segments:
        archive = archives.get(part.topic) or open_archive_if_present(warehouse, part.topic)
        if archive is None or archive.end_offsets()[part.partition] < part.end_offset:
            what = f"the topic does not show commit {commit} yet"
            raise ConfigurationError(what, job=job, topic=part.topic, next_step="publish it: hindstream publish")
        archives[part.topic] = archive
    return archives
