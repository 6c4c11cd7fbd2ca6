"""The stores of a stream-stream join at work: what its working set is read from, and written to at a flush."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.operators.joins.stream_stream.arrays import LEFT, NO_ROW, RIGHT, SIDES
from statelib.operators.joins.stream_stream.store import NO_ROWS, HeldStore, JoinColumns, JoinWindowStore
from statelib.operators.joins.stream_stream.working_set import JoinRows
from statelib.serdes import serde_for
from statelib.stores.byte_columns import empty_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext
    from statelib.operators.joins.stream_stream.store import HeldRow, JoinRow
    from statelib.records.key_table import KeyTable
    from statelib.stores.backend import WriteBatch
    from statelib.stores.byte_columns import Column


class StreamJoinStores:
    """The stores of a join.

    Args:
        context: The operator's.
        left: Name of the left side's.
        right: Name of the right side's; None: there is none, as both sides are one stream.
        held: Name of that of held records; None: there is none.

    Raises:
        ConfigurationError: One was written in another format.
        CorruptedDataError: One cannot be read.
    """

    def __init__(self, context: OperatorContext, left: str, right: str | None, held: str | None) -> None:
        names = (left,) if right is None else (left, right)
        self.sides = tuple(JoinWindowStore(context.backend, name) for name in names)
        self.held = None if held is None else HeldStore(context.backend, held)


class StreamJoinState:
    """What of the stores is in memory, from the first batch after a flush to the next flush.

    Args:
        keys: The task's.
        stores: The join's.
        value_types: Of the left side and of the right.
        stored_until: By side, the largest time that a stored record may have, ms.

    Raises:
        ConfigurationError: The stores hold values of other types.
    """

    def __init__(
        self, keys: KeyTable, stores: StreamJoinStores, value_types: Sequence[pa.DataType], stored_until: Sequence[int]
    ) -> None:
        self._keys = keys
        self._stores = stores
        self._types = tuple(value_types)
        self._stored_until = np.array(stored_until)
        self.rows = JoinRows(keys, value_types)
        for side, store in enumerate(stores.sides):
            store.header.check(self._schema_of(side))
        if stores.held is not None:
            stores.held.header.check(self._held_schema)
            self._load_held(list(stores.held.all()))

    def load(
        self, side: NDArray[np.int64], key_code: NDArray[np.int64], least: NDArray[np.int64], expired: Sequence[int]
    ) -> None:
        """Brings here what records may meet, but what is here or the stores cannot have.

        Args:
            side: int64, of the records.
            key_code: int64, theirs, never `NULL_KEY`.
            least: int64, the least time that each of them may meet, ms.
            expired: By side, the largest time that is out of retention, ms.
        """
        self.rows.reserve_keys()
        other = 1 - side
        reaching = least <= self._stored_until[other]
        places = self.rows.not_loaded(2 * key_code[reaching] + other[reaching])
        for of, store in enumerate(self._stores.sides):
            codes = places[places % 2 == of] // 2
            if len(codes) and not store.is_empty:
                found = [store.fetch(key, expired[of] + 1) for key in self._keys.take(codes).to_pylist()]
                code = np.repeat(codes, [len(rows) for rows in found])
                self._add_stored(of, code, list(itertools.chain.from_iterable(found)))

    def flush(self, expired: Sequence[int], write: WriteBatch) -> None:
        """Writes what has changed.

        Args:
            expired: By side, the largest time that is out of retention, ms.
            write: The batch that also carries the task's position.
        """
        rows = self.rows.rows
        for side, store in enumerate(self._stores.sides):
            own = rows["side"] == side
            stored = rows["in_window_store"] == 1
            added = np.flatnonzero(own & (rows["linked"] == 1) & ~stored & (rows["time"] > expired[side]))
            store.store(self._written(side, added), NO_ROWS, expired[side], self._schema_of(side), write)
        if self._stores.held is None:
            return
        in_store, held = rows["in_held_store"] == 1, rows["held"] == 1
        added, removed = np.flatnonzero(held & ~in_store), np.flatnonzero(in_store & ~held)
        written = [(side == LEFT, self._written(side, added[rows["side"][added] == side])) for side in SIDES]
        gone = [(side == LEFT, self._named(removed[rows["side"][removed] == side])) for side in SIDES]
        self._stores.held.store(written, gone, self._held_schema, write)

    def _load_held(self, held: Sequence[HeldRow]) -> None:
        for side in SIDES:
            own = [row.row for row in held if row.is_left == (side == LEFT)]
            codes = self._keys.encode(pa.array([row.key for row in own], pa.binary()))
            rows = self._add(side, codes, own)
            for flag in ("held", "in_held_store", "in_window_store"):
                self.rows.rows[flag][rows] = 1
        self.rows.reserve_keys()

    def _add_stored(self, side: int, key_code: NDArray[np.int64], stored: Sequence[JoinRow]) -> None:
        """Lets others meet stored records; those that came as held ones are here already."""
        numbers = self.rows.row_of_held(np.array([row.arrival for row in stored], dtype=np.int64))
        missing = np.flatnonzero(numbers == NO_ROW)
        numbers[missing] = self._add(side, key_code[missing], [stored[n] for n in missing.tolist()])
        self.rows.rows["in_window_store"][numbers] = 1
        self.rows.link(numbers)

    def _add(self, side: int, key_code: NDArray[np.int64], stored: Sequence[JoinRow]) -> NDArray[np.int64]:
        values = serde_for(self._types[side]).deserialize(pa.array([row.value for row in stored], pa.binary()))
        first = self.rows.add_values(side, values)
        time = np.array([row.timestamp_ms for row in stored], dtype=np.int64)
        arrival = np.array([row.arrival for row in stored], dtype=np.int64)
        return self.rows.add(side, key_code, time, arrival, first + np.arange(len(stored)))

    def _written(self, side: int, numbers: NDArray[np.int64]) -> JoinColumns:
        """Rows of one side as they are stored."""
        return self._named(numbers, serde_for(self._types[side]).serialize(self.rows.values(side, numbers)))

    def _named(self, numbers: NDArray[np.int64], values: Column | None = None) -> JoinColumns:
        rows = self.rows.rows[numbers]
        keys = self._keys.take(np.ascontiguousarray(rows["key_code"]))
        value = empty_values(len(numbers)) if values is None else values
        return JoinColumns(keys, rows["time"].astype(np.int64), rows["arrival"].astype(np.int64), value)

    def _schema_of(self, side: int) -> pa.Schema:
        return pa.schema([("value", self._types[side])])

    @property
    def _held_schema(self) -> pa.Schema:
        return pa.schema([("left", self._types[LEFT]), ("right", self._types[RIGHT])])
