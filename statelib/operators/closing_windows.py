"""The windows that suppress holds back where an aggregation has them (`WindowsInMemory`): nothing is held twice.

Between two flushes a window waits in the aggregation's memory if it took a record, else in the store; what memory has
is true. A batch brings no updates, only a `Passage`. The windows whose time has come leave then: those in memory with
the results that the aggregation has for them, and past memory those that are in the store alone. At a flush the store
gets all that waits in memory. Neither what leaves nor the store differs from those of a `TimeOrderedBuffer`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.arrow_buffers import taken_rows
from statelib.batch import NO_TIMESTAMP
from statelib.kernels.key_ranks import AllKeys
from statelib.kernels.occupancy import follow
from statelib.kernels.suppression_layout import FIGURES, NOT_STORED
from statelib.operators.departures import Departures, in_departure_order
from statelib.operators.sizes import serialized_bytes
from statelib.serdes import serde_for, serialized
from statelib.stores.byte_columns import joined, spans_of_rows
from statelib.stores.suppression_buffer import BufferChanges, SuppressionBufferStore
from statelib.stores.suppression_codec import BufferedRows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from statelib.batch import Passage
    from statelib.operators.base import OperatorContext
    from statelib.operators.windows_in_memory import WindowsInMemory
    from statelib.stores.backend import WriteBatch
    from statelib.stores.byte_columns import Column

START_BYTES = 8
"""Of a window's start, behind the bytes of its key."""


