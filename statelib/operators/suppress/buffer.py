"""What suppress holds back (Kafka's ``TimeOrderedKeyValueBuffer``): part of it in memory, the rest in the store.

A key waits either in memory (`HeldRows`), or in the store alone. What memory has is true: the store may still have an
older row of it.

**A buffer that lets keys go only when their time has come** needs in memory no more than what a batch touches or makes
due. So the stored keys of a batch are looked up once, the due ones are read from the index by time, and all others stay
where they are: they can neither change nor leave. Such a buffer may be larger than memory. It begins empty after a
flush; beyond the bounds of its memory the keys that have gone longest without an update move to the store, down to half
of the bounds, which makes room for the next batches. Nothing of that shows in what leaves, or in the state at a flush.

**A buffer that lets keys go early, or fails, when it is full** has bounds on all that it holds, and is in memory whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.operators.suppress.buffered_columns import stored_schema
from statelib.operators.suppress.codec import BufferedRows, encode_keys
from statelib.operators.suppress.held_rows import HeldRows
from statelib.operators.suppress.layout_kernel import EMPTY, NOT_STORED, PUT
from statelib.operators.suppress.left_in_store import LeftInStore
from statelib.operators.suppress.store import BufferChanges, SuppressionBufferStore
from statelib.records.batch import NO_TIMESTAMP
from statelib.records.key_table import KeyTable
from statelib.serdes import serde_for
from statelib.stores.backend import WriteBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext
    from statelib.operators.suppress.departures import Departures
    from statelib.operators.windows.stored_windows import StoredWindows
    from statelib.records.row_pool import RowPool

_FEW_ROWS = 1 << 12


@dataclass(frozen=True, slots=True)
class MemoryBounds:
    """How much of a buffer may be in memory; None: any amount. ``size``: bytes, all told."""

    records: int | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Puts:
    """What the records of a put have put.

    Attributes:
        time: int64, the buffer time that each one's key had after it, ms.
        is_first: bool, whether its key did not wait before.
        known: The value of the key that is known downstream; None if the rows do not say what they replace.
    """

    time: NDArray[np.int64]
    is_first: NDArray[np.bool_]
    known: pa.Array | None


class TimeOrderedBuffer:
    """See the module's docstring.

    Rows have the columns ``timestamp``, ``value``, for tables that say so ``old`` (the value that the row replaces
    upstream), and ``headers`` if there are any.

    Args:
        context: The operator's.
        name: Of the store.
        policy: See `statelib.operators.suppress.buffer_kernel.policy`.
        memory: How much may be in memory; None: the whole buffer has to be.
        time_is_of_key: Whether a key can have one buffer time only, as a window has.
        logs: Whether `put` tells what it has put (`last_puts`).
        is_read: Whether others read the store between flushes: then what has left it is there until the next `put`.
    """

    def __init__(
        self,
        context: OperatorContext,
        name: str,
        policy: NDArray[Any],
        *,
        memory: MemoryBounds | None,
        time_is_of_key: bool,
        logs: bool = False,
        is_read: bool = False,
    ) -> None:
        self._context = context
        self._logs = logs
        self._is_read = is_read
        self.last_puts: Puts | None = None
        self._policy = policy
        self._wait_ms, self._suffix_words = (int(policy[field][0]) for field in ("wait", "suffix_words"))
        self._memory = memory
        self._time_is_of_key = time_is_of_key
        self._store = SuppressionBufferStore(
            context.backend, name, suffix_words=self._suffix_words, time_is_of_key=time_is_of_key
        )
        self._newest_stored = self._store.newest_time()
        self._elsewhere: LeftInStore | None = None
        self._has_spilled = False  # whether rows have been written since the last flush
        self._forget(*self._store.totals())

    def refer_to(self, windows: StoredWindows) -> None:
        """Leaves windows to the store of their aggregation from now on (`LeftInStore`); before the first batch."""
        self._elsewhere = LeftInStore(windows, self._store)
        self._newest_stored = self._store.newest_time()

    def _forget(self, records: int, size: int) -> None:
        """Starts with an empty memory; the store has this much."""
        self._held = HeldRows(self._context, self._policy)
        self._held.kernel.add_spilled(records, size)
        self._gone: NDArray[Any] | None = None  # what has left (`SLOT`), and is still to be tidied away

    # --- what there is -------------------------------------------------------------------------------------------

    @property
    def records(self) -> int:
        """How many keys wait."""
        return self.figure("records") + self.figure("spilled_records")

    @property
    def size(self) -> int:
        """What they count, in bytes: see `BufferConfig.max_bytes`."""
        return self.figure("bytes") + self.figure("spilled_bytes")

    def figure(self, name: str) -> int:
        """One of `FIGURES`, since the last flush."""
        return self._held.kernel.figure(name)

    def oldest_time(self) -> int | None:
        """The buffer time of the next key to leave, ms; None if none waits."""
        times = [] if self._held.kernel.oldest_time is None else [self._held.kernel.oldest_time]
        if self.figure("spilled_records"):
            found = (self._unless_in_memory(rows) for rows in self._store.due(self._horizon_ms, None))
            times += next((rows.time[:1].tolist() for rows in found if len(rows)), [])
        return min(times, default=None)

    @property
    def is_by_time(self) -> bool:
        """Whether the store is in order of time."""
        return self._store.is_by_time

    def memory_bytes(self, more: int = 0) -> int:
        """What is in memory, or will be with so many more keys like those that are."""
        return self._held.memory_bytes(more)

    @property
    def _horizon_ms(self) -> int:
        """All keys up to this buffer time have left."""
        return max(self.figure("stream_time") - self._wait_ms, -1)

    # --- records come and keys leave -----------------------------------------------------------------------------

    def put(self, inputs: NDArray[Any], rows: pa.RecordBatch) -> tuple[Departures, int | None]:
        """Takes up records in order; after each, what has to leave does.

        Args:
            inputs: `INPUT`.
            rows: The rows of the records.

        Returns:
            What leaves; and the record that exceeded a bound of a strict buffer, where it stopped, else None.

        Raises:
            ConfigurationError: The rows have other columns than those that wait.
        """
        self._tidy_away()
        self._resolve()
        if self._held.pool is None:
            self._store.header.check(stored_schema(rows.schema))
        pool = self._held.pool_for(rows.schema)
        self._take_in(self._bring_in(inputs, int(inputs["timestamp"].max())))
        puts = np.empty(len(inputs) if self._logs else 0, dtype=PUT)
        first_row = pool.append(rows)
        slots, trigger, failed = self._held.kernel.put(inputs, first_row, self._context.keys, puts)
        left = self._held.left(slots, trigger, pool)
        if self._logs and failed is None:
            known = pool.take(puts["first_row"]).column("old") if "old" in rows.schema.names else None
            is_first = puts["first_row"] == first_row + np.arange(len(puts))
            self.last_puts = Puts(np.ascontiguousarray(puts["time"]), is_first, known)
        if failed is None:
            self._gone = slots
            if not self._is_read:
                self._tidy_away()
        return left, failed

    def drain(self, wait_ms: int | None = None) -> Departures | None:
        """Takes everything out, as if stream time went on for ever; None if nothing was ever put.

        Args:
            wait_ms: From now on, keys wait no longer than that: what has waited for so long is taken out, nothing else.
        """
        self._tidy_away()
        self._resolve()
        if self.figure("spilled_records"):
            self._take_in(self._store.everything(self._horizon_ms))
        if self._held.pool is None:
            return None
        slots = self._held.kernel.drain(self._context.keys)
        if wait_ms is None and self._elsewhere is not None:
            self._elsewhere.nothing_waits()
        if wait_ms is not None:
            self._wait_ms = wait_ms
            is_due = slots["time"] <= self._horizon_ms
            self._held.kernel.insert(slots[~is_due], self._context.keys)
            slots = slots[is_due]
        left = self._held.left(slots, np.zeros(len(slots), dtype=np.int64), self._held.pool)
        self._gone = slots
        self._tidy_away()
        return left

    def sizes_of_old_values(self, rows: pa.RecordBatch) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """See `HeldRows`."""
        return self._held.sizes_of_old_values(rows)

    # --- from the store ------------------------------------------------------------------------------------------

    def _resolve(self) -> None:
        """Gets what waits in the store of an aggregation, as an earlier run has left it: that goes its own way now."""
        if self._store.reference is not None and self._elsewhere is None:
            self._store.resolve()
            self._newest_stored = self._store.newest_time()

    def _bring_in(self, inputs: NDArray[Any], stream_time: int) -> Iterable[BufferedRows]:
        """Takes those stored keys into memory that may change with records; gives others that may leave.

        Args:
            inputs: `INPUT`, those of the records whose keys may be stored.
            stream_time: After the records, ms.
        """
        if not self.figure("spilled_records"):
            return ()
        if self._memory is None:
            self._take_in(self._store.everything(self._horizon_ms))
            return ()
        touched = self._touched(inputs)
        if self.figure("spilled_records") <= len(touched):  # fewer answers than questions: read them all
            self._take_in(self._store.everything(self._horizon_ms))
            return ()
        self._take_in(self._store.load(self._held.raw_keys(touched), touched["time"]))
        until_ms = max(stream_time, self.figure("stream_time")) - self._wait_ms
        return self._store.due(self._horizon_ms, until_ms) if until_ms > self._horizon_ms else ()

    def _touched(self, inputs: NDArray[Any]) -> NDArray[Any]:
        """The records whose keys are not in memory, each key once; without those that the store cannot have."""
        wanted = self._held.kernel.find(inputs["key_code"], inputs["start"], inputs["end"]) == EMPTY
        if self._time_is_of_key:
            newest = max(self._newest_stored, self._elsewhere.newest_end if self._elsewhere else NO_TIMESTAMP)
            wanted &= (inputs["time"] > self._horizon_ms) & (inputs["time"] <= newest)
        asked = inputs[wanted]
        touched: NDArray[Any] = asked[np.unique(KeyTable().encode(self._held.raw_keys(asked)), return_index=True)[1]]
        return touched

    def _take_in(self, stored: Iterable[BufferedRows]) -> None:
        """Takes stored keys into memory, but for those that are there already."""
        for rows, columns in self._read(stored):
            self._insert(rows, columns)

    def _read(self, stored: Iterable[BufferedRows]) -> Iterator[tuple[BufferedRows, pa.RecordBatch]]:
        """Stored keys that are not in memory, with their columns; they no longer count as spilled."""
        schema = self._store.header.schema
        for some in stored:
            rows = self._unless_in_memory(some)
            if len(rows) == 0 or schema is None:
                continue
            columns = serde_for(pa.struct(list(schema))).deserialize(rows.row)
            self._held.kernel.add_spilled(-len(rows), -int(rows.counted_bytes.sum()))
            yield rows, pa.RecordBatch.from_struct_array(columns)

    def _unless_in_memory(self, rows: BufferedRows) -> BufferedRows:
        codes = self._context.keys.find(rows.key)  # a key without a code is not in memory
        return rows.filter(self._held.kernel.find(codes, rows.start, rows.end) == EMPTY)

    def _insert(self, rows: BufferedRows, columns: pa.RecordBatch) -> None:
        has_row = np.ones(len(rows), np.bool_)
        if self._elsewhere is not None and not self._has_spilled:  # then those that may be left have none
            has_row = ~self._elsewhere.are_left(rows.time, columns)
        self._held.insert(rows, columns, has_row)

    # --- to the store --------------------------------------------------------------------------------------------

    def flush(self, write: WriteBatch) -> None:
        """Writes the keys that came or changed since the last flush, and forgets what is in memory."""
        self._tidy_away()
        if self._held.pool is None:
            return
        records, size, schema = self.records, self.size, stored_schema(self._held.pool.schema)
        if self._store.is_by_time and self._newest_stored != NO_TIMESTAMP:
            self._store.remove_until(self._horizon_ms if records else self._newest_stored, write)
        held = self._held.kernel.held()
        if self._elsewhere is not None:
            held = self._leave(held, self._elsewhere, self._held.pool, write)
        self._write(held, self._held.pool, write)
        self._store.store_totals(records, size, schema, write)
        self._forget(records, size)

    def _leave(self, held: NDArray[np.int64], left: LeftInStore, pool: RowPool, write: WriteBatch) -> NDArray[np.int64]:
        """Leaves windows to their aggregation, and removes rows that the store has of them; gives the other slots."""
        slots = self._held.kernel.slots
        has_result, has_headers = (pool.valid(name, slots["row"][held]) for name in ("value", "headers"))
        are_left = left.are_told(slots["time"][held], has_result, has_headers)
        leaving = held[are_left]
        if self._has_spilled:
            self._remove_left(leaving, left, write)
        else:
            written = leaving[slots["stored_time"][leaving] != NOT_STORED]
            self._store.remove_from_time(self._held.raw_keys(slots, written), slots["time"][written], write)
        self._has_spilled = False
        left.refer(self._horizon_ms, stored_schema(pool.schema), write)
        return held[~are_left]

    def _remove_left(self, leaving: NDArray[np.int64], left: LeftInStore, write: WriteBatch) -> None:
        """The same where any window may have a row; ``leaving``: int64, the slots of those that are in memory."""
        is_leaving = np.zeros(len(self._held.kernel.slots), np.bool_)
        is_leaving[leaving] = True
        kind = pa.struct(list(self._store.header.schema or ()))
        for rows in self._store.rows_due(left.rows_after_ms(self._horizon_ms), None):
            columns = serde_for(kind).deserialize(rows.row)
            slot = self._held.kernel.find(self._context.keys.find(rows.key), rows.start, rows.end)
            gone = left.are_left(rows.time, pa.RecordBatch.from_struct_array(columns))
            gone[slot != EMPTY] = is_leaving[slot[slot != EMPTY]]
            some = rows.filter(gone)
            self._store.remove_from_time(encode_keys(some, self._suffix_words), some.time, write)

    def _tidy_away(self) -> None:
        """Removes what has left from the store too, and keeps memory in bounds."""
        gone, pool = self._gone, self._held.pool
        if gone is None or pool is None:
            return
        self._gone = None
        write = WriteBatch()
        # From a store in order of time they go all at once at the next flush, and nobody looks for them till then.
        if not self._store.is_by_time:
            stored = gone[gone["stored_time"] != NOT_STORED]
            self._store.remove(self._held.raw_keys(stored), stored["stored_time"], write)
        if self._exceeds(share=1):
            self._held.compact(pool)
            while self.figure("records") and self._exceeds(share=2):
                self._spill(pool, write)
        elif self._held.kernel.is_sparse or self._holds_old_rows(pool):
            self._held.compact(pool)
        if len(write):
            self._context.backend.write(write)

    def _exceeds(self, share: int) -> bool:
        """Whether there is more in memory than one ``share``-th of the bounds."""
        records, size = (None, None) if self._memory is None else (self._memory.records, self._memory.size)
        too_many = records is not None and self.figure("records") > records // share
        return too_many or (size is not None and self.memory_bytes() > size // share)

    def _holds_old_rows(self, pool: RowPool) -> bool:
        """Whether most rows of the pool are nobody's any more, and more than a few."""
        few = _FEW_ROWS
        if self._memory is not None and self._memory.records is not None:
            few = min(few, self._memory.records)
        return len(pool) >= 4 * max(few, self.figure("records"))

    def _spill(self, pool: RowPool, write: WriteBatch) -> None:
        """Moves the half of the keys to the store that have gone longest without an update."""
        held = self._held.kernel.held()
        held = held[np.argsort(self._held.kernel.slots["row"][held])]
        moved, kept = np.split(held, [(len(held) + 1) // 2])
        self._write(moved, pool, write)
        self._has_spilled = True
        self._held.kernel.add_spilled(len(moved), int(self._held.kernel.slots["bytes"][moved].sum()))
        self._held.kernel.keep(kept, self._context.keys)
        self._context.metrics.count("suppression-spill", len(moved))
        self._held.compact(pool)

    def _write(self, numbers: NDArray[np.int64], pool: RowPool, write: WriteBatch) -> None:
        """Adds those keys, given by slot, that the store does not have as they are."""
        slots = self._held.kernel.slots
        changed = numbers[slots["changed"][numbers] == 1]
        if len(changed):
            time = slots["time"][changed]
            changes = BufferChanges(
                time,
                slots["stored_time"][changed],
                lambda some: self._held.raw_keys(slots, changed[some]),
                lambda some: self._held.rows_of(changed[some], pool),
            )
            self._store.store(changes, stored_schema(pool.schema), write)
            self._newest_stored = max(self._newest_stored, int(time.max()))
