"""The windows that suppress holds back where an aggregation has them (`WindowsInMemory`): nothing is held twice.

A window waits in the aggregation's memory if it took a record since the last flush, else on disk; what memory has is
true. A batch brings no updates, only a `Passage`. The windows whose time has come leave then: those in memory with the
results that the aggregation has for them, and past memory those that are on disk alone.

On disk there are two stores. What the aggregation writes to its own is not written to that of what waits, which refers
to it (`statelib.operators.suppress.codec.Reference`) and has rows only for what the aggregation's does not tell:
headers, and which windows have been waiting that are older than the buffer. Neither what leaves nor what is read in the
store differs from that of a `TimeOrderedBuffer`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import spans_of, taken_rows
from statelib.columns.times import LAST_TIME_MS
from statelib.operators.suppress.codec import BufferedRows, Reference
from statelib.operators.suppress.departures import Departures, in_departure_order
from statelib.operators.suppress.layout_kernel import FIGURES, NOT_STORED, buffer_keys
from statelib.operators.suppress.occupancy_kernel import NO_BYTES, follow
from statelib.operators.suppress.store import BufferChanges, SuppressionBufferStore
from statelib.operators.suppress.waiting_windows import START_BYTES, as_buffered, buffered, counted
from statelib.operators.windows.stored_windows import WindowResults
from statelib.records.batch import NO_TIMESTAMP
from statelib.records.key_ranks import AllKeys
from statelib.serdes import serde_for
from statelib.stores.byte_columns import joined, spans_of_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import TypeAlias

    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext
    from statelib.operators.windows.stored_windows import Choice, WindowsInStore
    from statelib.operators.windows.working_set import WindowsInMemory
    from statelib.records.batch import Passage
    from statelib.stores.backend import WriteBatch
    from statelib.stores.byte_columns import Column

    Waiting: TypeAlias = tuple[WindowResults, NDArray[np.int64]]
    """Windows, and what each counts in the buffer, in bytes."""

_COPIED_AT_ONCE = 1 << 17


class ClosingWindows:
    """See the module's docstring.

    Args:
        context: The operator's.
        name: Of the store, which is in order of time.
        windows: Those of the aggregation, in its memory.
        in_store: And in its store.
        wait_ms: How long after its end, in stream time, a window closes.
    """

    def __init__(
        self, context: OperatorContext, name: str, windows: WindowsInMemory, in_store: WindowsInStore, *, wait_ms: int
    ) -> None:
        self._context = context
        self._windows = windows
        self._in_store = in_store
        self._wait_ms = wait_ms
        self._store = SuppressionBufferStore(context.backend, name, suffix_words=1, time_is_of_key=True)
        if self._store.reference is not None and self._store.reference.aggregation != in_store.aggregation:
            self._store.resolve()
        self._newest_stored = self._store.newest_time()
        self._own_until_ms = self._newest_start()
        """Windows that start later have been waiting and are, past memory, in the aggregation's store alone."""
        self.records, self.size = self._store.totals()
        self._stream_time = context.clock()
        self._schema = self._store.header.schema
        self._all_keys = AllKeys(context.keys)
        self._figures = np.zeros(1, dtype=FIGURES)
        self._has_changed = False  # since the last flush
        self._past_bytes = 0  # what the stored windows took that have last left past memory, all at once

    def _newest_start(self) -> int:
        """No window that does not wait, or that has a row in the store of what waits, starts later, ms."""
        reference, grid = self._store.reference, self._windows.grid
        if reference is not None:
            return reference.started_after_ms
        if self._newest_stored == NO_TIMESTAMP:
            return self._in_store.newest_start
        newest = int(grid.start_of(np.array([grid.last_ended(self._newest_stored)]))[0])
        return max(self._in_store.newest_start, newest)  # which has begun anew if the topology has changed

    def figure(self, name: str) -> int:
        """``max_records``, ``max_bytes``, and of the last batch ``sum_records``, ``sum_bytes``: see `FIGURES`."""
        return int(self._figures[name][0])

    def oldest_time(self) -> int | None:
        """The end of the next window to leave, ms; None if none waits."""
        waiting = self._windows.ending(self._horizon_ms, None)
        times = [int(self._windows.end(waiting).min())] if len(waiting) else []
        found = (some.start[:1] for some, _ in self._past_memory(self._horizon_ms, None, waiting))
        times += next((self._windows.grid.end_of(start).tolist() for start in found), [])
        return min(times, default=None)

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
        most_bytes = np.full(len(left) + 1, NO_BYTES, dtype=np.int64)
        follow(
            *before, passage.stream_time, passage.rows, passage.growing, is_new, more_bytes, left.time + self._wait_ms,
            left_bytes, leaving, new_records, new_bytes, most_bytes, trigger, self._figures,
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
        newest = int(left.time.max(initial=NO_TIMESTAMP))
        if newest >= LAST_TIME_MS:  # where ends are cut off, so that some windows end later than they say
            newest *= 2
        self._stream_time = max(self._stream_time, newest + self._wait_ms)
        self.records = self.size = 0
        self._own_until_ms = self._in_store.newest_start  # none of these waits any more
        self._has_changed = True
        return left

    def _growth(self, passage: Passage) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Of the growing updates: whether each makes one window more wait, and by how many bytes the buffer grows."""
        slots, is_new = passage.slots, passage.is_new.copy()
        whole = passage.bytes_after + self._key_bytes(self._windows.key_code(slots)) + START_BYTES
        before = whole - (passage.bytes_after - passage.bytes_before)
        opens = np.flatnonzero(passage.is_new | passage.returns)
        start = self._windows.start(slots[opens])
        # The buffer may be younger than the aggregation, so that some do not wait that this has; or older, if its store
        # was given up, so that others wait that this begins anew.
        older = opens[start <= self._own_until_ms]
        if len(older):
            waiting = self._waiting_bytes(slots[older])
            is_new[older], before[older] = waiting == 0, waiting
        return is_new, np.where(is_new, whole, whole - before)

    def _waiting_bytes(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64, what windows count that have a row in the store; 0: they have none."""
        end, counted_bytes = self._windows.end(slots), np.zeros(len(slots), np.int64)
        may_be = np.flatnonzero(end <= self._newest_stored)
        counted_bytes[may_be] = self._store.counted_bytes(self._raw_keys(slots[may_be]), end[may_be])
        return counted_bytes

    def _take_out(self, after_ms: int, until_ms: int | None) -> tuple[Departures, NDArray[np.int64]]:
        """The windows that end after ``after_ms`` and until ``until_ms``, and what each counts, in bytes."""
        windows = self._windows
        slots = windows.ending(after_ms, until_ms) if until_ms is None or until_ms > after_ms else np.empty(0, np.int64)
        past = list(self._past_memory(after_ms, until_ms, slots))
        stored = [some for some, _ in past]
        start = np.concatenate([windows.start(slots), *(some.start for some in stored)])
        codes = windows.key_code(slots)
        order, keys, ordered_codes = in_departure_order(
            codes, [some.key for some in stored], start, windows.grid.end_of(start), self._all_keys
        )
        if past:
            rows = self._rows(slots)
            sizes = np.concatenate([counted(self._key_bytes(codes), rows), *(size for _, size in past)])[order]
            rows = taken_rows(pa.concat_batches([rows, *(some.rows for some in stored)]), order)
            self._past_bytes = sum(some.nbytes for pair in past for some in pair)
        else:
            rows = self._rows(slots[order])
            sizes = counted(self._key_bytes(codes[order] if ordered_codes is None else ordered_codes), rows)
        start = start[order]
        end = windows.grid.end_of(start)
        return Departures(keys, ordered_codes, start, end, end, None, np.zeros(len(order), np.int64), rows), sizes

    def _rows(self, slots: NDArray[np.int64]) -> pa.RecordBatch:
        if len(slots):
            return self._windows.rows(slots)
        return pa.RecordBatch.from_pylist([], schema=self._schema)  # before the first batch nobody else knows the types

    def _key_bytes(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64, the sizes of record keys."""
        offsets = self._context.keys.offsets
        size: NDArray[np.int64] = offsets[codes + 1] - offsets[codes]
        return size

    # --- the stores ----------------------------------------------------------------------------------------------

    def _check_columns(self) -> None:
        """Raises ConfigurationError if the results have other columns than those in the store."""
        schema = self._windows.schema
        if schema != self._schema:
            self._store.header.check(schema)
            self._schema = schema

    def _past_memory(self, after_ms: int, until_ms: int | None, slots: NDArray[np.int64]) -> Iterable[Waiting]:
        """The windows in the stores that end after ``after_ms`` and until ``until_ms``; those of the oldest come first.

        ``slots``: those of all such windows in memory, which are left out.
        """
        if self._schema is None:
            return ()
        wanted = self._not_among(slots)
        return chain(
            self._in_own_store(after_ms, until_ms, wanted, self._schema),
            self._in_store_of_aggregation(after_ms, until_ms, wanted, self._schema),
        )

    def _not_among(self, slots: NDArray[np.int64]) -> Choice:
        others = cache(lambda: self._windows.others_than(slots))  # made when first asked for: mostly nothing is there
        return lambda keys, start: others()(self._context.keys.find(keys), start)

    def _in_own_store(
        self, after_ms: int, until_ms: int | None, wanted: Choice, schema: pa.Schema
    ) -> Iterator[Waiting]:
        newest = self._newest_stored if until_ms is None else min(until_ms, self._newest_stored)
        for some in self._store.rows_due(after_ms, until_ms) if after_ms < newest else ():
            rows = some.filter(wanted(some.key, some.start))
            if len(rows):
                columns = serde_for(pa.struct(list(schema))).deserialize(rows.row)
                results = WindowResults(rows.key, rows.start, rows.end, pa.RecordBatch.from_struct_array(columns))
                yield results, rows.counted_bytes

    def _in_store_of_aggregation(
        self, after_ms: int, until_ms: int | None, wanted: Choice, schema: pa.Schema
    ) -> Iterator[Waiting]:
        """Those that are there alone: they had no headers when they went there."""
        for some in self._in_store.closing(after_ms, until_ms, started_after_ms=self._own_until_ms, wanted=wanted):
            rows = as_buffered(some, schema)
            yield replace(some, rows=rows), counted(spans_of(some.key)[2], rows)

    def flush(self, write: WriteBatch) -> None:
        """Leaves the windows in memory to the aggregation, which is about to write them: see `CondensingOperator`.

        But for what its store does not have, which is headers; or where it would have to be searched for them.
        """
        if self._schema is None or not self._has_changed:
            return
        self._has_changed = False
        waiting = self._windows.ending(self._horizon_ms, None)
        if self._windows.have_headers or not self._in_store.are_in_order:
            self._write(waiting, self._schema, write)
            for rows in self._left_to_aggregation(waiting, self._schema):
                raw_keys = buffer_keys(rows.key, rows.start, rows.end, suffix_words=1)
                self._store_changes(BufferChanges.of(raw_keys, rows), self._schema, write)
            self._own_until_ms, reference = self._in_store.newest_start, None
        else:
            self._write(waiting[self._windows.start(waiting) <= self._own_until_ms], self._schema, write)
            reference = Reference(self._own_until_ms, self._horizon_ms, self._in_store.aggregation)
        self._store.store_totals(self.records, self.size, self._schema, write)
        self._store.refer(reference, self._schema, write)

    def _write(self, slots: NDArray[np.int64], schema: pa.Schema, write: WriteBatch) -> None:
        """Adds windows in memory to ``write``, and the removal of all that have left."""
        if self._newest_stored != NO_TIMESTAMP:
            self._store.remove_until(self._horizon_ms if self.records else self._newest_stored, write)
        if len(slots):
            changes = BufferChanges(
                self._windows.end(slots),
                np.full(len(slots), NOT_STORED),
                lambda some: self._raw_keys(slots[some]),
                lambda some: self._rows_in_memory(slots[some]),
            )
            self._store_changes(changes, schema, write)
        self._all_keys = AllKeys(self._context.keys)  # which are forgotten now

    def _store_changes(self, changes: BufferChanges, schema: pa.Schema, write: WriteBatch) -> None:
        self._store.store(changes, schema, write)
        self._newest_stored = max(self._newest_stored, int(changes.time.max()))

    def _left_to_aggregation(self, slots: NDArray[np.int64], schema: pa.Schema) -> Iterator[BufferedRows]:
        """The windows that wait in the aggregation's store alone, many at a time; ``slots``: those in memory."""
        found = self._in_store_of_aggregation(self._horizon_ms, None, self._not_among(slots), schema)
        parts: list[Waiting] = []
        for last in found:
            parts.append(last)
            if sum(len(results) for results, _ in parts) >= _COPIED_AT_ONCE:
                yield self._buffered(parts)
                parts = []
        if parts:
            yield self._buffered(parts)

    def _buffered(self, parts: Sequence[Waiting]) -> BufferedRows:
        key = pa.concat_arrays([results.key for results, _ in parts])
        start = np.concatenate([results.start for results, _ in parts])
        counted_bytes = np.concatenate([size for _, size in parts])
        rows = pa.concat_batches([results.rows for results, _ in parts])
        return self._buffered_rows(key, start, counted_bytes, rows)

    def _rows_in_memory(self, slots: NDArray[np.int64]) -> BufferedRows:
        codes, rows = self._windows.key_code(slots), self._windows.rows(slots)
        counted_bytes = counted(self._key_bytes(codes), rows)
        return self._buffered_rows(self._context.keys.take(codes), self._windows.start(slots), counted_bytes, rows)

    def _buffered_rows(
        self, key: pa.Array, start: NDArray[np.int64], counted_bytes: NDArray[np.int64], rows: pa.RecordBatch
    ) -> BufferedRows:
        return buffered(key, start, self._windows.grid.end_of(start), counted_bytes, rows)

    def _raw_keys(self, slots: NDArray[np.int64]) -> Column:
        """The buffer keys of windows."""
        keys = self._context.keys.spans(self._windows.key_code(slots))
        return joined(keys, spans_of_rows(self._windows.start(slots).astype(">i8")))
