"""Records as columns: what flows between the operators of a task.

A task takes up the records of its sources in one merged order and numbers them; that number is the record's *sequence*.
Whatever a record causes further down carries the same sequence, so two inputs of one operator can be put into the
order in which Kafka Streams, which takes one record at a time through the whole topology, would have seen them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import filtered, taken
from statelib.columns.gather import compress
from statelib.records.key_column import KeyColumn, concat_keys, window_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from statelib.records.key_column import Windows

NO_TIMESTAMP = -1
"""A clock that has seen no record yet (Kafka's ``ConsumerRecord.NO_TIMESTAMP``)."""

NO_OFFSET = -1
"""The offset of a record that does not come from a topic (one that a punctuator made)."""

NULL_KEY = -1
"""The code of a null key."""


@dataclass(frozen=True, slots=True)
class Passage:
    """What a windowed aggregation tells of its updates in place of forwarding them: see `CondensingOperator`.

    How many windows wait for their close, and how large they are, changes with few updates: those that open a window,
    bring one back into memory, or make a result larger than it was. These are the ones that *grow* something.

    Attributes:
        sequence: int64, of each record that was aggregated, or too late to be.
        stream_time: int64, the operator's stream time at each, ms; ascending.
        rows: int64, of each update that was made, in order: which of these records made it.
        growing: int64, ascending: which of these updates may grow something.
        slots: int64, by growing update, as all that follow: the slot of its window.
        is_new: bool: whether the window was not there before.
        returns: bool: whether it was in the store alone.
        bytes_before: int64: the size of the serialised result before it.
        bytes_after: int64: and after it.
    """

    sequence: NDArray[np.int64]
    stream_time: NDArray[np.int64]
    rows: NDArray[np.int64]
    growing: NDArray[np.int64]
    slots: NDArray[np.int64]
    is_new: NDArray[np.bool_]
    returns: NDArray[np.bool_]
    bytes_before: NDArray[np.int64]
    bytes_after: NDArray[np.int64]

    def __len__(self) -> int:
        """How many updates there were."""
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class Batch:
    """A run of records in task order; all columns have the same length.

    Attributes:
        keys: Record keys, of any Arrow type; of a windowed table's records, and those of its stream, the windowed keys
            (`WindowedKeys`).
        key_code: int64, the code of each key in the task's `KeyTable`; `NULL_KEY` for a null key. None where an
            operator has changed the keys and nobody has needed the codes yet.
        value: Values, of any Arrow type (mostly struct); null is a tombstone.
        timestamp: int64, milliseconds since 1970.
        sequence: int64, ascending (equal for records with one cause): see the module's docstring.
        prior: For a table's updates, the value that each one replaces (Kafka's ``Change.oldValue``); None for a
            stream, or where nobody needs it. See `statelib.operators.tables.change`.
        is_latest: bool, for the updates of a versioned table: whether no version of the key is younger (Kafka's
            ``Change.isLatest``); None: all are.
        headers: list<struct<key: string, value: binary>> or None.
        passage: What is told in place of a windowed aggregation's updates, which are left out then; else None.
    """

    keys: KeyColumn
    key_code: NDArray[np.int64] | None
    value: pa.Array
    timestamp: NDArray[np.int64]
    sequence: NDArray[np.int64]
    prior: pa.Array | None = None
    headers: pa.Array | None = None
    is_latest: NDArray[np.bool_] | None = None
    passage: Passage | None = None

    def __len__(self) -> int:
        return len(self.timestamp)

    @property
    def key(self) -> pa.Array:
        """The keys as mappers see them: a plain array, of windowed keys without their windows."""
        return self.keys.plain

    @property
    def windows(self) -> Windows | None:
        """The windows of windowed keys."""
        return self.keys.windows

    def take(self, indices: NDArray[np.int64]) -> Batch:
        """The records at ``indices``, in that order."""
        chosen = pa.array(indices)
        return self._chosen(
            indices, self.keys.take(chosen), lambda numbers: numbers[indices], lambda array: taken(array, chosen)
        )

    def _chosen(
        self,
        rows: NDArray[np.int64] | NDArray[np.bool_],
        keys: KeyColumn,
        of_numbers: Callable[[NDArray[np.int64]], NDArray[np.int64]],
        of_array: Callable[[pa.Array], pa.Array],
    ) -> Batch:
        return replace(
            self,
            keys=keys,
            key_code=None if self.key_code is None else of_numbers(self.key_code),
            value=of_array(self.value),
            timestamp=of_numbers(self.timestamp),
            sequence=of_numbers(self.sequence),
            prior=None if self.prior is None else of_array(self.prior),
            headers=None if self.headers is None else of_array(self.headers),
            is_latest=None if self.is_latest is None else self.is_latest[rows],
        )

    def headers_at(self, chosen: pa.Array) -> pa.Array | None:
        """Those of the records at the indices ``chosen`` (int64); None if there are none."""
        return None if self.headers is None else taken(self.headers, chosen)

    def slice(self, start: int, end: int) -> Batch:
        """The records from ``start`` to before ``end``; the batch itself if that is all of them."""
        return self if start == 0 and end >= len(self) else self.take(np.arange(start, min(end, len(self))))

    def filter(self, keep: NDArray[np.bool_]) -> Batch:
        """The records for which ``keep`` is true; the batch itself if that is all of them."""
        if keep.all():
            return self
        kept = pa.array(keep)
        return self._chosen(
            keep,
            self.keys.filter(kept),
            lambda numbers: compress(numbers, keep),
            lambda array: filtered(array, kept),
        )

    def as_record_batch(self, *, with_key: bool = True) -> pa.RecordBatch:
        """What a mapper sees: ``key``, ``value``, ``timestamp`` (int64 ms), if there window bounds and headers.

        Args:
            with_key: Mappers that do not look at the key spare it from being made plain.
        """
        columns = {"value": self.value, "timestamp": pa.array(self.timestamp)}
        if with_key:
            columns = {"key": self.key, **columns}
        columns |= window_columns(self.keys)
        if self.headers is not None:
            columns["headers"] = self.headers
        return pa.RecordBatch.from_pydict(columns)


@dataclass(frozen=True)
class Uptake:
    """What the task knew when it took up each source record of the current batch, one row a record.

    Row ``i`` belongs to sequence ``first_sequence + i``. Where an operator is visited several times for one source
    record, it gets an uptake with a row for each visit, and one for the end of each record: `UptakeOfVisits`.

    Attributes:
        first_sequence: Sequence of the first row.
        stream_time: int64, the task's stream time, the record itself included (ascending).
        source: int16, index of the record's topic in the task's sources.
        partition: int32.
        offset: int64, `NO_OFFSET` for a record without one.
    """

    first_sequence: int
    stream_time: NDArray[np.int64]
    source: NDArray[np.int16]
    partition: NDArray[np.int32]
    offset: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.stream_time)

    def stream_time_of(self, batch: Batch) -> NDArray[np.int64]:
        """The task's stream time at each record of ``batch``."""
        return self.stream_time[batch.sequence - self.first_sequence]

    def causes_of(self, batch: Batch) -> NDArray[np.int64]:
        """int64: the sequence, in the task, of the source record that caused each record of ``batch``."""
        return batch.sequence

    def cause_of(self, sequence: int) -> int:
        """The sequence, in the task, of the source record that caused one of a sequence."""
        return sequence

    def end_of(self, row: int) -> int:
        """The row behind all that the source record of ``row`` causes."""
        return row


