"""Suppress: holds back a table's updates, so that only the last of several is forwarded (KIP-328).

A key waits in a buffer. An update of it replaces the record that waits; after each record all keys leave whose time has
come, the oldest first: in order of (buffer time, serialised key), as in Kafka's ``KTableSuppressProcessor``.

* ``until_window_closes``: the buffer time is the window's end, and a key leaves when stream time reaches it plus the
  grace period. Tombstones are dropped then: nothing was forwarded that they would take back. A session may change once
  more at the very stream time at which it closes: that is late, and dropped, since its result was final (the shipped
  library forwards it again).
* ``until_time_limit``: the buffer time is the timestamp at which the key was first buffered (``clock="first"``) or that
  of its latest record (``clock="record"``), and a key leaves when stream time reaches it plus the limit.

Stream time is the operator's own: the largest timestamp of the records that reach it. While the buffer holds more than
its bounds allow, the oldest leave early, or, if it is strict, the run fails.

What leaves has the sequence of the record that made it leave. Its ``prior`` is the value known downstream, the one
before the key was buffered; the shipped library (``semantics="kafka-4.3"``) gives the one before the last update.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pyarrow as pa

from statelib.batch import NULL_KEY, Batch, Windows
from statelib.errors import ConfigurationError
from statelib.kernels.key_table import KeyTable
from statelib.kernels.suppress import INPUT, NOT_STORED
from statelib.kernels.suppression_buffer import SuppressionBuffer, policy
from statelib.operators.final_results import repeats_of_final_results
from statelib.operators.row_pool import RowPool
from statelib.operators.sizes import serialized_bytes
from statelib.serdes import serde_for
from statelib.stores.header import named
from statelib.stores.suppression_buffer import SuppressionBufferStore
from statelib.stores.suppression_codec import BufferedRow, BufferKey
from statelib.suppressed import StrictBufferConfig, Suppressed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from statelib.batch import Uptake
    from statelib.operators.base import OperatorContext
    from statelib.stores.backend import WriteBatch
    from statelib.windows import AnyWindows

_COMPACT_FROM_ROWS = 1 << 14
_RESTORED_AT_ONCE = 1 << 16
_PRIOR = "prior"
_BUFFER_TIME_BYTES = 8
_RECORD_CONTEXT_BYTES = 20
"""What Kafka counts for a record's timestamp, offset and partition."""


@dataclass(frozen=True, slots=True)
class Suppress:
    """Suppresses updates of a table.

    Attributes:
        store: Name of the buffer's store.
        suppressed: What to hold back.
        windows: The windows of the table's keys; None: its keys have none.
    """

    store: str
    suppressed: Suppressed
    windows: AnyWindows | None = None

    def build(self, context: OperatorContext) -> RunningSuppress:
        """The running operator."""
        return RunningSuppress(self, context)

    def check(self, node: str) -> None:
        """Only windows have final results."""
        if self.suppressed.final_results and self.windows is None:
            raise ConfigurationError(
                "until_window_closes needs a windowed table",
                node=node,
                next_step="use until_time_limit, or aggregate by windows first",
            )

    @property
    def wait_ms(self) -> int:
        """How long after its buffer time a key leaves."""
        limit = self.suppressed.time_limit_ms
        if limit is not None:
            return limit
        return self.windows.closes_after_end_ms if self.windows else 0

    @property
    def suffix_words(self) -> int:
        """How many integers follow the key's bytes in a buffer key."""
        return self.windows.key_suffix_words if self.windows else 0

    @property
    def may_repeat(self) -> bool:
        """Whether windows may change after their final results."""
        return self.suppressed.final_results and self.windows is not None and self.windows.change_when_closed

    def describe(self) -> Mapping[str, object]:
        """Kind and parameters."""
        windows = self.windows.describe() if self.windows else None
        return {"operator": "suppress", "store": self.store, "windows": windows, **self.suppressed.describe()}

    def families(self) -> Sequence[str]:
        """Those of the buffer's store."""
        return SuppressionBufferStore.families(self.store)


