"""What there is in a topic's archive, by partition and in all, as its Delta log says without a look at the files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from statelib.errors.kinds import HindstreamError
from statelib.storage.transfers import in_parallel
from statelib.topics.disorder import IN_ORDER, Disorder, disorder_of_files, disorder_of_records
from statelib.topics.places import archive_path, topics_in
from statelib.topics.version import TopicVersion

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from statelib.storage import Storage


@dataclass(frozen=True, slots=True)
class PartitionSummary:
    """One partition, or several together.

    Attributes:
        records: How many there are.
        files: How many files hold them.
        size_bytes: Of the files.
        first_ms: The least timestamp; None: it is not known, or there is none.
        last_ms: The greatest.
        disorder: Which records are late; None: the log does not tell.
    """

    records: int
    files: int
    size_bytes: int
    first_ms: int | None
    last_ms: int | None
    disorder: Disorder | None


@dataclass(frozen=True, slots=True)
class OffsetsOfPartition:
    """Where a partition begins and ends: ``end`` is the offset after the last one."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TopicSummary:
    """A topic's archive in one version.

    Attributes:
        topic: Its name.
        version: The Delta version.
        key: Arrow type of the keys.
        value: Arrow type of the values.
        total: Of all partitions.
        partitions: By partition.
        offsets: By partition.
    """

    topic: str
    version: int
    key: pa.DataType
    value: pa.DataType
    total: PartitionSummary
    partitions: tuple[PartitionSummary, ...]
    offsets: tuple[OffsetsOfPartition, ...]


@dataclass(frozen=True, slots=True)
class UnreadableTopic:
    """A topic whose archive cannot be opened, and why."""

    topic: str
    error: HindstreamError


def summaries(warehouse: Storage) -> list[TopicSummary | UnreadableTopic]:
    """All topics of a warehouse, by name. One that is staged for the first time has no archive yet."""

    def found(topic: str) -> TopicSummary | UnreadableTopic:
        try:
            return summarize(TopicVersion.open(warehouse.uri(archive_path(topic)), options=warehouse.options))
        except HindstreamError as error:
            return UnreadableTopic(topic, error)

    return in_parallel(found, topics_in(warehouse), warehouse.requests_at_once)


def summarize(archive: TopicVersion) -> TopicSummary:
    """What a topic's Delta log says of it.

    Raises:
        InputError: Files of it are not those of a topic archive.
    """
    found = tuple(_partition(archive, partition) for partition in range(archive.partitions))
    starts, ends = archive.start_offsets(), archive.end_offsets()
    return TopicSummary(
        topic=archive.topic,
        version=archive.version,
        key=archive.table_schema.field("key").type,
        value=archive.table_schema.field("value").type,
        total=_together(found),
        partitions=found,
        offsets=tuple(OffsetsOfPartition(starts[partition], ends[partition]) for partition in starts),
    )


def scanned(archive: TopicVersion, summary: TopicSummary) -> TopicSummary:
    """The summary with each partition's disorder exact: timestamps are read where the log leaves it open.

    Raises:
        InputError: See `statelib.topics.parquet.reader`.
    """
    left = [p for p, of in enumerate(summary.partitions) if of.disorder is None or not of.disorder.is_exact]
    disorders = in_parallel(
        lambda partition: disorder_of_records(
            batch.column("timestamp") for batch in archive.reader(partition, columns=["timestamp"])
        ),
        left,
        archive.storage.requests_at_once,
    )
    exact = dict(zip(left, disorders, strict=True))
    found = tuple(
        replace(of, disorder=exact.get(partition, of.disorder)) for partition, of in enumerate(summary.partitions)
    )
    return replace(summary, partitions=found, total=_together(found))


def records_before(archive: TopicVersion, offsets: Mapping[int, int]) -> int:
    """How many records come before some offsets, by partition, as far as the log tells.

    A file that an offset lies in counts as if it had no holes.
    """
    total = 0
    for partition, offset in offsets.items():
        files = archive.file_columns(partition)
        is_whole = files.last_offset < offset
        is_cut = ~is_whole & (files.first_offset < offset)
        total += int(files.rows[is_whole].sum())
        total += int(min(files.rows[is_cut].sum(), (offset - files.first_offset[is_cut]).sum()))
    return total


def _partition(archive: TopicVersion, partition: int) -> PartitionSummary:
    files = archive.file_columns(partition)
    least, most = files.min_timestamp_ms, files.max_timestamp_ms
    is_known = least is not None and most is not None and files.are_apart
    return PartitionSummary(
        records=int(files.rows.sum()),
        files=len(files.rows),
        size_bytes=int(files.size_bytes.sum()),
        first_ms=int(least.min()) if least is not None and len(least) else None,
        last_ms=int(most.max()) if most is not None and len(most) else None,
        disorder=disorder_of_files(files.rows, least, most) if is_known else None,  # type: ignore[arg-type]
    )


def _together(partitions: Iterable[PartitionSummary]) -> PartitionSummary:
    total = PartitionSummary(0, 0, 0, None, None, IN_ORDER)
    for one in partitions:
        known = None if total.disorder is None or one.disorder is None else total.disorder.with_those_of(one.disorder)
        total = PartitionSummary(
            records=total.records + one.records,
            files=total.files + one.files,
            size_bytes=total.size_bytes + one.size_bytes,
            first_ms=min((time for time in (total.first_ms, one.first_ms) if time is not None), default=None),
            last_ms=max((time for time in (total.last_ms, one.last_ms) if time is not None), default=None),
            disorder=known,
        )
    return total