class UptakeOfVisits(Uptake):
    """What the task knew at each visit (`statelib.task.numbering`); few operators ask for these columns.

    Args:
        task: The task's own uptake.
        rows: int64, ascending, by visit: the row there of the source record that has caused it.
        ends: int64, by row of the task's uptake: the visit that is the end of the source record.
    """

    _task: Uptake
    _rows: NDArray[np.int64]
    _ends: NDArray[np.int64]

    def __init__(self, task: Uptake, rows: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
        self.__dict__ |= {"first_sequence": 0, "_task": task, "_rows": rows, "_ends": ends}

    def __len__(self) -> int:
        return len(self._rows)

    def of_visit(self, row: int) -> UptakeOfVisits:
        """What the task knew at one of them: the only one, with the number 0."""
        return UptakeOfVisits(self._task, self._rows[row : row + 1], np.zeros(1, np.int64))

    @cached_property
    def stream_time(self) -> NDArray[np.int64]:
        """See `Uptake`, as all columns."""
        return self._task.stream_time[self._rows]

    @cached_property
    def source(self) -> NDArray[np.int16]:
        """See `Uptake`."""
        return self._task.source[self._rows]

    @cached_property
    def partition(self) -> NDArray[np.int32]:
        """See `Uptake`."""
        return self._task.partition[self._rows]

    @cached_property
    def offset(self) -> NDArray[np.int64]:
        """See `Uptake`."""
        return self._task.offset[self._rows]

    def causes_of(self, batch: Batch) -> NDArray[np.int64]:
        """See `Uptake`."""
        return self._task.first_sequence + self._rows[batch.sequence]

    def cause_of(self, sequence: int) -> int:
        """See `Uptake`."""
        return int(self._task.first_sequence + self._rows[sequence])

    def end_of(self, row: int) -> int:
        """See `Uptake`."""
        return int(self._ends[self._rows[row]])


def concat_in_order(batches: Sequence[Batch]) -> tuple[Batch, NDArray[np.int64]]:
    """Puts the records of several batches into one, ordered by sequence, ties in the order of ``batches``.

    What only tables have (prior values, flags) is left out.

    Returns:
        The merged batch and, int64, for each of its records the index of the batch that it came from.
    """
    origin = np.repeat(np.arange(len(batches)), [len(batch) for batch in batches])
    if len(batches) == 1:
        return batches[0], origin
    order = np.argsort(np.concatenate([batch.sequence for batch in batches]), kind="stable")
    first = batches[0]
    codes = [batch.key_code for batch in batches]
    merged = replace(
        first,
        keys=concat_keys([batch.keys for batch in batches]),
        key_code=None if any(code is None for code in codes) else np.concatenate(codes),  # type: ignore[arg-type]
        value=pa.concat_arrays([batch.value for batch in batches]),
        timestamp=np.concatenate([batch.timestamp for batch in batches]),
        sequence=np.concatenate([batch.sequence for batch in batches]),
        prior=None,
        headers=_concat_headers(batches),
        is_latest=None,
    )
    return merged.take(order), origin[order]


def _concat_headers(batches: Sequence[Batch]) -> pa.Array | None:
    """None if no batch has any."""
    known = [batch.headers for batch in batches if batch.headers is not None]
    if not known:
        return None
    kind = known[0].type
    return pa.concat_arrays(
        [pa.nulls(len(batch), kind) if batch.headers is None else batch.headers for batch in batches]
    )
