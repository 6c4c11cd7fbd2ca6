"""Merges the sorted runs of one partition into the files of a topic archive.

Where records keep their offsets, one without a value may have no timestamp: files of Kafka Connect hold timestamps only
as fields of values. It gets the largest one before it in its partition, the stream time; as the first that of the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.errors.kinds import InputError
from statelib.ingest.records import FIRST, ORDER
from statelib.ingest.runs import comparable, in_order, with_value_type
from statelib.ingest.sequence import Sequencer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from statelib.ingest.runs import Run
    from statelib.topics.parquet.writer import PartitionWriter


def write_partition(
    runs: Sequence[Run],
    partition: int,
    writer: PartitionWriter,
    value: pa.DataType,
    next_offset: int,
    *,
    keeps_offsets: bool = False,
    stream_time_ms: int | None = None,
) -> int:
    """Writes all records of a partition in order; gives the offset behind the last one.

    Args:
        runs: In the order of arrival.
        partition: The partition.
        writer: Takes the records.
        value: The type of all values.
        next_offset: Of the first record; where records keep their offsets the least that it may have.
        keeps_offsets: Whether ``order`` is each record's offset, and stays it.
        stream_time_ms: The largest timestamp that the partition has; None: it is empty.

    Raises:
        InputError: An offset is there twice, or was loaded before; a value does not fit the type of all, or a time the
            archive.
    """
    has_some = [run for run in runs if partition in run.batches]
    parts = [_as_type(run, partition, value) for run in has_some]
    names = has_some[0].schema.names if has_some else []
    batches = merged(parts) if ORDER in names and len(parts) > 1 else (batch for part in parts for batch in part)
    for batch, offsets in _with_offsets(batches, names, partition, next_offset, keeps_offsets=keeps_offsets):
        records = batch.drop_columns([name for name in (ORDER, FIRST) if name in names])
        if keeps_offsets:
            records, stream_time_ms = _with_times(records, stream_time_ms)
        writer.write(records.append_column("offset", pa.array(offsets)))
        next_offset = int(offsets[-1]) + 1
    return next_offset


def _with_offsets(
    batches: Iterator[pa.RecordBatch], names: Sequence[str], partition: int, next_offset: int, *, keeps_offsets: bool
) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int64]]]:
    """Records that are not none, in order, with their offsets."""
    filled = (batch for batch in batches if batch.num_rows)
    if keeps_offsets and FIRST in names:
        for batch, offsets in Sequencer(next_offset).sequence(filled):
            _check_beginnings(batch, offsets, partition)
            yield batch, offsets
        return
    for batch in filled:
        offsets = np.arange(next_offset, next_offset + len(batch))
        if keeps_offsets:
            offsets = _own_offsets(batch[ORDER], partition, next_offset)
        next_offset = int(offsets[-1]) + 1
        yield batch, offsets


def _check_beginnings(batch: pa.RecordBatch, offsets: NDArray[np.int64], partition: int) -> None:
    """The first record of a file, and one that tells its offset itself, have no other offset than that.

    Raises:
        InputError: Another record has it.
    """
    least = batch[ORDER].to_numpy(zero_copy_only=False)
    wrong = (least == batch[FIRST].to_numpy(zero_copy_only=False)) & (least != offsets)
    if wrong.any():
        raise _twice(partition, int(least[wrong.argmax()]), "a record comes twice")


def _twice(partition: int, offset: int, what: str) -> InputError:
    step = "leave out the files that hold it again, or choose --order timestamp: records then get new offsets"
    return InputError(what, partition=partition, offset=offset, next_step=step)


def _own_offsets(order: pa.Array, partition: int, least: int) -> NDArray[np.int64]:
    offsets: NDArray[np.int64] = order.to_numpy(zero_copy_only=False)
    before = np.concatenate([[least - 1], offsets[:-1]])
    if (again := np.flatnonzero(offsets <= before)).size:
        offset = int(offsets[again[0]])
        what = (
            "a record comes twice"
            if offset >= least
            else f"a record is older than the topic, which has come to {least}"
        )
        raise _twice(partition, offset, what)
    return offsets


def _with_times(records: pa.RecordBatch, before_ms: int | None) -> tuple[pa.RecordBatch, int | None]:
    """The records with a timestamp each, and the largest one so far."""
    times = records["timestamp"]
    known = times.is_valid().to_numpy(zero_copy_only=False)
    given = times.fill_null(-1).to_numpy(zero_copy_only=False)
    if before_ms is None:
        before_ms = int(given[known.argmax()]) if known.any() else None
    if before_ms is None:
        return records.set_column(records.schema.get_field_index("timestamp"), "timestamp", times.fill_null(0)), None
    stream_time = np.maximum.accumulate(np.maximum(given, before_ms))
    if not known.all():
        filled = pa.array(np.where(known, given, stream_time))
        records = records.set_column(records.schema.get_field_index("timestamp"), "timestamp", filled)
    return records, int(stream_time[-1]) if len(stream_time) else before_ms


def _as_type(run: Run, partition: int, value: pa.DataType) -> Iterator[pa.RecordBatch]:
    for batch in run.read(partition):
        try:
            yield with_value_type(batch, value)
        except pa.ArrowInvalid as error:
            step = "declare the field's type (--type), or load the file into another topic"
            raise InputError(f"a value does not fit the type of its field: {error}", next_step=step) from None


class _Head:
    """The part of a run that is next."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self.batch: pa.RecordBatch | None = None
        self.order: NDArray[np.generic] = np.empty(0)
        self.advance()

    def advance(self) -> None:
        """To the next batch."""
        self.batch = next((batch for batch in self._batches if batch.num_rows), None)
        if self.batch is not None:
            self.order = comparable(self.batch.column(ORDER))

    def take(self, count: int) -> pa.RecordBatch:
        """The first ``count`` records, which are passed."""
        assert self.batch is not None  # noqa: S101 - asked for of open runs only
        taken = self.batch.slice(0, count)
        if count == len(self.batch):
            self.advance()
        else:
            self.batch, self.order = self.batch.slice(count), self.order[count:]
        return taken


def merged(parts: Iterable[Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """The records of all runs in order; of equal ones those of earlier runs come first.

    Each step emits what can be followed by nothing smaller: up to the least of the runs' last loaded records. Of
    records that equal that one, later runs have to wait: the run that it is of may go on with more of them.
    """
    heads = [head for head in map(_Head, parts) if head.batch is not None]
    while heads:
        lasts = [head.order[-1] for head in heads]
        bound_of = min(range(len(heads)), key=lambda n: lasts[n])  # the first of several
        bound = lasts[bound_of]
        taken = []
        for n, head in enumerate(heads):
            count = int(np.searchsorted(head.order, bound, side="right" if n <= bound_of else "left"))
            if count:
                taken.append(head.take(count))
        heads = [head for head in heads if head.batch is not None]
        if len(taken) == 1:
            yield taken[0]
            continue
        together = pa.concat_tables([pa.Table.from_batches([batch]) for batch in taken], promote_options="default")
        together = together.combine_chunks().take(pa.array(in_order(together[ORDER])))
        yield from together.combine_chunks().to_batches()
