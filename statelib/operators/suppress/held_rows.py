"""What of a suppression buffer is in memory: a kernel keeps the order of the keys, a pool has their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from statelib.errors.kinds import ConfigurationError
from statelib.operators.serialized_sizes import serialized_bytes
from statelib.operators.suppress.buffer_kernel import SuppressionBuffer
from statelib.operators.suppress.buffered_columns import from_store, to_store
from statelib.operators.suppress.codec import BufferedRows
from statelib.operators.suppress.departures import Departures
from statelib.operators.suppress.layout_kernel import NOT_STORED, SLOT, buffer_keys
from statelib.records.batch import NULL_KEY
from statelib.records.key_table import KeyTable
from statelib.records.row_pool import RowPool
from statelib.serdes import serde_for, serialized
from statelib.stores.header import named

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext


class HeldRows:
    """See the module's docstring; empty at first.

    Args:
        context: The operator's.
        policy: See `statelib.operators.suppress.buffer_kernel.policy`.

    Attributes:
        kernel: Has a slot for each key (`SLOT`), which has the numbers of its rows in the pool.
        pool: The rows; None: there were none yet. See `TimeOrderedBuffer` for their columns.
    """

    def __init__(self, context: OperatorContext, policy: NDArray[Any]) -> None:
        self._context = context
        self._keys = context.keys
        self._suffix_words = int(policy["suffix_words"][0])
        self._as_shipped = context.semantics != "kip"
        self._old_values = KeyTable()
        self.kernel = SuppressionBuffer(policy, context.clock())
        self.pool: RowPool | None = None

    def pool_for(self, schema: pa.Schema) -> RowPool:
        """The pool, for rows with these columns.

        Raises:
            ConfigurationError: Those that wait have others.
        """
        if self.pool is None:
            self.pool = RowPool(schema)
        elif self.pool.schema != schema:
            raise ConfigurationError(
                f"the columns of a table have changed from ({named(self.pool.schema)}) to ({named(schema)})",
                node=self._context.node,
                next_step="bring the records to the old types with map_values(), or start the job over",
            )
        return self.pool

    def memory_bytes(self, more: int = 0) -> int:
        """What is in memory, or will be with so many more keys like those that are."""
        pool = 0 if self.pool is None else self.pool.memory_bytes()
        pool += pool * more // max(self.kernel.figure("records"), 1)
        return self.kernel.memory_bytes(more) + pool + self._old_values.memory_bytes()

    def insert(self, rows: BufferedRows, columns: pa.RecordBatch, has_row: NDArray[np.bool_]) -> None:
        """Takes stored keys.

        Args:
            rows: None of them is in memory.
            columns: What the store has of them.
            has_row: bool, whether the store has a row of its own for each.
        """
        latest, first = from_store(columns)
        pool = self.pool_for(latest.schema)
        slots = np.zeros(len(rows), dtype=SLOT)
        slots["key_code"] = self._keys.encode(rows.key)
        slots["start"], slots["end"] = rows.start, rows.end
        slots["time"] = rows.time
        slots["stored_time"] = np.where(has_row, rows.time, NOT_STORED)
        slots["updated"] = rows.updated
        slots["bytes"] = rows.counted_bytes
        slots["row"] = slots["first_row"] = pool.append(latest) + np.arange(len(rows))
        if first is not None:
            slots["first_row"] = pool.append(first) + np.arange(len(rows))
            if self._as_shipped:
                slots["prior_bytes"], slots["prior_code"] = self.sizes_of_old_values(first)
        elif self._as_shipped:
            slots["prior_code"] = NULL_KEY
        self.kernel.insert(slots, self._keys)

    def left(self, slots: NDArray[Any], trigger: NDArray[np.int64], pool: RowPool) -> Departures:
        """What has left: ``slots`` of it; ``trigger``: int64, the records that let each go."""
        rows, prior = pool.take(slots["row"]), None
        if "old" in rows.schema.names:
            prior = (rows if self._as_shipped else pool.take(slots["first_row"])).column("old")
        return Departures.of(slots, trigger, rows, prior, self._keys)

    def rows_of(self, numbers: NDArray[np.int64], pool: RowPool) -> BufferedRows:
        """What the store holds of slots."""
        slots = self.kernel.slots
        latest = pool.take(slots["row"][numbers])
        rows = to_store(latest, lambda: pool.take(slots["first_row"][numbers]), keeps_old=self._as_shipped)
        return BufferedRows(
            key=self._keys.take(slots["key_code"][numbers]),
            start=slots["start"][numbers],
            end=slots["end"][numbers],
            time=slots["time"][numbers],
            updated=slots["updated"][numbers],
            counted_bytes=slots["bytes"][numbers],
            row=serialized(rows.to_struct_array()),
        )

    def raw_keys(self, slots: NDArray[Any], numbers: NDArray[np.int64] | None = None) -> pa.Array:
        """The buffer keys of slots, or of inputs; of those ``numbers``, column by column: see `merged`."""
        chosen = slice(None) if numbers is None else numbers
        key_code, start, end = (np.ascontiguousarray(slots[name][chosen]) for name in ("key_code", "start", "end"))
        return buffer_keys(self._keys.take(key_code), start, end, self._suffix_words)

    def sizes_of_old_values(self, rows: pa.RecordBatch) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Size of each old value, and a code for its content: Kafka counts it once if it is the prior one too."""
        if "old" not in rows.schema.names:
            return np.zeros(rows.num_rows, dtype=np.int64), np.full(rows.num_rows, NULL_KEY)
        old = rows.column("old")
        return serialized_bytes(old), self._old_values.encode(serde_for(old.type).serialize(old))

    def compact(self, pool: RowPool) -> None:
        """Drops the rows that nobody waits for, and room that nobody needs; the rows keep their order."""
        if self.kernel.is_sparse:
            self.kernel.keep(self.kernel.held(), self._keys)
        held, slots = self.kernel.held(), self.kernel.slots
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
