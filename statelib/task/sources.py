"""Reads a task's source partitions: decodes records, sets unusable ones apart, gives the others their order time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.stream_time import running_stream_time
from statelib.errors.kinds import CorruptedDataError
from statelib.records.batch import NO_TIMESTAMP
from statelib.records.key_column import KeyColumn
from statelib.serdes.base import within_reach
from statelib.storage.digests import sha256_of
from statelib.task.future_records import COUNTER
from statelib.task.merge import merged_records
from statelib.task.source_records import HEADERS_TYPE, Records
from statelib.task.timestamps import extracted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from statelib.documents.manifests import RepartitionFile
    from statelib.storage import Storage
    from statelib.task.copartitioned import CopartitionedCheck
    from statelib.task.future_records import FutureLimit
    from statelib.task.quarantine import Quarantine
    from statelib.topics.parquet.reader import PartitionReader
    from statelib.topology import Source

_BEFORE_ALL_TIME = np.iinfo(np.int64).min

ORDER_TIME = "order_time"
"""The column of a repartition file that holds the upstream task's order time at emission: see `statelib.task.merge`."""


@dataclass(slots=True)
class Progress:
    """How far one source partition has been taken up; moves as its records are read.

    Attributes:
        next_offset: The offset to take up next.
        max_timestamp: The largest timestamp taken up, `NO_TIMESTAMP` before the first.
    """

    next_offset: int = 0
    max_timestamp: int = NO_TIMESTAMP


class TopicSource:
    """The records of one partition of a topic archive.

    Args:
        source: The topology's node.
        reader: The partition's records in the planned range.
        progress: Where the partition stood before; moved along.
        quarantine: Takes records that cannot be used: no timestamp, a negative one, or undecodable.
        placed: Looks whether records are where their keys belong; None: it does not matter.
        future: Tells records from the future; None: there are none.
    """

    def __init__(
        self,
        source: Source,
        reader: PartitionReader,
        *,
        partition: int,
        progress: Progress,
        quarantine: Quarantine,
        placed: CopartitionedCheck | None = None,
        future: FutureLimit | None = None,
    ) -> None:
        self._source = source
        self._reader = reader
        self._partition = partition
        self._progress = progress
        self._quarantine = quarantine
        self._placed = placed
        self._future = future

    @property
    def empty(self) -> Records:
        """No records, of the types that iteration gives."""
        columns = {field.name: pa.nulls(0, field.type) for field in self._reader.schema}
        return self._records(pa.RecordBatch.from_pydict(columns))

    def __iter__(self) -> Iterator[Records]:
        """Chunks in offset order.

        Raises:
            InputError: A record cannot be used, and the job does not quarantine such records.
            ConfigurationError: See `CopartitionedCheck`.
        """
        for batch in self._reader:
            records = self._records(batch)
            if self._placed is not None:
                self._placed.check(records)
            self._progress.next_offset = int(batch.column("offset")[-1].as_py()) + 1
            if len(records):
                self._progress.max_timestamp = int(records.order_time[-1])
                yield records

    def _records(self, batch: pa.RecordBatch) -> Records:
        """The usable records of ``batch``; the others are in quarantine."""
        key, key_problems = self._decode(batch.column("key"), "key")
        value, value_problems = self._decode(batch.column("value"), "value")
        headers = batch.column("headers") if "headers" in batch.schema.names else pa.nulls(len(batch), HEADERS_TYPE)
        decoded = [key, value, batch.column("timestamp"), batch.column("offset"), headers]
        columns = pa.RecordBatch.from_arrays(decoded, ["key", "value", "timestamp", "offset", "headers"])
        # A timestamp may be taken from the value, so what could not be decoded goes first.
        problems = [problems for problems in (key_problems, value_problems) if problems is not None]
        columns, batch = self._without(columns, batch, pc.coalesce(*problems) if problems else None)
        columns, batch = self._timed(columns, batch)
        columns, times, order_time = self._in_time(columns, batch)
        offset = columns.column("offset").to_numpy()
        keys = KeyColumn(columns.column("key"))
        return Records(keys, columns.column("value"), times, offset, columns.column("headers"), order_time)

    def _in_time(
        self, columns: pa.RecordBatch, batch: pa.RecordBatch
    ) -> tuple[pa.RecordBatch, NDArray[np.int64], NDArray[np.int64]]:
        """The records that are taken up, their timestamps and their order times, int64 ms.

        One from the future is set apart, or has the largest timestamp so far of its partition (as Kafka's
        ``UsePartitionTimeOnInvalidTimestamp`` does it): in neither case does it move that.
        """
        times, offset = columns.column("extracted").to_numpy(), columns.column("offset").to_numpy()
        before = self._progress.max_timestamp
        later = None if self._future is None else self._future.later(times, offset)
        if self._future is None or later is None:
            return columns, times, running_stream_time(times, before)
        order_time = running_stream_time(np.where(later, NO_TIMESTAMP, times), before)
        aside = later if self._future.policy == "quarantine" else later & (order_time == NO_TIMESTAMP)
        if aside.any():
            columns, _ = self._without(columns, batch, self._future.reasons(times, offset, aside), always=True)
        times = np.where(later, order_time, times)
        self._quarantine.count(self._source.topic, COUNTER, int((later & ~aside).sum()))
        return columns, times[~aside], order_time[~aside]

    def _without(
        self, columns: pa.RecordBatch, batch: pa.RecordBatch, problems: pa.Array | None, *, always: bool = False
    ) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Both without the rows that have a problem (not null), which go to quarantine as ``batch`` has them.

        ``always``: also where the job does not quarantine what cannot be used.
        """
        if problems is None or problems.null_count == len(problems):
            return columns, batch
        bad = pc.is_valid(problems)
        aside, reasons = batch.filter(bad), problems.filter(bad)
        self._quarantine.add(self._source.topic, self._partition, aside, reasons, always=always)
        good = pc.invert(bad)
        return columns.filter(good), batch.filter(good)

    def _decode(self, column: pa.Array, which: str) -> tuple[pa.Array, pa.Array | None]:
        """The decoded column, and for each record what is wrong with it (null, or None for all: nothing)."""
        consumed = self._source.consumed
        serde = consumed.key_serde if which == "key" else consumed.value_serde
        if serde is None:
            return column, None
        decoded = within_reach(serde.deserialize_lenient(column))
        reasons = pc.binary_join_element_wise(f"undecodable {which}: ", decoded.reasons, "")
        return decoded.values, reasons

    def _timed(self, columns: pa.RecordBatch, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Those of both whose timestamps can be used, with the column ``extracted`` (int64 ms)."""
        times, skipped, problems = extracted(
            self._source,
            columns,
            partition=self._partition,
            partition_time=self._progress.max_timestamp,
            future=self._future,
        )
        columns = columns.append_column("extracted", pa.array(times))
        if skipped is not None and skipped.any():
            self._quarantine.drop(self._source.topic, "invalid-timestamp", int(skipped.sum()))
            taken = pa.array(~skipped)
            columns, batch = columns.filter(taken), batch.filter(taken)
            problems = None if problems is None else problems.filter(taken)
        return self._without(columns, batch, problems)