class ClosingWindows:
    """See the module's docstring.

    Args:
        context: The operator's.
        name: Of the store, which is in order of time.
        windows: Those of the aggregation.
        wait_ms: How long after its end, in stream time, a window closes.
    """

    def __init__(self, context: OperatorContext, name: str, windows: WindowsInMemory, *, wait_ms: int) -> None:
        self._context = context
        self._windows = windows
        self._wait_ms = wait_ms
        self._store = SuppressionBufferStore(context.backend, name, suffix_words=1, time_is_of_key=True)
        self._newest_stored = self._store.newest_time()
        self.records, self.size = self._store.totals()
        self._stream_time = context.clock()
        self._schema = self._store.header.schema
        self._all_keys = AllKeys(context.keys)
        self._figures = np.zeros(1, dtype=FIGURES)
        self._has_changed = False  # since the last flush
        self._past_bytes = 0  # what the stored windows took that have last left past memory, all at once

    def figure(self, name: str) -> int:
        """``max_records``, ``max_bytes``, and of the last batch ``sum_records``, ``sum_bytes``: see `FIGURES`."""
        return int(self._figures[name][0])

    def oldest_time(self) -> int | None:
        """The end of the next window to leave, ms; None if none waits."""
        waiting = self._windows.ending(self._horizon_ms, None)
        times = [int(self._windows.end(waiting).min())] if len(waiting) else []
        found = (rows.time[:1].tolist() for rows, _ in self._in_store_alone(self._horizon_ms, None, waiting))
        return min(times + next(found, []), default=None)

    def memory_bytes(self) -> int:
        """What the next batch may take past memory, as much as the last: as columns of the store, and in order."""
        return 2 * self._past_bytes

    @property
    def _horizon_ms(self) -> int:
        """All windows that end until then have left."""
        return max(self._stream_time - self._wait_ms, -1)

    # --- updates come and windows leave --------------------------------------------------------------------------

    def close(self, passage: Passage) -> Departures:
        """Takes up the updates of a batch, which the windows have seen already.

        Args:
            passage: How they came.

        Returns:
            What leaves; ``trigger`` is among all updates.
        """
        self._check_columns()
        after_ms, before = self._horizon_ms, (self.records, self.size)
        is_new, more_bytes = self._growth(passage)
        self._stream_time = max(self._stream_time, int(passage.stream_time[-1]))
        left, left_bytes = self._take_out(after_ms, self._horizon_ms)
        trigger, leaving = np.empty(len(left), dtype=np.int64), np.empty(len(left) + 1, dtype=np.int64)
        new_records, new_bytes = (np.zeros(len(left) + 1, dtype=np.int64) for _ in range(2))
        follow(
            *before, passage.stream_time, passage.rows, passage.growing, is_new, more_bytes, left.time + self._wait_ms,
            left_bytes, leaving, new_records, new_bytes, trigger, self._figures,
        )  # fmt: skip
        self.records += int(np.count_nonzero(is_new)) - len(left)
        self.size += int(more_bytes.sum() - left_bytes.sum())
        self._has_changed = True
        return replace(left, trigger=trigger)

    def drain(self) -> Departures | None:
        """Takes everything out, as if stream time went on for ever; None if nothing was ever put."""
        if self._schema is None:
            return None
        left, _ = self._take_out(self._horizon_ms, None)
        self._stream_time = max(self._stream_time, int(left.time.max(initial=NO_TIMESTAMP)) + self._wait_ms)
        self.records = self.size = 0
        self._has_changed = True
        return left

    def _growth(self, passage: Passage) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Of the growing updates: whether each makes one window more wait, and by how many bytes the buffer grows."""
        slots, is_new = passage.slots, passage.is_new.copy()
        back = np.flatnonzero(passage.returns)
        if len(back):
            is_new[back] = ~self._is_stored(slots[back])
        whole = passage.bytes_after + self._key_bytes(self._windows.key_code(slots))
        return is_new, np.where(is_new, whole, passage.bytes_after - passage.bytes_before)

    def _is_stored(self, slots: NDArray[np.int64]) -> NDArray[np.bool_]:
        """bool: whether the store has the windows of ``slots``, which the aggregation's store has.

        It has those of this run. Others may be older than the buffer: it began when the aggregation had them already.
        """
        start = self._windows.start(slots)
        end = self._windows.end_of(start)
        is_stored = end <= self._newest_stored
        older = np.flatnonzero(is_stored & (start <= self._windows.newest_start))
        is_stored[older] = self._store.holds(self._raw_keys(slots[older]), end[older])
        return is_stored

    def _take_out(self, after_ms: int, until_ms: int | None) -> tuple[Departures, NDArray[np.int64]]:
        """The windows that end after ``after_ms`` and until ``until_ms``, and what each counts, in bytes."""
        windows = self._windows
        slots = windows.ending(after_ms, until_ms) if until_ms is None or until_ms > after_ms else np.empty(0, np.int64)
        past = list(self._in_store_alone(after_ms, until_ms, slots))
        stored = [rows for rows, _ in past]
        start = np.concatenate([windows.start(slots), *(rows.start for rows in stored)])
        codes = windows.key_code(slots)
        order, keys, ordered_codes = in_departure_order(
            codes, [rows.key for rows in stored], start, windows.end_of(start), self._all_keys
        )
        if past:
            rows = self._rows(slots)
            counted = np.concatenate([self._counted_bytes(codes, rows), *(some.counted_bytes for some in stored)])
            counted = counted[order]
            rows = taken_rows(pa.concat_batches([rows, *(columns for _, columns in past)]), order)
            self._past_bytes = sum(some.nbytes for pair in past for some in pair)
        else:
            rows = self._rows(slots[order])
            counted = self._counted_bytes(codes[order] if ordered_codes is None else ordered_codes, rows)
        start = start[order]
        end = windows.end_of(start)
        return Departures(keys, ordered_codes, start, end, end, None, np.zeros(len(order), np.int64), rows), counted

    def _rows(self, slots: NDArray[np.int64]) -> pa.RecordBatch:
        if len(slots):
            return self._windows.rows(slots)
        return pa.RecordBatch.from_pylist([], schema=self._schema)  # before the first batch nobody else knows the types

    def _counted_bytes(self, codes: NDArray[np.int64], rows: pa.RecordBatch) -> NDArray[np.int64]:
        return self._key_bytes(codes) + serialized_bytes(rows.column("value"))

    def _key_bytes(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64, the size of windows' keys in the buffer."""
        offsets = self._context.keys.offsets
        size: NDArray[np.int64] = offsets[codes + 1] - offsets[codes] + START_BYTES
        return size

    # --- the store -----------------------------------------------------------------------------------------------

    def _check_columns(self) -> None:
        """Raises ConfigurationError if the results have other columns than those in the store."""
        schema = self._windows.rows(np.empty(0, dtype=np.int64)).schema
        if schema != self._schema:
            self._store.header.check(schema)
            self._schema = schema

    def _in_store_alone(
        self, after_ms: int, until_ms: int | None, slots: NDArray[np.int64]
    ) -> Iterable[tuple[BufferedRows, pa.RecordBatch]]:
        """The stored windows that end after ``after_ms`` and until ``until_ms``, with rows.

        ``slots``: those of all such windows in memory, which are left out.
        """
        newest = self._newest_stored if until_ms is None else min(until_ms, self._newest_stored)
        if self._schema is None or newest <= after_ms:
            return
        not_in_memory = self._windows.others_than(slots)
        for some in self._store.due(after_ms, until_ms):
            rows = some.filter(not_in_memory(self._context.keys.find(some.key), some.start))
            if len(rows):
                columns = serde_for(pa.struct(list(self._schema))).deserialize(rows.row)
                yield replace(rows, row=pa.nulls(len(rows))), pa.RecordBatch.from_struct_array(columns)

    def flush(self, write: WriteBatch) -> None:
        """Writes the windows that wait in memory, which is the last moment to do so: see `CondensingOperator`."""
        if self._schema is None or not self._has_changed:
            return
        self._has_changed = False
        if self._newest_stored != NO_TIMESTAMP:
            self._store.remove_until(self._horizon_ms if self.records else self._newest_stored, write)
        waiting = self._windows.ending(self._horizon_ms, None)
        if len(waiting):
            time = self._windows.end(waiting)
            changes = BufferChanges(
                time,
                np.full(len(waiting), NOT_STORED),
                lambda some: self._raw_keys(waiting[some]),
                lambda some: self._stored_rows(waiting[some]),
            )
            self._store.store(changes, self._schema, write)
            self._newest_stored = max(self._newest_stored, int(time.max()))
        self._store.store_totals(self.records, self.size, self._schema, write)
        self._all_keys = AllKeys(self._context.keys)  # which are forgotten now

    def _stored_rows(self, slots: NDArray[np.int64]) -> BufferedRows:
        windows, rows = self._windows, self._windows.rows(slots)
        codes, start, end = windows.key_code(slots), windows.start(slots), windows.end(slots)
        return BufferedRows(
            key=self._context.keys.take(codes),
            start=start,
            end=end,
            time=end,
            updated=windows.updated(slots),
            counted_bytes=self._counted_bytes(codes, rows),
            row=serialized(rows.to_struct_array()),
        )

    def _raw_keys(self, slots: NDArray[np.int64]) -> Column:
        """The buffer keys of windows."""
        keys = self._context.keys.spans(self._windows.key_code(slots))
        return joined(keys, spans_of_rows(self._windows.start(slots).astype(">i8")))
