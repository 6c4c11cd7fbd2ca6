"""Records of a topic by key, offset and time: only the files that may have some are opened, by the Delta log."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.records.key_column import KeyColumn
from statelib.topics.partitioner import partition_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from statelib.topics.version import TopicVersion

KeyValue = Any
"""A key as a Python value of its type; of a struct a mapping, in which fields that are left out have any value."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of each partition: offsets and timestamps (ms), each from the first to before the second; None: no end."""

    start_offset: int = 0
    end_offset: int | None = None
    start_ms: int | None = None
    end_ms: int | None = None


def partitions_of(archive: TopicVersion, keys: Iterable[KeyValue]) -> list[int]:
    """All partitions, those first in which Kafka's partitioner puts the keys; of a windowed one by its plain key."""
    type_ = archive.table_schema.field("key").type
    own: list[int] = []
    for key in keys:
        column = pa.array([key], type_)
        own += partition_for(KeyColumn.of(column).placed_by(), archive.partitions).tolist()
    return list(dict.fromkeys([*own, *range(archive.partitions)]))


def find(archive: TopicVersion, partition: int, within: Stretch, keys: Iterable[KeyValue] = ()) -> Iterator[pa.Table]:
    """Records of one partition, by offset, a table a file; none that is empty.

    Args:
        archive: The topic.
        partition: The partition.
        within: Which part of it.
        keys: Of a record with one of them; none: of any.

    Raises:
        InputError: See `statelib.topics.parquet.reader`.
    """
    wanted = list(keys)
    for first, last in _files(archive, partition, within):
        end = last + 1 if within.end_offset is None else min(last + 1, within.end_offset)
        start = max(first, within.start_offset)
        if wanted:
            there = _filtered(
                archive.reader(partition, start, end, columns=["key", "offset", "timestamp"]), wanted, within
            )
            offsets = [offset for table in there for offset in table["offset"].to_pylist()]
            if not offsets:
                continue
            start, end = offsets[0], offsets[-1] + 1
        yield from _filtered(archive.reader(partition, start, end), wanted, within)


def _files(archive: TopicVersion, partition: int, within: Stretch) -> list[tuple[int, int]]:
    """First and last offsets of the files that may hold such records."""
    files = archive.file_columns(partition)
    may = files.last_offset >= within.start_offset
    if within.end_offset is not None:
        may &= files.first_offset < within.end_offset
    if files.min_timestamp_ms is not None and files.max_timestamp_ms is not None:
        if within.start_ms is not None:
            may &= files.max_timestamp_ms >= within.start_ms
        if within.end_ms is not None:
            may &= files.min_timestamp_ms < within.end_ms
    if not files.are_apart:  # a file's offsets lie among those of another: all are read as one
        chosen = np.flatnonzero(may)
        return [(int(files.first_offset[chosen].min()), int(files.last_offset[chosen].max()))] if len(chosen) else []
    return list(zip(files.first_offset[may].tolist(), files.last_offset[may].tolist(), strict=True))


def _filtered(batches: Iterable[pa.RecordBatch], wanted: list[KeyValue], within: Stretch) -> Iterator[pa.Table]:
    for batch in batches:
        conditions = []
        if wanted:
            conditions.append(reduce(pc.or_, (_equal(batch.column("key"), key) for key in wanted)))
        times = batch.column("timestamp").cast(pa.int64())
        if within.start_ms is not None:
            conditions.append(pc.greater_equal(times, within.start_ms))
        if within.end_ms is not None:
            conditions.append(pc.less(times, within.end_ms))
        table = pa.Table.from_batches([batch])
        if conditions:
            table = table.filter(reduce(pc.and_, conditions))
        if table.num_rows:
            yield table


def _equal(column: pa.Array, value: KeyValue) -> pa.Array:
    if value is None:
        return column.is_null()
    if pa.types.is_struct(column.type):
        fields = (_equal(pc.struct_field(column, [name]), inner) for name, inner in value.items())
        return reduce(pc.and_, fields, column.is_valid())
    if pa.types.is_nested(column.type):
        found = [one == value for one in column.to_pylist()]
        return pa.array(found, pa.bool_())
    return pc.equal(column, pa.scalar(value, column.type)).fill_null(False)
