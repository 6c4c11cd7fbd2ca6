"""Lets stream records wait before they are joined with a versioned table (Kafka's ``Joined.withGracePeriod``).

A table update that arrives late changes what was valid at a time that the stream may have passed already. So records
wait for a grace period, in stream time, and are joined as they leave: everything with ``timestamp <= stream time -
grace``, in order of timestamp, then key bytes, then arrival. A record with ``timestamp < stream time - grace`` comes
too late to wait and is joined at once, before those that its own arrival lets go. So is what the join answers without
the table: records with a null key or a null value.

The stream time is the operator's own: the largest timestamp of the records that have waited. What leaves has the
sequence of the record that lets it go: the join meets it with the table as of then. Source: Kafka's
``KStreamKTableJoinProcessor`` and ``RocksDBTimeOrderedKeyValueBuffer`` (KIP-923).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.stream_time import running_stream_time
from statelib.operators.joins.stream_table.buffer_store import JoinBufferStore, WaitingRow
from statelib.operators.joins.stream_table.changelog import log_keys, log_values
from statelib.operators.key_codes import key_codes
from statelib.records.batch import NO_TIMESTAMP, Batch
from statelib.records.key_column import KeyColumn
from statelib.records.key_ranks import key_ranks
from statelib.records.row_pool import RowPool
from statelib.serdes import serde_for
from statelib.stores.byte_columns import empty_values
from statelib.stores.spec import StoreSpec, settings_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext
    from statelib.operators.changelog import Changelog
    from statelib.records.batch import Uptake
    from statelib.stores.backend import WriteBatch
    from statelib.stores.byte_columns import Column

_TIME, _ARRIVALS = "buffer_time", "arrivals"
"""Clocks: the largest timestamp of the records that have waited, and how many they were."""


@dataclass(frozen=True, slots=True)
class JoinBuffer:
    """Holds stream records back.

    Attributes:
        store: Name of the buffer's store.
        grace_ms: How long records wait, in stream time.
    """

    store: str
    grace_ms: int

    def build(self, context: OperatorContext) -> RunningJoinBuffer:
        """The running operator."""
        return RunningJoinBuffer(self, context)

    def describe(self) -> Mapping[str, object]:
        """Kind and parameters."""
        return {"operator": "join_buffer", "store": self.store, "grace_ms": self.grace_ms}

    def state_stores(self) -> Sequence[StoreSpec]:
        """The buffer."""
        return (StoreSpec(self.store, "join-buffer", (self.store,), settings_of(self.describe())),)


class RunningJoinBuffer:
    """A running `JoinBuffer`: all that waits is in memory, from the first batch after a flush to the next flush."""

    _timestamp: NDArray[np.int64]
    _code: NDArray[np.int64]
    _arrival: NDArray[np.int64]
    _stored: NDArray[np.bool_]

    def __init__(self, spec: JoinBuffer, context: OperatorContext) -> None:
        self._spec = spec
        self._context = context
        self._metrics = context.metrics
        self._store = JoinBufferStore(context.backend, spec.store)
        self._stream_time = context.clock(_TIME)
        self._left_until = NO_TIMESTAMP  # everything up to this timestamp has left, ms
        self._arrivals = max(context.clock(_ARRIVALS), 0)
        self._pool: RowPool | None = None
        self._changelog = context.changelogs.get(spec.store)
        self._forget()
        self._metrics.held_before = self._metrics.held_after = sum(1 for _ in self._store.all())

    @property
    def buffered(self) -> int:
        """How many records wait."""
        return self._metrics.held_after

    def process(self, inputs: Sequence[Batch], uptake: Uptake) -> Batch:
        """The records that are to be joined now."""
        (batch,) = inputs
        if self._pool is None:
            self._load(batch)
        code = key_codes(batch, self._context)
        waits = (code >= 0) & valid_of(batch.value)
        clock = running_stream_time(np.where(waits, batch.timestamp, NO_TIMESTAMP), self._stream_time)
        waits &= batch.timestamp >= clock - self._spec.grace_ms
        self._stream_time = int(clock[-1]) if len(clock) else self._stream_time
        self._left_until = self._stream_time - self._spec.grace_ms
        first = self._append(batch, code, waits)
        self._context.clocks[_TIME] = self._stream_time
        self._context.clocks[_ARRIVALS] = self._arrivals

        # By record, those that waited before this batch first: the record of the batch that lets it go.
        arrived = np.concatenate([np.zeros(first, np.int64), np.flatnonzero(waits)])
        trigger = np.maximum(arrived, np.searchsorted(clock, self._timestamp + self._spec.grace_ms))
        leaving, trigger = self._in_order(np.flatnonzero(trigger < len(batch)), trigger)
        if self._changelog is not None:
            arriving = np.flatnonzero(waits)
            values = log_values(batch, arriving, uptake, self._context.sources)
            logged = np.concatenate([first + np.arange(len(arriving)), leaving])
            causes = np.concatenate([2 * arriving, 2 * trigger + 1])  # a record begins to wait before others leave
            self._log(self._changelog, logged, values, np.argsort(causes, kind="stable"), clock[causes // 2])
        return self._release(batch, code, np.flatnonzero(~waits), leaving, trigger)

    def seal(self, nothing: Sequence[Batch]) -> Batch:
        """All that waits, in the order in which it would leave; see `statelib.operators.base.HoldingOperator`."""
        (empty,) = nothing
        if self._pool is None:
            self._load(empty)
        leaving, due = self._in_order(np.arange(len(self._timestamp)), self._timestamp + self._spec.grace_ms)
        if self._changelog is not None:
            clock = np.full(len(leaving), self._stream_time)
            self._log(self._changelog, leaving, empty_values(0), np.arange(len(leaving)), clock)
        self._left_until = max(self._left_until, int(self._timestamp.max(initial=NO_TIMESTAMP)))
        return self._release(empty, np.empty(0, np.int64), np.empty(0, np.int64), leaving, due)

    def _append(self, batch: Batch, code: NDArray[np.int64], waits: NDArray[np.bool_]) -> int:
        """Takes up the records that wait; gives how many have waited before."""
        first, rows = len(self._timestamp), np.flatnonzero(waits)
        self._pool_of(batch).append(_columns(batch.take(rows)))
        self._timestamp = np.concatenate([self._timestamp, batch.timestamp[rows]])
        self._code = np.concatenate([self._code, code[rows]])
        self._arrival = np.concatenate([self._arrival, self._arrivals + np.arange(len(rows))])
        self._stored = np.concatenate([self._stored, np.zeros(len(rows), np.bool_)])
        self._arrivals += len(rows)
        return first

    def _release(
        self,
        batch: Batch,
        code: NDArray[np.int64],
        at_once: NDArray[np.int64],
        leaving: NDArray[np.int64],
        trigger: NDArray[np.int64],
    ) -> Batch:
        """Records of the batch that do not wait, and those of the buffer that leave (`_in_order`), by their triggers.

        A trigger is a row of the batch, or, when the input is sealed, the stream time at which the record would leave.
        """
        pool = self._pool_of(batch)
        out = pa.concat_batches([_columns(batch.take(at_once)), pool.take(leaving)])
        triggers = np.concatenate([at_once, trigger])
        merged = np.argsort(triggers, kind="stable")
        rows = out.take(pa.array(merged))
        result = Batch(
            keys=KeyColumn.of(rows.column("key")),
            key_code=np.concatenate([code[at_once], self._code[leaving]])[merged],
            value=rows.column("value"),
            timestamp=np.concatenate([batch.timestamp[at_once], self._timestamp[leaving]])[merged],
            sequence=batch.sequence[triggers[merged]] if len(batch) else triggers[merged],
            headers=rows.column("headers") if batch.headers is not None else None,
        )
        self._keep(np.setdiff1d(np.arange(len(self._timestamp)), leaving))
        self._metrics.records_in += len(batch)
        self._metrics.records_out += len(result)
        self._metrics.account("forwarded", len(result))
        self._metrics.held_after = len(self._timestamp)
        return result

    def _in_order(
        self, leaving: NDArray[np.int64], trigger: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Those that leave in the order in which they do, and the trigger of each; ``trigger``: of all that wait."""
        rank = key_ranks(self._code[leaving], self._context.keys)
        ordered = leaving[np.lexsort((self._arrival[leaving], rank, self._timestamp[leaving], trigger[leaving]))]
        return ordered, trigger[ordered]

    def _log(
        self,
        changelog: Changelog,
        rows: NDArray[np.int64],
        values: Column,
        order: NDArray[np.int64],
        stream_time: NDArray[np.int64],
    ) -> None:
        """Logs rows of the buffer in an order; the first ones have come, with ``values``, the others have left."""
        keys = log_keys(self._context.keys.take(self._code[rows]), self._timestamp[rows], self._arrival[rows])
        logged = pa.array(order, mask=order >= len(values))
        changelog.add(keys.take(pa.array(order)), values.take(logged), stream_time[order])

    def _keep(self, rows: NDArray[np.int64]) -> None:
        if len(rows) < len(self._timestamp) and self._pool is not None:
            self._pool.keep(rows)
            self._timestamp, self._code = self._timestamp[rows], self._code[rows]
            self._arrival, self._stored = self._arrival[rows], self._stored[rows]

    def _pool_of(self, batch: Batch) -> RowPool:
        if self._pool is None:
            self._pool = RowPool(_columns(batch.take(np.empty(0, np.int64))).schema)
        return self._pool

    def _load(self, batch: Batch) -> None:
        """Brings what is stored into memory."""
        pool = self._pool_of(batch)
        schema = _stored_schema(pool.schema)
        self._store.header.check(schema)
        waiting = list(self._store.all())
        if not waiting:
            return
        keys = pa.array([row.key for row in waiting], pa.binary())
        rows = serde_for(pa.struct(list(schema))).deserialize(pa.array([row.row for row in waiting], pa.binary()))
        columns = [serde_for(batch.keys.type).deserialize(keys), *rows.flatten()]
        pool.append(pa.RecordBatch.from_arrays(columns, schema=pool.schema))
        self._timestamp = np.array([row.timestamp_ms for row in waiting], np.int64)
        self._arrival = np.array([row.arrival for row in waiting], np.int64)
        self._code = self._context.keys.encode(keys)
        self._stored = np.ones(len(waiting), np.bool_)

    def _forget(self) -> None:
        self._pool = None
        self._timestamp = np.empty(0, np.int64)
        self._code = np.empty(0, np.int64)
        self._arrival = np.empty(0, np.int64)
        self._stored = np.empty(0, np.bool_)

    def flush(self, write: WriteBatch) -> None:
        """Writes what has come since the last flush and still waits, and removes what has left."""
        if self._pool is None:
            return
        new = np.flatnonzero(~self._stored)
        rows = self._pool.take(new)
        schema = _stored_schema(rows.schema)
        values = pa.StructArray.from_arrays([rows.column(name) for name in schema.names], fields=list(schema))
        columns = (
            self._timestamp[new].tolist(),
            self._arrival[new].tolist(),
            self._context.keys.take(self._code[new]).to_pylist(),
            serde_for(values.type).serialize(values).to_pylist(),
        )
        added = [WaitingRow(*entry) for entry in zip(*columns, strict=True)]
        self._store.store(self._left_until, added, schema, write)
        self._forget()

    def memory_bytes(self) -> int:
        """What waits."""
        arrays = (self._timestamp, self._code, self._arrival, self._stored)
        return sum(array.nbytes for array in arrays) + (0 if self._pool is None else self._pool.memory_bytes())


def _columns(batch: Batch) -> pa.RecordBatch:
    """What the pool keeps of records."""
    columns = {"key": batch.keys.array, "value": batch.value}
    if batch.headers is not None:
        columns["headers"] = batch.headers
    return pa.RecordBatch.from_pydict(columns)


def row_schema(batch: Batch) -> pa.Schema:
    """Of a row in the store, given records of the stream."""
    return _stored_schema(_columns(batch.take(np.empty(0, np.int64))).schema)


def _stored_schema(schema: pa.Schema) -> pa.Schema:
    """Of a row in the store: the key lies beside it."""
    return pa.schema([field for field in schema if field.name != "key"])
