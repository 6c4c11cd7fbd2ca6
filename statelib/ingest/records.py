"""Makes records of rows: key, value, timestamp, partition, and what records of a partition are in the order of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.times import LAST_TIME_MS
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError, InputError
from statelib.ingest.envelopes import placed
from statelib.ingest.formats.rows import plain
from statelib.ingest.values.fields import columns_in, value_at
from statelib.ingest.values.times import TimeRule, Times, read_times
from statelib.ingest.values.types import storable, stored
from statelib.serdes import serde_for
from statelib.topics.partitioner import partition_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.ingest.formats.rows import BadRow, Rows
    from statelib.serdes import Serde

PARTITION, ORDER, FIRST = "partition", "order", "first"


@dataclass(frozen=True, slots=True)
class RecordShape:
    """What of a row is what of a record; travels to workers.

    Attributes:
        key: The field of keys; None: none.
        key_type: The archive's type of keys.
        value: The field of values, or the fields of a struct; empty: all others.
        timestamp: The field of timestamps.
        time_rule: How that is read.
        order: ``timestamp``, ``arrival``, ``offset`` (records keep theirs), or a field.
        partitions: Of the topic.
        partition: The field of partitions; None: the files' places tell them, or keys choose them.
        offset: The field of offsets; None: the files' places tell them, or records get new ones.
        key_serde: Serialises keys to choose the partition; None: Kafka's own for their type.
    """

    key: str | None
    key_type: pa.DataType
    value: str | tuple[str, ...]
    timestamp: str
    time_rule: TimeRule
    order: str
    partitions: int
    partition: str | None = None
    offset: str | None = None
    key_serde: Serde | None = None

    def records(self, rows: Rows) -> tuple[pa.RecordBatch, list[BadRow]]:
        """The records of rows, and the rows that cannot be one.

        Returns:
            Columns ``partition`` (int32), ``key``, ``value`` and ``timestamp`` (int64, ms); ``order``, unless records
            stay in the order of arrival; ``headers`` and ``first``, where the files tell them. And the bad rows.

        Raises:
            InputError: A partition or an offset is not the one that the file's name tells; the error names no file.
            ConfigurationError: Partitions or offsets are no whole numbers, or the topic has fewer partitions.
            ArrowException: A value does not fit the archive's type.
        """
        columns, count = rows.columns, rows.columns.num_rows
        times = read_times(value_at(columns, self.timestamp), self.time_rule)
        good, bad = times.known | self._timeless(columns), []
        if not good.all():
            bad = self._without_time(rows, np.flatnonzero(~good), times)
        order = self._order(rows, times.microseconds)
        if order is not None and order.null_count:
            missing = good & order.is_null().to_numpy(zero_copy_only=False)
            bad += [
                rows.bad_row(row, self.offset or self.order, "it has no value, and records are ordered by it")
                for row in np.flatnonzero(missing).tolist()
            ]
            good = good & ~missing
        place = self._partition_field(rows)
        if place is not None and place.null_count:
            missing = good & place.is_null().to_numpy(zero_copy_only=False)
            bad += [
                rows.bad_row(row, self.partition or "", "it has no partition")
                for row in np.flatnonzero(missing).tolist()
            ]
            good, place = good & ~missing, place.fill_null(0)
        key = None if self.key is None else value_at(columns, self.key)
        if key is None or storable(key.type) is None:
            key = pa.nulls(count, self.key_type)
        key = stored(key, self.key_type)
        made = {
            PARTITION: self._partition(columns, place, key, rows.numbers),
            "key": key,
            "value": _without(self._value(columns), columns),
            "timestamp": pa.array(times.microseconds // 1000, mask=~times.known),
        }
        if placed.HEADERS in columns.schema.names:
            made["headers"] = columns[placed.HEADERS]
        if order is not None:
            made[ORDER] = order
        if self.keeps_offsets and placed.FIRST in columns.schema.names:
            made[FIRST] = self._first(columns)
        records = pa.RecordBatch.from_pydict(made)
        return (records if good.all() else records.filter(pa.array(good))), bad

    def _timeless(self, columns: pa.RecordBatch) -> NDArray[np.bool_]:
        """Records without a value, whose timestamp would be a field of it; see `statelib.ingest.merge`."""
        if not self.keeps_offsets or placed.TOMBSTONE not in columns.schema.names:
            return np.zeros(columns.num_rows, np.bool_)
        gone: NDArray[np.bool_] = columns[placed.TOMBSTONE].to_numpy(zero_copy_only=False)
        alone: NDArray[np.bool_] = gone & value_at(columns, self.timestamp).is_null().to_numpy(zero_copy_only=False)
        return alone

    @property
    def keeps_offsets(self) -> bool:
        """Whether records have the offsets that the files tell, and the order of these."""
        return self.order == "offset"

    def _value(self, columns: pa.RecordBatch) -> pa.Array:
        if isinstance(self.value, str):
            array = value_at(columns, self.value)
            type_ = storable(array.type)
            return pa.nulls(len(array)) if type_ is None else stored(array, type_)
        names = self.value or self._others(columns.schema.names)
        found = [(name, value_at(columns, name)) for name in names]
        typed = [(name, array, storable(array.type)) for name, array in found]
        kept = [(name, stored(array, type_)) for name, array, type_ in typed if type_ is not None]
        if not kept:  # no tombstone: the fields come with other rows
            return pa.array([{}] * columns.num_rows, pa.struct([]))
        return pa.StructArray.from_arrays([array for _, array in kept], [name for name, _ in kept])

    def _others(self, names: Sequence[str]) -> list[str]:
        """Of plain rows all that is no other part of records; a value that was a record's value already stays whole."""
        if not placed.OF_RECORDS.isdisjoint(names):
            return [name for name in names if not placed.is_beside(name)]
        taken = {self.key, self.timestamp, self.partition, self.offset}
        return [name for name in names if name not in taken and not placed.is_beside(name)]

    def columns(self) -> list[str] | None:
        """The columns of a file that are needed, by their first names; None: all."""
        if not self.value:
            return None
        paths = [
            self.timestamp,
            *(path for path in (self.key, self.partition, self.offset) if path is not None),
            *([self.value] if isinstance(self.value, str) else self.value),
        ]
        paths += [] if self.order in {"timestamp", "arrival", "offset"} else [self.order]
        names = [name for path in paths for name in (path, *columns_in(path))]
        return [*dict.fromkeys([*names, *(name.partition(".")[0] for name in names)])]

    def _order(self, rows: Rows, microseconds: NDArray[np.int64]) -> pa.Array | None:
        if self.order == "arrival":
            return None
        if self.order == "timestamp":
            return pa.array(microseconds)
        if self.keeps_offsets:
            return rows.columns[placed.OFFSET] if self.offset is None else self._offset_field(rows, self.offset)
        found = value_at(rows.columns, self.order)
        return found.dictionary_decode() if pa.types.is_dictionary(found.type) else found

    def _offset_field(self, rows: Rows, path: str) -> pa.Array:
        """Offsets that rows have themselves; of those without a value the least that their files' names leave them.

        Raises:
            InputError: They contradict the files' names.
        """
        columns = rows.columns
        found = _whole_numbers(value_at(columns, path), path)
        if placed.OFFSET not in columns.schema.names:
            return found
        least = columns[placed.OFFSET]
        if placed.FIRST in columns.schema.names:
            begins = pc.equal(least, columns[placed.FIRST])
            wrong = pc.or_(pc.less(found, least), pc.and_(begins, pc.not_equal(found, least)))
        else:
            wrong = pc.not_equal(found, least)
        self._check_names(rows, wrong, path, found, least)
        if placed.TOMBSTONE not in columns.schema.names:
            return found
        return pc.if_else(columns[placed.TOMBSTONE], pc.coalesce(found, least), found)

    def _first(self, columns: pa.RecordBatch) -> pa.Array:
        """Where the file of a record begins; of one that has its offset itself: there."""
        first = columns[placed.FIRST]
        if self.offset is None:
            return first
        return pc.coalesce(_whole_numbers(value_at(columns, self.offset), self.offset), first)

    def _partition_field(self, rows: Rows) -> pa.Array | None:
        """Partitions that rows have themselves; None: no field is named."""
        if self.partition is None:
            return None
        found = _whole_numbers(value_at(rows.columns, self.partition), self.partition)
        if placed.PARTITION in rows.columns.schema.names:
            told = rows.columns[placed.PARTITION].cast(pa.int64())
            self._check_names(rows, pc.not_equal(found, told), self.partition, found, told)
            return pc.coalesce(found, told)
        return found

    def _check_names(self, rows: Rows, wrong: pa.Array, path: str, found: pa.Array, told: pa.Array) -> None:
        """Raises for the first row that is wrong.

        Raises:
            InputError: There is one.
        """
        at = pc.index(wrong, pa.scalar(True)).as_py()
        if at >= 0:
            what = f"a row says {found[at]}, and the place of its file {told[at]}"
            step = "name the field with the records' own partition or offset, or leave the option out"
            raise InputError(what, row=int(rows.numbers[at]), field=path, next_step=step)

    def _partition(
        self, columns: pa.RecordBatch, place: pa.Array | None, key: pa.Array, numbers: NDArray[np.int64]
    ) -> pa.Array:
        """The topic's own where it is told."""
        if place is None and placed.PARTITION not in columns.schema.names:
            data = columns[placed.KEY_BYTES] if placed.KEY_BYTES in columns.schema.names else None
            return pa.array(self._partition_of(key, data, numbers))
        told = columns[placed.PARTITION] if place is None else place
        least, largest = pc.min_max(told).as_py().values() if len(told) else (0, 0)
        if least < 0:
            raise InputError(
                f"there are records of partition {least}", field=self.partition, next_step="name another field"
            )
        if largest >= self.partitions:
            what = (
                f"there are records of partition {largest}, and the topic has {counted(self.partitions, 'partition')}"
            )
            step = f"load the topic anew with --partitions {largest + 1}"
            raise ConfigurationError(what, next_step=step)
        return told.cast(pa.int32())

    def _partition_of(
        self, key: pa.Array, data: pa.BinaryArray | None, numbers: NDArray[np.int64]
    ) -> NDArray[np.int32]:
        """As Kafka's producer chooses it; records without a key take turns, by their rows' numbers."""
        if self.partitions == 1:
            return np.zeros(len(key), np.int32)
        if key.null_count == len(key):
            where = np.zeros(len(key), np.int32)
        else:
            data = (self.key_serde or serde_for(key.type)).serialize(key) if data is None else data
            where = partition_for(data, self.partitions)
        if key.null_count:
            missing = key.is_null().to_numpy(zero_copy_only=False)
            where[missing] = (numbers[missing] - 1) % self.partitions
        return where

    def _without_time(self, rows: Rows, where: NDArray[np.int64], times: Times) -> list[BadRow]:
        given = value_at(rows.columns, self.timestamp)
        bad = []
        for row in where.tolist():
            shown = plain(given[row])
            if shown is None:
                reason = "it has no timestamp"
            elif times.microseconds[row]:
                reason = f"{shown!r} is a time that no record can have (0 to {LAST_TIME_MS} ms since 1970)"
            else:
                reason = f"{shown!r} is no time"
            bad.append(rows.bad_row(row, self.timestamp, reason))
        return bad


def _without(value: pa.Array, columns: pa.RecordBatch) -> pa.Array:
    """Values, null where a record has none."""
    if placed.TOMBSTONE not in columns.schema.names:
        return value
    gone = columns[placed.TOMBSTONE]
    return value if not pc.any(gone).as_py() else pc.if_else(gone, pa.scalar(None, value.type), value)


def _whole_numbers(values: pa.Array, path: str) -> pa.Array:
    """int64.

    Raises:
        ConfigurationError: They are of another type.
    """
    if not (pa.types.is_integer(values.type) or pa.types.is_null(values.type)):
        what = f"partitions and offsets are whole numbers, and a field is {values.type}"
        raise ConfigurationError(
            what, field=path, next_step="name another field, or declare its type: --type FIELD=int64"
        )
    return values.cast(pa.int64())
