"""Writes what reaches a task's sinks: files of topic archives, and files of repartition topics. All of it is staged."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from statelib.columns.windowed_type import is_windowed_struct
from statelib.commits.layout import JobLayout, topic_path
from statelib.documents.manifests import RepartitionFile, SinkFile
from statelib.documents.places import place_of
from statelib.errors.kinds import ConfigurationError
from statelib.records.key_column import KeyColumn
from statelib.storage.digests import DigestingOutput
from statelib.task.partitioning import placement_of
from statelib.task.source_records import HEADERS_TYPE
from statelib.task.sources import ORDER_TIME
from statelib.topics.archive import topic_schema
from statelib.topics.parquet.writer import PartitionWriter
from statelib.topics.partitioner import partition_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from statelib.records.batch import Batch
    from statelib.storage import Storage
    from statelib.task.work import TaskWork
    from statelib.topology import Sink

_TIME = pa.timestamp("ms", "UTC")

_ROWS_TOGETHER = 1_024

CAUSE = "cause"
"""The column of a repartition file that tells the sequence of the source record, in the task, that caused the row."""


class ArchiveSink:
    """Writes one partition of a topic archive: that of the task's own number.

    Args:
        topic: The topic.
        partition: The partition to write.
        partitions: How many the topic has.
        next_offset: The offset of the next record; moves.
        storage: The warehouse.
        attempt: Makes the files' names unique.
        is_placed: Whether records are in their partitions already, whatever their keys say.
    """

    def __init__(
        self,
        topic: str,
        *,
        partition: int,
        partitions: int,
        next_offset: int,
        storage: Storage,
        attempt: str,
        is_placed: bool = False,
    ) -> None:
        self.topic = topic
        self.place = place_of(topic, partition)
        self.next_offset = next_offset
        self._partition = partition
        self._partitions = partitions
        self._storage = storage.within(topic_path(topic))
        self._attempt = attempt
        self._is_placed = is_placed
        self._writer: PartitionWriter | None = None

    def write(self, batch: Batch) -> None:
        """Writes records, partitioned by key.

        Raises:
            ConfigurationError: A key belongs into another partition.
        """
        if not len(batch):
            return
        if not self._is_placed:
            self._check_partition(batch)
        self.write_columns(batch.keys.archived, batch.value, batch.timestamp, batch.headers)

    def write_columns(
        self, key: pa.Array, value: pa.Array, timestamp: NDArray[np.int64], headers: pa.Array | None
    ) -> None:
        """Writes records whose partition is not checked."""
        if self._writer is None:
            schema = topic_schema(key.type, value.type)
            self._writer = PartitionWriter(
                self._storage, schema, self._partition, attempt=self._attempt, topic=self.topic
            )
        count = len(timestamp)
        columns = {
            "key": key,
            "value": value,
            "timestamp": pa.array(timestamp).cast(_TIME),
            "offset": pa.array(np.arange(self.next_offset, self.next_offset + count)),
            "headers": headers if headers is not None else pa.nulls(count, HEADERS_TYPE),
        }
        self._writer.write(pa.RecordBatch.from_pydict(columns))
        self.next_offset += count

    def write_rows(self, rows: pa.RecordBatch) -> None:
        """Writes the columns key, value, timestamp (int64 ms) and, if there are any, headers, without a check."""
        headers = rows.column("headers") if "headers" in rows.schema.names else None
        self.write_columns(rows.column("key"), rows.column("value"), rows.column("timestamp").to_numpy(), headers)

    def close(self) -> tuple[SinkFile, ...]:
        """Ends the files and describes them."""
        if self._writer is None:
            return ()
        return tuple(SinkFile(topic=self.topic, file=file) for file in self._writer.close())

    def abort(self) -> None:
        """Deletes what was written."""
        if self._writer is not None:
            self._writer.abort()

    def _check_partition(self, batch: Batch) -> None:
        """Records that a sink gets straight from a source must be where Kafka's partitioner would put them."""
        keys = batch.keys.placed_by()
        if isinstance(keys, pa.DictionaryArray):
            of_dictionary = partition_for(keys.dictionary, self._partitions)
            if (of_dictionary == self._partition).all():  # as mostly: then no record needs to be looked at
                return
        where = partition_for(keys, self._partitions)
        misplaced = (where != self._partition) & batch.keys.valid()
        if misplaced.any():
            of_windowed = _windowed_key(batch.key)
            if of_windowed is not None:  # another job has placed them so
                misplaced &= partition_for(KeyColumn(of_windowed).serialized(), self._partitions) != self._partition
        if misplaced.any():
            row = int(np.flatnonzero(misplaced)[0])
            raise ConfigurationError(
                f"key {batch.key[row].as_py()!r} belongs to partition {where[row]} of {self._partitions}, "
                f"but its source has it in partition {self._partition}: the source is not partitioned by key",
                topic=self.topic,
                partition=self._partition,
                next_step="put repartition() before the first operator that needs the key",
            )


