"""The working set of a foreign-key join: its subscriptions, over their store.

A subscription that comes, changes or goes is only noted down. The store is looked into once for each foreign key of
which all subscriptions are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.growing import grown
from statelib.operators.joins.foreign_key.codec import decode_key, encode_values
from statelib.operators.joins.foreign_key.kernel import NO_ROW, fan_out
from statelib.operators.joins.foreign_key.store import StoredSubscriptions, SubscriptionStore
from statelib.records.key_table import KeyTable
from statelib.records.row_pool import RowPool
from statelib.serdes import serde_for

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext
    from statelib.operators.changelog import Changelog
    from statelib.stores.backend import WriteBatch

_COMPACT_FROM_ROWS = 1 << 14


class Subscribes(NamedTuple):
    """Subscriptions that come, change or go, in order; columns of one length.

    Attributes:
        sequence: int64, ascending.
        foreign_code: int64, the code of the foreign key, never `NULL_KEY`.
        primary_key: The primary keys.
        left: The referring rows.
        number: int64, of the change that each is from.
        timestamp: int64, ms, of that change.
        goes: bool.
    """

    sequence: NDArray[np.int64]
    foreign_code: NDArray[np.int64]
    primary_key: pa.Array
    left: pa.Array
    number: NDArray[np.int64]
    timestamp: NDArray[np.int64]
    goes: NDArray[np.bool_]


class Reached(NamedTuple):
    """What changes of the other table reach: by result the index of the change, and the subscription as it was then."""

    change: NDArray[np.int64]
    primary_key: pa.Array
    left: pa.Array
    number: NDArray[np.int64]


class Subscriptions:
    """See the module's docstring.

    Args:
        context: The operator's.
        store: Name of the store.
        key_type: The type of primary keys.
        left_type: The type of referring rows.
    """

    def __init__(self, context: OperatorContext, store: str, key_type: pa.DataType, left_type: pa.DataType) -> None:
        self._context = context
        self._store = SubscriptionStore(context.backend, store)
        self._changelog = context.changelogs.get(store)
        self._key_type, self._left_type = key_type, left_type
        self._schema = pa.schema([("value", left_type)])
        self._store.header.check(self._schema)
        self._slots = KeyTable()  # of subscriptions
        self._foreign = np.empty(0, dtype=np.int64)
        self._row = np.empty(0, dtype=np.int64)
        self._changed = np.empty(0, dtype=np.bool_)
        self._loaded = np.empty(0, dtype=np.bool_)  # by code of foreign keys
        self._rows = RowPool(pa.schema([("primary_key", key_type), ("left", left_type), ("number", pa.int64())]))
        self._append(pa.nulls(1, key_type), pa.nulls(1, left_type), np.zeros(1, dtype=np.int64))  # NO_ROW

    def take_up(
        self, subscribes: Subscribes, change_sequence: NDArray[np.int64], change_code: NDArray[np.int64]
    ) -> Reached:
        """Takes up subscriptions, and finds those that changes of the other table reach, in order of sequence.

        Args:
            subscribes: The subscriptions.
            change_sequence: int64, ascending; none is that of a subscription.
            change_code: int64, the codes of the keys that change, never `NULL_KEY`.

        Returns:
            For each change the subscriptions of its key, in the order of the bytes of their primary keys.
        """
        slots = self._slots_of(subscribes)
        if self._changelog is not None:
            self._log(self._changelog, slots, subscribes)
        first_row = self._append(subscribes.primary_key, subscribes.left, subscribes.number)
        rows = np.where(subscribes.goes, NO_ROW, first_row + np.arange(len(slots)))
        asked, groups = np.unique(change_code, return_inverse=True)
        self._load(asked)
        members, offsets = self._members(asked)
        self._changed[slots] = True

        walked = (subscribes.sequence, slots, rows, change_sequence, groups.astype(np.int64), offsets, members)
        none = np.empty(0, dtype=np.int64)
        count = fan_out(*walked, self._row.copy(), False, none, none) if len(change_code) else 0
        change, row = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
        fan_out(*walked, self._row, True, change, row)
        found = self._rows.take(row)
        self._compact()
        return Reached(change, found.column(0), found.column(1), np.asarray(found.column(2)))

    def flush(self, write: WriteBatch) -> None:
        """Adds what has changed to ``write``; then this is of no use any more."""
        slots = np.flatnonzero(self._changed)
        if len(slots) == 0:
            return
        rows = self._row[slots]
        found = self._rows.take(rows)
        left = serde_for(self._left_type).serialize(found.column("left"))
        kept = left.take(pa.array(np.arange(len(rows)), mask=rows == NO_ROW))
        changed = StoredSubscriptions(self._slots.take(slots), np.asarray(found.column("number")), kept)
        self._store.store(changed, self._schema, write)

    def memory_bytes(self) -> int:
        """Size of the working set."""
        arrays = (self._foreign, self._row, self._changed, self._loaded)
        return self._slots.memory_bytes() + sum(array.nbytes for array in arrays) + self._rows.memory_bytes()

    def _log(self, changelog: Changelog, slots: NDArray[np.int64], subscribes: Subscribes) -> None:
        """Logs what becomes of each subscription."""
        rows = serde_for(self._left_type).serialize(subscribes.left).cast(pa.binary())
        values = encode_values(subscribes.number, rows)
        kept = values.take(pa.array(np.arange(len(slots)), mask=subscribes.goes))
        changelog.add(self._slots.take(slots), kept, subscribes.timestamp)

    def _slots_of(self, subscribes: Subscribes) -> NDArray[np.int64]:
        """The slot of each subscription; new ones for those that have none."""
        foreign = self._context.keys.take(subscribes.foreign_code).cast(pa.binary())
        length = np.asarray(pc.binary_length(foreign)).astype(">i4")
        prefix = pa.FixedSizeBinaryArray.from_buffers(pa.binary(4), len(length), [None, pa.py_buffer(length)])
        primary = serde_for(self._key_type).serialize(subscribes.primary_key).cast(pa.binary())
        keys = pc.binary_join_element_wise(prefix.cast(pa.binary()), foreign, primary, b"")
        slots = self._slots.encode(keys)
        self._make_room()
        self._foreign[slots] = subscribes.foreign_code
        return slots

    def _make_room(self) -> None:
        self._foreign = grown(self._foreign, len(self._slots))
        self._row = grown(self._row, len(self._slots), NO_ROW)
        self._changed = grown(self._changed, len(self._slots))

    def _load(self, asked: NDArray[np.int64]) -> None:
        """Gets the stored subscriptions of foreign keys that are asked for for the first time."""
        if self._store.is_empty:
            return
        self._loaded = grown(self._loaded, len(self._context.keys))
        wanted = asked[~self._loaded[asked]]
        if len(wanted) == 0:
            return
        self._loaded[wanted] = True
        stored, counts = self._store.load(self._context.keys.take(wanted).to_pylist())
        slots = self._slots.encode(stored.keys)
        self._make_room()
        self._foreign[slots] = np.repeat(wanted, counts)
        unchanged = np.flatnonzero(~self._changed[slots])  # of the others the store does not know the latest
        raw = [decode_key(key, self._store.name)[1] for key in stored.keys.take(pa.array(unchanged)).to_pylist()]
        primary_key = serde_for(self._key_type).deserialize(pa.array(raw, pa.binary()))
        left = serde_for(self._left_type).deserialize(stored.rows.take(pa.array(unchanged)))
        first_row = self._append(primary_key, left, stored.number[unchanged])
        self._row[slots[unchanged]] = first_row + np.arange(len(unchanged))

    def _members(self, asked: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The slots of the foreign keys ``asked`` (ascending), by key in order of their bytes, and their offsets."""
        count = len(self._slots)
        is_asked = np.zeros(len(self._context.keys), dtype=np.bool_)
        is_asked[asked] = True
        slots = np.flatnonzero(is_asked[self._foreign[:count]])
        by_bytes = np.asarray(pc.sort_indices(self._slots.take(slots)))
        slots = slots[by_bytes]
        slots = slots[np.argsort(self._foreign[slots], kind="stable")]
        bounds = np.searchsorted(self._foreign[slots], asked)
        return slots, np.append(bounds, len(slots)).astype(np.int64)

    def _append(self, primary_key: pa.Array, left: pa.Array, number: NDArray[np.int64]) -> int:
        columns = [primary_key, left, pa.array(number)]
        return self._rows.append(pa.RecordBatch.from_arrays(columns, schema=self._rows.schema))

    def _compact(self) -> None:
        """Drops the rows that no subscription has any more, whenever there are twice as many as subscriptions."""
        if len(self._rows) < max(_COMPACT_FROM_ROWS, 2 * int(np.count_nonzero(self._row))):
            return
        slots = np.flatnonzero(self._row)
        self._rows.keep(np.concatenate([[NO_ROW], self._row[slots]]))
        self._row[slots] = 1 + np.arange(len(slots))