class GlobalSource:
    """All partitions of a topic archive, for a global table; offsets are those of each record's own partition.

    Args:
        partitions: The sources of all partitions.
        bootstrap: Whether the records come before those of all other sources: see `statelib.topology.nodes.Reading`.
    """

    def __init__(self, partitions: Sequence[TopicSource], *, bootstrap: bool) -> None:
        self._partitions = partitions
        self._bootstrap = bootstrap

    @property
    def empty(self) -> Records:
        """No records, of the types that iteration gives."""
        return self._partitions[0].empty

    def __iter__(self) -> Iterator[Records]:
        """Chunks in order of time, or, if they come before everything, with order times before all time."""
        taken = 0
        for records in merged_records(self._partitions):
            if self._bootstrap:
                order_time = _BEFORE_ALL_TIME + np.arange(taken, taken + len(records))
                taken += len(records)
                yield replace(records, order_time=order_time)
            else:
                yield records


class RepartitionSource:
    """The records that upstream tasks of the same run sent to one partition of a repartition topic.

    They are ordered by (order time of the upstream task at emission, upstream partition, the upstream's own order), and
    get offsets in that order. The order time passes through a chain of repartitions unchanged: a slice that ends at T
    has only records below T at every stage, and the next one only records from T on.
    """

    def __init__(
        self, files: Iterable[RepartitionFile], storage: Storage, *, progress: Progress, types: pa.Schema
    ) -> None:
        self._files = tuple(files)
        self._storage = storage
        self._progress = progress
        self._types = types

    @property
    def empty(self) -> Records:
        """No records, of the types that iteration gives."""
        return no_records(self._types)

    def __iter__(self) -> Iterator[Records]:
        """Chunks in order."""
        for records in merged_records([self._read(file) for file in self._files]):
            yield self.numbered(records)

    def numbered(self, records: Records) -> Records:
        """The next records, with their offsets."""
        first = self._progress.next_offset
        self._progress.next_offset += len(records)
        self._progress.max_timestamp = max(self._progress.max_timestamp, int(records.timestamp.max()))
        return replace(records, offset=np.arange(first, self._progress.next_offset))

    def _read(self, file: RepartitionFile) -> Iterator[Records]:
        yield from map(records_of, _ipc_batches(self._storage, file))


def records_of(rows: pa.RecordBatch) -> Records:
    """Rows of a repartition file (`statelib.task.sinks.RepartitionSink`); their offsets are not known yet."""
    timestamp, order_time = (rows.column(name).to_numpy() for name in ("timestamp", ORDER_TIME))
    keys, value, headers = KeyColumn.of(rows.column("key")), rows.column("value"), rows.column("headers")
    return Records(keys, value, timestamp, timestamp, headers, order_time)


def _ipc_batches(storage: Storage, file: RepartitionFile) -> Iterator[pa.RecordBatch]:
    """The file's batches, if the file is what was written: Arrow would follow a damaged offset wherever it leads."""
    next_step = "run the slice again"
    with storage.open_input(file.path, size_bytes=file.size_bytes) as opened:
        if file.sha256 is not None and sha256_of(opened) != file.sha256:
            what = "a repartition file is damaged: its SHA-256 is not that of what was written"
            raise CorruptedDataError(what, file=storage.uri(file.path), next_step=next_step)
        try:
            with pa.ipc.open_stream(opened) as stream:
                yield from stream
        except (pa.ArrowInvalid, OSError) as error:
            what = f"a repartition file is unreadable: {error}"
            raise CorruptedDataError(what, file=storage.uri(file.path), next_step=next_step) from error


def no_records(types: pa.Schema) -> Records:
    """No records, with keys and values of the types of the fields ``key`` and ``value``."""
    none = np.empty(0, np.int64)
    key, value = (pa.nulls(0, types.field(name).type) for name in ("key", "value"))
    return Records(KeyColumn.of(key), value, none, none, pa.nulls(0, HEADERS_TYPE), none)