class Delivered(NamedTuple):
    """What became of records that have reached a sink.

    Attributes:
        records: How many were written.
        rows: How many rows they are: a partitioner may send a record to several partitions.
        null_keys: How many were dropped because they have no key.
        nowhere: How many a partitioner has sent to no partition.
    """

    records: int
    rows: int
    null_keys: int = 0
    nowhere: int = 0


class RepartitionSink:
    """Writes what one task sends to a repartition topic: one Arrow IPC stream for each partition that gets something.

    Columns: key, value, timestamp (int64 ms), headers, ``order_time`` (int64 ms, ascending); if asked for ``cause``.

    Args:
        sink: The sink.
        work: The task.
        storage: Where the files go.
        attempt: Makes the files' names unique.
        causes: Whether to tell the sequence of the source record that caused each: a column that no task reads.
        passed_on: Told what goes to each partition; None: nobody takes it up before the files are whole.
    """

    def __init__(
        self,
        sink: Sink,
        work: TaskWork,
        *,
        storage: Storage,
        attempt: str,
        causes: bool = False,
        passed_on: Callable[[int, pa.RecordBatch], object] | None = None,
    ) -> None:
        self._passed_on = passed_on
        self._sink = sink
        self._causes = causes
        self._partitions = work.partitions[sink.topic]
        self._storage = storage
        self._prefix = f"{JobLayout(work.job).staging(work.run_id)}/{sink.topic}"
        self._name = f"{work.planned.partition:06d}-{attempt}.arrow"
        self._home = work.planned.partition % self._partitions
        self._files: dict[int, _RepartitionWriter] = {}

    def write(self, batch: Batch, order_time: NDArray[np.int64]) -> Delivered:
        """Adds records, partitioned by key or by what the sink says.

        Args:
            batch: The records.
            order_time: int64, ascending: of the record that each was caused by, in this task's merged order.
        """
        given = len(batch)
        if self._sink.drops_null_keys and not (has_key := batch.keys.valid()).all():
            batch, order_time = batch.filter(has_key), order_time[has_key]
        if not len(batch):
            return Delivered(0, 0, null_keys=given)
        columns = {
            "key": batch.keys.array,
            "value": batch.value,
            "timestamp": pa.array(batch.timestamp),
            "headers": batch.headers if batch.headers is not None else pa.nulls(len(batch), HEADERS_TYPE),
            ORDER_TIME: pa.array(order_time),
        }
        if self._causes:
            columns[CAUSE] = pa.array(batch.sequence)
        sent, where = placement_of(self._sink, batch, self._partitions, self._home)
        rows = pa.RecordBatch.from_pydict(columns)
        for partition in np.unique(where).tolist():
            if partition not in self._files:
                path = f"{self._prefix}/{partition:06d}/{self._name}"
                self._files[partition] = _RepartitionWriter(self._storage, path, rows.schema)
            for_it = rows.take(pa.array(sent[where == partition]))
            self._files[partition].write(for_it)
            if self._passed_on is not None:
                self._passed_on(partition, for_it)
        records = len(np.unique(sent)) if self._sink.partitioner is not None else len(batch)
        return Delivered(records, len(sent), null_keys=given - len(batch), nowhere=len(batch) - records)

    def close(self) -> tuple[RepartitionFile, ...]:
        """Ends the files and describes them."""
        return tuple(file.close(self._sink.topic, partition) for partition, file in sorted(self._files.items()))

    def abort(self) -> None:
        """Deletes what was written."""
        for file in self._files.values():
            file.abort()


class _RepartitionWriter:
    """One file of a repartition topic. Batches of few rows are written together: each costs a kilobyte."""

    def __init__(self, storage: Storage, path: str, schema: pa.Schema) -> None:
        self._storage = storage
        self._path = path
        self._rows = 0
        self._small: list[pa.RecordBatch] = []
        self._small_rows = 0
        self._output = DigestingOutput(storage.open_output(path))
        self._stream = pa.ipc.new_stream(self._output, schema, options=pa.ipc.IpcWriteOptions(compression="lz4"))

    def write(self, rows: pa.RecordBatch) -> None:
        self._rows += len(rows)
        if not self._small and len(rows) >= _ROWS_TOGETHER:
            self._stream.write_batch(rows)
            return
        self._small.append(rows)
        self._small_rows += len(rows)
        if self._small_rows >= _ROWS_TOGETHER:
            self._write_small()

    def _write_small(self) -> None:
        for rows in pa.Table.from_batches(self._small).combine_chunks().to_batches() if self._small else ():
            self._stream.write_batch(rows)
        self._small, self._small_rows = [], 0

    def close(self, topic: str, partition: int) -> RepartitionFile:
        self._write_small()
        self._stream.close()
        self._output.close()
        return RepartitionFile(
            topic=topic,
            partition=partition,
            path=self._path,
            rows=self._rows,
            size_bytes=self._output.size,
            sha256=self._output.sha256,
        )

    def abort(self) -> None:
        self._output.close()
        self._storage.discard(self._path)


def _windowed_key(keys: pa.Array) -> pa.Array | None:
    """Of the windowed keys that an archive has, those without windows; None: they are others."""
    found = None
    while is_windowed_struct(keys.type):
        keys = found = keys.field(0)
    return found
