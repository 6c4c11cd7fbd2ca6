"""Archives any records: spreads them over a topic's partitions as a producer with Kafka's default partitioner would."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.errors.kinds import ConfigurationError, RetryableError
from statelib.serdes import serde_for
from statelib.topics.actions import OffsetsTakenError
from statelib.topics.parquet.writer import FileLimits
from statelib.topics.partitioner import partition_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from statelib.topics.archive import TopicArchive
    from statelib.topics.parquet.writer import PartitionWriter

_ASSIGNED = frozenset({"partition", "offset"})
_MEMORY_BYTES = 512 << 20
"""What the row groups of all partitions may hold together."""


def append_records(
    archive: TopicArchive,
    records: pa.Table | Iterable[pa.RecordBatch],
    *,
    attempt: str,
    app_id: str,
    app_version: int,
    modification_time_ms: int = 0,
    limits: FileLimits | None = None,
) -> bool:
    """Adds records to a topic in the order given, in one Delta commit.

    Each goes to the partition that Kafka's partitioner gives its key (serialised by `serde_for` its type), and gets the
    next offset there; the n-th null key of the call goes to partition ``n mod partitions``.

    Args:
        archive: Any version of the topic; the newest one is added to.
        records: Columns ``key``, ``value``, ``timestamp`` and, if there are any, ``headers``.
        attempt: Unique to this call, repeats included: it is part of the files' names.
        app_id: As for `TopicArchive.commit`.
        app_version: As for `TopicArchive.commit`.
        modification_time_ms: As for `TopicArchive.commit`.
        limits: See `FileLimits`; None: row groups so small that all partitions together stay below 512 MB.

    Returns:
        False, and nothing has changed, if ``app_id`` has committed ``app_version`` or a later one already.

    Raises:
        ConfigurationError: Columns do not fit the archive, or a file may not be written.
        InputError: A record has a time that the archive cannot hold.
        RetryableError: Another writer was quicker, or the store did not answer.
    """
    newest = archive.refresh()
    if newest.has_committed(app_id, app_version):
        newest.sync()
        return False
    if limits is None:
        limits = FileLimits(row_group_bytes=min(FileLimits().row_group_bytes, _MEMORY_BYTES // newest.partitions))
    writers = {p: newest.writer(p, attempt=attempt, limits=limits) for p in range(newest.partitions)}
    try:
        distribute(records.to_batches() if isinstance(records, pa.Table) else records, writers, newest.end_offsets())
        files = [file for writer in writers.values() for file in writer.close()]
    except BaseException:
        _abort(writers)
        raise
    # After any other error the commit may have landed after all: then the files must stay.
    try:
        added = newest.commit(files, app_id=app_id, app_version=app_version, modification_time_ms=modification_time_ms)
    except OffsetsTakenError as error:
        _abort(writers)
        what = "another writer appended to the topic at the same time"
        raise RetryableError(what, topic=newest.topic, next_step="run the same command again") from error
    if not added:
        _abort(writers)
    return added


def distribute(
    batches: Iterable[pa.RecordBatch], writers: Mapping[int, PartitionWriter], next_offsets: Mapping[int, int]
) -> None:
    """Gives each record, in the order given, to its partition's writer with the next offset there.

    Args:
        batches: Columns ``key``, ``value``, ``timestamp`` and, if there are any, ``headers``.
        writers: By partition, for all partitions 0 to n - 1.
        next_offsets: By partition, the offset of its next record.

    Raises:
        ConfigurationError: Columns do not fit the topic.
    """
    partitions = len(writers)
    offsets = np.array([next_offsets[partition] for partition in range(partitions)], np.int64)
    null_keys = 0
    for batch in batches:
        if "key" not in batch.schema.names or not _ASSIGNED.isdisjoint(batch.schema.names):
            what = f"records to be partitioned have the columns {', '.join(batch.schema.names)}"
            step = "give key, value, timestamp and headers; partitions and offsets are assigned"
            raise ConfigurationError(what, next_step=step)
        key = batch.column("key")
        where = partition_for(serde_for(key.type).serialize(key), partitions, null_keys_before=null_keys)
        null_keys += key.null_count
        counts = np.bincount(where, minlength=partitions)
        starts = np.cumsum(counts) - counts
        grouped = batch.take(pa.array(np.argsort(where, kind="stable")))
        for partition in np.flatnonzero(counts).tolist():
            records = grouped.slice(starts[partition], counts[partition])
            assigned = np.arange(offsets[partition], offsets[partition] + counts[partition])
            writers[partition].write(records.append_column("offset", pa.array(assigned)))
        offsets += counts


def _abort(writers: Mapping[int, PartitionWriter]) -> None:
    for writer in writers.values():
        writer.abort()
