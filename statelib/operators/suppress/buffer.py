"""What suppress holds back (Kafka's ``TimeOrderedKeyValueBuffer``): part of it in memory, the rest in the store.

A key waits either in memory, where a kernel keeps the order (`statelib.operators.suppress.kernel`) and a `RowPool` the
values, or in the store alone. What memory has is true: the store may still have an older row of it.

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

from statelib.errors.kinds import ConfigurationError
from statelib.operators.serialized_sizes import serialized_bytes
from statelib.operators.suppress.buffer_kernel import SuppressionBuffer
from statelib.operators.suppress.buffered_columns import from_store, stored_schema, to_store
from statelib.operators.suppress.codec import BufferedRows, encode_keys
from statelib.operators.suppress.departures import Departures
from statelib.operators.suppress.layout_kernel import EMPTY, NOT_STORED, PUT, SLOT, buffer_keys
from statelib.operators.suppress.left_in_store import LeftInStore
from statelib.operators.suppress.store import BufferChanges, SuppressionBufferStore
from statelib.records.batch import NO_TIMESTAMP, NULL_KEY
from statelib.records.key_table import KeyTable
from statelib.records.row_pool import RowPool
from statelib.serdes import serde_for, serialized
from statelib.stores.backend import WriteBatch
from statelib.stores.header import named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext
    from statelib.operators.windows.stored_windows import StoredWindows

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
        self._name = name
        self._policy = policy
        self._wait_ms, self._suffix_words = (int(policy[field][0]) for field in ("wait", "suffix_words"))
        self._memory = memory
        self._time_is_of_key = time_is_of_key
        self._as_shipped = context.semantics != "kip"
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
        self._buffer = SuppressionBuffer(self._policy, self._context.clock())
        self._buffer.add_spilled(records, size)
        self._pool: RowPool | None = None
        self._gone: NDArray[Any] | None = None  # what has left (`SLOT`), and is still to be tidied away
        self._old_values = KeyTable()

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
        return self._buffer.figure(name)

    def oldest_time(self) -> int | None:
        """The buffer time of the next key to leave, ms; None if none waits."""
        times = [] if self._buffer.oldest_time is None else [self._buffer.oldest_time]
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
        pool = 0 if self._pool is None else self._pool.memory_bytes()
        pool += pool * more // max(self.figure("records"), 1)
        return self._buffer.memory_bytes(more) + pool + self._old_values.memory_bytes()

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
        pool = self._pool_for(rows.schema)
        self._take_in(self._bring_in(inputs, int(inputs["timestamp"].max())))
        puts = np.empty(len(inputs) if self._logs else 0, dtype=PUT)
        first_row = pool.append(rows)
        slots, trigger, failed = self._buffer.put(inputs, first_row, self._context.keys, puts)
        left = self._left(slots, trigger, pool)
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
        if self._pool is None:
            return None
        slots = self._buffer.drain(self._context.keys)
        if wait_ms is None and self._elsewhere is not None:
            self._elsewhere.nothing_waits()
        if wait_ms is not None:
            self._wait_ms = wait_ms
            is_due = slots["time"] <= self._horizon_ms
            self._buffer.insert(slots[~is_due], self._context.keys)
            slots = slots[is_due]
        left = self._left(slots, np.zeros(len(slots), dtype=np.int64), self._pool)
        self._gone = slots
        self._tidy_away()
        return left

    def _left(self, slots: NDArray[Any], trigger: NDArray[np.int64], pool: RowPool) -> Departures:
        rows, prior = pool.take(slots["row"]), None
        if "old" in rows.schema.names:
            prior = (rows if self._as_shipped else pool.take(slots["first_row"])).column("old")
        return Departures.of(slots, trigger, rows, prior, self._context.keys)

    def sizes_of_old_values(self, rows: pa.RecordBatch) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Size of each old value, and a code for its content: Kafka counts it once if it is the prior one too."""
        if "old" not in rows.schema.names:
            return np.zeros(rows.num_rows, dtype=np.int64), np.full(rows.num_rows, NULL_KEY)
        old = rows.column("old")
        return serialized_bytes(old), self._old_values.encode(serde_for(old.type).serialize(old))

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
        self._take_in(self._store.load(self._raw_keys(touched), touched["time"]))
        until_ms = max(stream_time, self.figure("stream_time")) - self._wait_ms
        return self._store.due(self._horizon_ms, until_ms) if until_ms > self._horizon_ms else ()

    def _touched(self, inputs: NDArray[Any]) -> NDArray[Any]:
        """The records whose keys are not in memory, each key once; without those that the store cannot have."""
        wanted = self._buffer.find(inputs["key_code"], inputs["start"], inputs["end"]) == EMPTY
        if self._time_is_of_key:
            newest = max(self._newest_stored, self._elsewhere.newest_end if self._elsewhere else NO_TIMESTAMP)
            wanted &= (inputs["time"] > self._horizon_ms) & (inputs["time"] <= newest)
        asked = inputs[wanted]
        touched: NDArray[Any] = asked[np.unique(KeyTable().encode(self._raw_keys(asked)), return_index=True)[1]]
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
            self._buffer.add_spilled(-len(rows), -int(rows.counted_bytes.sum()))
            yield rows, pa.RecordBatch.from_struct_array(columns)

    def _unless_in_memory(self, rows: BufferedRows) -> BufferedRows:
        codes = self._context.keys.find(rows.key)  # a key without a code is not in memory
        return rows.filter(self._buffer.find(codes, rows.start, rows.end) == EMPTY)

    def _insert(self, rows: BufferedRows, columns: pa.RecordBatch) -> None:
        """Puts stored keys into the kernel's buffer, and into the pool their rows and what was known downstream."""
        latest, first = from_store(columns)
        pool = self._pool_for(latest.schema)
        slots = np.zeros(len(rows), dtype=SLOT)
        slots["key_code"] = self._context.keys.encode(rows.key)
        slots["start"], slots["end"] = rows.start, rows.end
        slots["time"] = slots["stored_time"] = rows.time
        if self._elsewhere is not None and not self._has_spilled:  # then those that may be left have no rows
            slots["stored_time"][self._elsewhere.are_left(rows.time, columns)] = NOT_STORED
        slots["updated"] = rows.updated
        slots["bytes"] = rows.counted_bytes
        slots["row"] = slots["first_row"] = pool.append(latest) + np.arange(len(rows))
        if first is not None:
            slots["first_row"] = pool.append(first) + np.arange(len(rows))
            if self._as_shipped:
                slots["prior_bytes"], slots["prior_code"] = self.sizes_of_old_values(first)
        elif self._as_shipped:
            slots["prior_code"] = NULL_KEY
        self._buffer.insert(slots, self._context.keys)

    def _pool_for(self, schema: pa.Schema) -> RowPool:
        if self._pool is None:
            self._store.header.check(stored_schema(schema))
            self._pool = RowPool(schema)
        elif self._pool.schema != schema:
            raise ConfigurationError(
                f"the columns of a table have changed from ({named(self._pool.schema)}) to ({named(schema)})",
                node=self._context.node,
                next_step="bring the records to the old types with map_values(), or start the job over",
            )
        return self._pool

    # --- to the store --------------------------------------------------------------------------------------------

    def flush(self, write: WriteBatch) -> None:
        """Writes the keys that came or changed since the last flush, and forgets what is in memory."""
        self._tidy_away()
        if self._pool is None:
            return
        records, size, schema = self.records, self.size, stored_schema(self._pool.schema)
        if self._store.is_by_time and self._newest_stored != NO_TIMESTAMP:
            self._store.remove_until(self._horizon_ms if records else self._newest_stored, write)
        held = self._buffer.held()
        if self._elsewhere is not None:
            held = self._leave(held, self._elsewhere, self._pool, write)
        self._write(held, self._pool, write)
        self._store.store_totals(records, size, schema, write)
        self._forget(records, size)

    def _leave(self, held: NDArray[np.int64], left: LeftInStore, pool: RowPool, write: WriteBatch) -> NDArray[np.int64]:
        """Leaves windows to their aggregation, and removes rows that the store has of them; gives the other slots."""
        slots = self._buffer.slots
        has_result, has_headers = (pool.valid(name, slots["row"][held]) for name in ("value", "headers"))
        are_left = left.are_told(slots["time"][held], has_result, has_headers)
        leaving = held[are_left]
        if self._has_spilled:
            self._remove_left(leaving, left, write)
        else:
            written = leaving[slots["stored_time"][leaving] != NOT_STORED]
            self._store.remove_from_time(self._raw_keys(slots, written), slots["time"][written], write)
        self._has_spilled = False
        left.refer(self._horizon_ms, stored_schema(pool.schema), write)
        return held[~are_left]

    def _remove_left(self, leaving: NDArray[np.int64], left: LeftInStore, write: WriteBatch) -> None:
        """The same where any window may have a row; ``leaving``: int64, the slots of those that are in memory."""
        is_leaving = np.zeros(len(self._buffer.slots), np.bool_)
        is_leaving[leaving] = True
        kind = pa.struct(list(self._store.header.schema or ()))
        for rows in self._store.rows_due(left.rows_after_ms(self._horizon_ms), None):
            columns = serde_for(kind).deserialize(rows.row)
            slot = self._buffer.find(self._context.keys.find(rows.key), rows.start, rows.end)
            gone = left.are_left(rows.time, pa.RecordBatch.from_struct_array(columns))
            gone[slot != EMPTY] = is_leaving[slot[slot != EMPTY]]
            some = rows.filter(gone)
            self._store.remove_from_time(encode_keys(some, self._suffix_words), some.time, write)

    def _tidy_away(self) -> None:
        """Removes what has left from the store too, and keeps memory in bounds."""
        gone, pool = self._gone, self._pool
        if gone is None or pool is None:
            return
        self._gone = None
        write = WriteBatch()
        # From a store in order of time they go all at once at the next flush, and nobody looks for them till then.
        if not self._store.is_by_time:
            stored = gone[gone["stored_time"] != NOT_STORED]
            self._store.remove(self._raw_keys(stored), stored["stored_time"], write)
        if self._exceeds(share=1):
            self._compact(pool)
            while self.figure("records") and self._exceeds(share=2):
                self._spill(pool, write)
        elif self._buffer.is_sparse or self._holds_old_rows(pool):
            self._compact(pool)
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
        held = self._buffer.held()
        held = held[np.argsort(self._buffer.slots["row"][held])]
        moved, kept = np.split(held, [(len(held) + 1) // 2])
        self._write(moved, pool, write)
        self._has_spilled = True
        self._buffer.add_spilled(len(moved), int(self._buffer.slots["bytes"][moved].sum()))
        self._buffer.keep(kept, self._context.keys)
        self._context.metrics.count("suppression-spill", len(moved))
        self._compact(pool)

    def _write(self, numbers: NDArray[np.int64], pool: RowPool, write: WriteBatch) -> None:
        """Adds those keys, given by slot, that the store does not have as they are."""
        slots = self._buffer.slots
        changed = numbers[slots["changed"][numbers] == 1]
        if len(changed):
            time = slots["time"][changed]
            changes = BufferChanges(
                time,
                slots["stored_time"][changed],
                lambda some: self._raw_keys(slots, changed[some]),
                lambda some: self._rows_of(changed[some], pool),
            )
            self._store.store(changes, stored_schema(pool.schema), write)
            self._newest_stored = max(self._newest_stored, int(time.max()))

    def _rows_of(self, numbers: NDArray[np.int64], pool: RowPool) -> BufferedRows:
        """What the store holds of slots."""
        slots = self._buffer.slots
        latest = pool.take(slots["row"][numbers])
        rows = to_store(latest, lambda: pool.take(slots["first_row"][numbers]), keeps_old=self._as_shipped)
        return BufferedRows(
            key=self._context.keys.take(slots["key_code"][numbers]),
            start=slots["start"][numbers],
            end=slots["end"][numbers],
            time=slots["time"][numbers],
            updated=slots["updated"][numbers],
            counted_bytes=slots["bytes"][numbers],
            row=serialized(rows.to_struct_array()),
        )

    def _compact(self, pool: RowPool) -> None:
        """Drops the rows that nobody waits for, and room that nobody needs; the rows keep their order."""
        if self._buffer.is_sparse:
            self._buffer.keep(self._buffer.held(), self._context.keys)
        held, slots = self._buffer.held(), self._buffer.slots
        rows = [slots["row"][held]]
        if "old" in pool.schema.names:
            rows.append(slots["first_row"][held])
        else:
            slots["first_row"][held] = rows[0]
        waiting = np.unique(np.concatenate(rows))
        pool.keep(waiting)
        for name in ("row", "first_row"):
            slots[name][held] = np.searchsorted(waiting, slots[name][held])
        if self._as_shipped:
            self._old_values.clear()
            slots["prior_code"][held] = self.sizes_of_old_values(pool.take(slots["first_row"][held]))[1]

    def _raw_keys(self, slots: NDArray[Any], numbers: NDArray[np.int64] | None = None) -> pa.Array:
        """The buffer keys of slots, or of inputs; of those ``numbers``, column by column: see `merged`."""
        chosen = slice(None) if numbers is None else numbers
        key_code, start, end = (np.ascontiguousarray(slots[name][chosen]) for name in ("key_code", "start", "end"))
        return buffer_keys(self._context.keys.take(key_code), start, end, self._suffix_words)