class RunningSuppress:
    """A running `Suppress`: the whole buffer in memory, from the first batch after a flush to the next flush."""

    def __init__(self, spec: Suppress, context: OperatorContext) -> None:
        self._spec = spec
        self._context = context
        self._metrics = context.metrics
        self._as_shipped = context.semantics == "kafka-4.3"
        self._store = SuppressionBufferStore(context.backend, spec.store, suffix_words=spec.suffix_words)
        self._stale = True  # what is stored is not in memory
        self._pool: RowPool | None = None
        self._forget()
        self._load()
        self._metrics.held_before = self.buffered_records
        self._measure()

    @property
    def buffered_records(self) -> int:
        """How many keys wait."""
        self._load()
        return self._buffer.figure("records")

    @property
    def buffered_bytes(self) -> int:
        """What they count: see `BufferConfig.max_bytes`."""
        self._load()
        return self._buffer.figure("bytes")

    @property
    def oldest_buffer_time(self) -> int | None:
        """The buffer time of the next key to leave, ms; None if none waits."""
        self._load()
        return self._buffer.oldest_time

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """What leaves the buffer."""
        (given,) = inputs
        batch = self._with_codes(given)
        self._metrics.records_in += len(given)
        self._metrics.drop("null-key", len(given) - len(batch))
        batch = self._without_repeats(batch, uptake)
        self._load()
        if len(batch) == 0:
            return given.take(np.empty(0, dtype=np.int64))
        rows = self._rows_of(batch)
        pool = self._pool_for(rows.schema)
        first_row = pool.append(rows)
        replaced = self._buffer.figure("replaced")
        emissions, failed = self._buffer.put(self._inputs(batch, rows, uptake), first_row, self._context.keys)
        self._metrics.account("replaced", self._buffer.figure("replaced") - replaced)
        self._context.clocks["stream_time"] = self._buffer.figure("stream_time")
        self._measure()
        if failed is not None:
            self._shut_down(int(batch.sequence[failed]) - uptake.first_sequence, uptake)
        self._removed += [emissions[emissions["stored_time"] != NOT_STORED]]
        result = self._emit(emissions, batch, pool, batch.sequence[emissions["trigger"]])
        self._compact()
        return result

    def _with_codes(self, batch: Batch) -> Batch:
        """The records with a key, with key codes."""
        codes = batch.key_code
        if codes is None:
            codes = self._context.keys.encode(serde_for(batch.key.type).serialize(batch.key))
            batch = replace(batch, key_code=codes)
        return batch.filter(codes != NULL_KEY)

    def _without_repeats(self, batch: Batch, uptake: Uptake) -> Batch:
        """Drops and counts what would be a second final result of a window."""
        if self._as_shipped or not self._spec.may_repeat:
            return batch
        repeats = repeats_of_final_results(batch, self._context.clock(), self._spec.wait_ms)
        clock_ms = np.maximum(np.maximum.accumulate(batch.timestamp), self._context.clock())
        self._context.drop_late(batch, repeats, uptake, clock_ms - batch.timestamp, reason="result was final")
        self._metrics.count("late-record-drop", int(np.count_nonzero(repeats)))
        return batch.filter(~repeats)

    def _rows_of(self, batch: Batch) -> pa.RecordBatch:
        """What the pool keeps of records."""
        columns = {"timestamp": pa.array(batch.timestamp), "value": batch.value}
        if batch.prior is not None:
            columns["old"] = batch.prior
        if batch.headers is not None:
            columns["headers"] = batch.headers
        return pa.RecordBatch.from_pydict(columns)

    def _pool_for(self, schema: pa.Schema) -> RowPool:
        if self._pool is None:
            self._store.header.check(_stored(schema))
            self._pool = RowPool(schema)
        elif self._pool.schema != schema:
            raise ConfigurationError(
                f"the columns of a table have changed from ({named(self._pool.schema)}) to ({named(schema)})",
                node=self._context.node,
                next_step="bring the records to the old types with map_values(), or start the job over",
            )
        return self._pool

    def _inputs(self, batch: Batch, rows: pa.RecordBatch, uptake: Uptake) -> NDArray[Any]:
        """What the kernel sees of records."""
        inputs = np.zeros(len(batch), dtype=INPUT)
        inputs["key_code"] = batch.key_code
        inputs["timestamp"] = batch.timestamp
        if batch.windows is not None:
            inputs["start"] = batch.windows.start
            inputs["end"] = batch.windows.end
        inputs["time"] = inputs["end"] if self._spec.suppressed.final_results else batch.timestamp
        inputs["bytes"] = self._record_bytes(inputs["key_code"], rows)
        if self._as_shipped:
            topic_bytes = np.array([len(topic.encode()) for topic in self._context.sources] or [0])
            inputs["bytes"] += topic_bytes[uptake.source[batch.sequence - uptake.first_sequence]]
            inputs["old_bytes"], inputs["old_code"] = self._old_values(rows)
        return inputs

    def _record_bytes(self, key_code: NDArray[np.int64], rows: pa.RecordBatch) -> NDArray[np.int64]:
        """What records count by themselves: key and value; as shipped also Kafka's overhead."""
        offsets = self._context.keys.offsets
        size = offsets[key_code + 1] - offsets[key_code] + 8 * self._spec.suffix_words
        size += serialized_bytes(rows.column("value"))
        return size + _BUFFER_TIME_BYTES + _RECORD_CONTEXT_BYTES if self._as_shipped else size

    def _old_values(self, rows: pa.RecordBatch) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Size of each old value, and a code for its content (Kafka counts it once if it is the prior one too)."""
        if "old" not in rows.schema.names:
            return np.zeros(rows.num_rows, dtype=np.int64), np.full(rows.num_rows, NULL_KEY)
        old = rows.column("old")
        return serialized_bytes(old), self._contents.encode(serde_for(old.type).serialize(old))

    def _shut_down(self, record: int, uptake: Uptake) -> NoReturn:
        bounds = self._spec.suppressed.buffer
        topics = self._context.sources
        raise ConfigurationError(
            f"the suppression buffer holds {self.buffered_records} records and {self.buffered_bytes} bytes, more than "
            f"its bounds (max_records: {bounds.record_limit}, max_bytes: {bounds.byte_limit})",
            next_step="raise the bounds of its BufferConfig, or let it emit_early_when_full()",
            node=self._context.node,
            topic=topics[uptake.source[record]] if topics else None,
            partition=int(uptake.partition[record]),
            offset=int(uptake.offset[record]),
        )

    def seal(self, nothing: Sequence[Batch]) -> Batch:
        """Everything that waits: see `HoldingOperator`."""
        (batch,) = nothing
        self._load()
        if self._pool is None:
            return batch
        drained = self._buffer.drain(self._context.keys)
        self._measure()
        self._removed += [drained[drained["stored_time"] != NOT_STORED]]
        return self._emit(drained, batch, self._pool, drained["time"] + self._spec.wait_ms)

    def _emit(self, emissions: NDArray[Any], batch: Batch, pool: RowPool, sequence: NDArray[np.int64]) -> Batch:
        """The records that leave, in order.

        Args:
            emissions: `EMISSION` or `SLOT`.
            batch: Has the types of what reaches the operator.
            pool: The rows.
            sequence: int64, of each.
        """
        rows = pool.take(emissions["row"])
        if self._spec.suppressed.final_results and rows.column("value").null_count:
            keep = np.asarray(rows.column("value").is_valid())
            self._metrics.account("tombstone", len(emissions) - int(keep.sum()))
            emissions, rows, sequence = emissions[keep], rows.filter(pa.array(keep)), sequence[keep]
        self._metrics.account("emitted", len(emissions))
        self._metrics.count("suppression-emit", len(emissions))
        self._metrics.records_out += len(emissions)
        codes = np.ascontiguousarray(emissions["key_code"])
        prior = None
        if batch.prior is not None:
            known = rows if self._as_shipped else pool.take(emissions["first_row"])
            prior = known.column("old")
        start, end = (np.ascontiguousarray(emissions[name]) for name in ("start", "end"))
        return Batch(
            key=serde_for(batch.key.type).deserialize(self._context.keys.take(codes)),
            key_code=codes,
            value=rows.column("value"),
            timestamp=np.asarray(rows.column("timestamp")),
            sequence=sequence,
            windows=None if batch.windows is None else Windows(start, end),
            prior=prior,
            headers=None if batch.headers is None else rows.column("headers"),
        )

    def _compact(self) -> None:
        """Drops rows that nobody waits for, whenever the pool has doubled."""
        pool = self._pool
        if pool is None or len(pool) < max(_COMPACT_FROM_ROWS, 4 * self.buffered_records):
            return
        held, slots = self._buffer.held(), self._buffer.slots
        rows, first_rows = slots["row"][held], slots["first_row"][held]
        pool.keep(np.concatenate([rows, first_rows]))
        slots["row"][held] = np.arange(len(held))
        slots["first_row"][held] = np.arange(len(held), 2 * len(held))
        if self._as_shipped:
            self._contents.clear()
            kept = pool.take(slots["first_row"][held])
            slots["prior_code"][held] = self._old_values(kept)[1]

    def _measure(self) -> None:
        gauges = self._metrics.gauges
        self._metrics.held_after = self.buffered_records
        gauges["suppression-buffer-count"] = self.buffered_records
        gauges["suppression-buffer-size"] = self.buffered_bytes
        self._metrics.gauge_max("suppression-buffer-count_max", self._buffer.figure("max_records"))
        self._metrics.gauge_max("suppression-buffer-size_max", self._buffer.figure("max_bytes"))

    def _forget(self) -> None:
        """An empty working set."""
        suppressed = self._spec.suppressed
        self._buffer = SuppressionBuffer(
            policy(
                wait_ms=self._spec.wait_ms,
                suffix_words=self._spec.suffix_words,
                max_records=suppressed.buffer.record_limit,
                max_bytes=suppressed.buffer.byte_limit,
                strict=isinstance(suppressed.buffer, StrictBufferConfig),
                restart=suppressed.clock == "record",
            ),
            self._context.clock(),
        )
        self._pool = None
        self._contents = KeyTable()
        self._removed: list[NDArray[Any]] = []

    def _load(self) -> None:
        """Brings the stored buffer into memory, unless it is there."""
        if self._stale:
            self._stale = False
            entries = list(self._store.all())
            if entries and self._store.header.schema is not None:
                self._restore(entries, self._store.header.schema)

    def _restore(self, entries: list[BufferedRow], schema: pa.Schema) -> None:
        """The rows, then once more what was known downstream before each key was buffered; and the buffer's order."""
        serde = serde_for(pa.struct(list(schema)))
        pieces = (entries[first : first + _RESTORED_AT_ONCE] for first in range(0, len(entries), _RESTORED_AT_ONCE))
        structs = [serde.deserialize(pa.array([entry.row for entry in piece], pa.binary())) for piece in pieces]
        stored = pa.concat_batches([pa.RecordBatch.from_struct_array(struct) for struct in structs])
        names = [name for name in schema.names if name != _PRIOR]
        self._pool = RowPool(pa.schema([schema.field(name) for name in names]))
        self._pool.append(stored.select(names))
        first_rows = np.arange(len(entries))
        if _PRIOR in schema.names:
            first_rows += self._pool.append(
                stored.select([_PRIOR if name == "old" else name for name in names]).rename_columns(names)
            )
        inputs = np.zeros(len(entries), dtype=INPUT)
        inputs["key_code"] = self._context.keys.encode(pa.array([e.key.key for e in entries], pa.large_binary()))
        inputs["start"] = [entry.key.start_ms for entry in entries]
        inputs["end"] = [entry.key.end_ms for entry in entries]
        inputs["time"] = [entry.time_ms for entry in entries]
        inputs["timestamp"] = self._context.clock()
        inputs["bytes"] = [entry.counted_bytes for entry in entries]
        self._buffer.restore(inputs, self._context.keys)
        held, slots = self._buffer.held(), self._buffer.slots
        number = slots["row"][held]
        slots["first_row"][held] = first_rows[number]
        if self._as_shipped:
            slots["prior_bytes"][held], slots["prior_code"][held] = self._old_values(
                self._pool.take(slots["first_row"][held])
            )

    def flush(self, write: WriteBatch) -> None:
        """Writes the keys that came, changed or left since the last flush."""
        if self._stale or self._pool is None:
            return
        slots = self._buffer.slots[self._buffer.held()]
        changed = slots[slots["changed"] == 1]
        changed = changed[np.lexsort((changed["start"], changed["key_code"]))]
        moved = changed[(changed["stored_time"] != NOT_STORED) & (changed["stored_time"] != changed["time"])]
        rows = self._stored_rows(self._pool, changed)
        self._store.store(
            removed=((key, time) for removed in self._removed for key, time in self._stored_keys(removed)),
            moved=self._stored_keys(moved),
            changed=self._buffered(changed, rows),
            schema=rows.schema,
            write=write,
        )
        self._stale = True
        self._forget()

    def _stored_rows(self, pool: RowPool, slots: NDArray[Any]) -> pa.RecordBatch:
        """The rows of slots as they are stored: with what was known downstream before each key was buffered."""
        rows = pool.take(slots["row"])
        if "old" not in rows.schema.names:
            return rows
        if not self._as_shipped:  # only the first one will ever be asked for
            index = rows.schema.get_field_index("old")
            rows = rows.set_column(index, rows.schema.field(index), pa.nulls(len(slots), rows.column(index).type))
        return rows.append_column(_PRIOR, pool.take(slots["first_row"]).column("old"))

    def _buffer_keys(self, slots: NDArray[Any]) -> Iterator[BufferKey]:
        keys = self._context.keys.take(np.ascontiguousarray(slots["key_code"])).to_pylist()
        return map(BufferKey, keys, slots["start"].tolist(), slots["end"].tolist())

    def _stored_keys(self, slots: NDArray[Any]) -> Iterator[tuple[BufferKey, int]]:
        return zip(self._buffer_keys(slots), slots["stored_time"].tolist(), strict=True)

    def _buffered(self, slots: NDArray[Any], rows: pa.RecordBatch) -> Iterator[BufferedRow]:
        struct = rows.to_struct_array()
        raws = serde_for(struct.type).serialize(struct).to_pylist()
        return map(BufferedRow, self._buffer_keys(slots), slots["time"].tolist(), slots["bytes"].tolist(), raws)

    def memory_bytes(self) -> int:
        """Size of the buffer."""
        pool = 0 if self._pool is None else self._pool.memory_bytes()
        return self._buffer.memory_bytes() + pool + self._contents.memory_bytes()


def _stored(schema: pa.Schema) -> pa.Schema:
    """The columns of a stored row, given those in memory."""
    return schema.append(schema.field("old").with_name(_PRIOR)) if "old" in schema.names else schema
