"""The working set of a table over its store: what each key has now.

The store is looked into once for each key that is named; from then on its value is here. The operator that writes the
table stores what has changed at each flush. One that only reads it (a join) puts what the table forwards, and forgets
everything when the task flushes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.growing import grown
from statelib.operators.tables.kernel import NOTHING, put_and_look_up
from statelib.operators.tables.stored_latest import Found
from statelib.records.batch import NO_TIMESTAMP, NULL_KEY
from statelib.records.row_pool import RowPool

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext
    from statelib.operators.tables.stored_latest import StoredLatest
    from statelib.stores.byte_columns import Column

_COMPACT_FROM_ROWS = 1 << 14
_NO_ROWS = np.empty(0, dtype=np.int64)


class Updates(NamedTuple):
    """Updates of a table, in order: sequence (ascending), key code (never `NULL_KEY`), timestamp (ms), value."""

    sequence: NDArray[np.int64]
    key_code: NDArray[np.int64]
    timestamp: NDArray[np.int64]
    value: pa.Array


class Lookups(NamedTuple):
    """Questions for what keys have, in order: sequence (ascending), key code."""

    sequence: NDArray[np.int64]
    key_code: NDArray[np.int64]


class LatestValues:
    """See the module's docstring.

    Args:
        context: The operator's.
        stored: The table's store, as it was last written.
    """

    def __init__(self, context: OperatorContext, stored: StoredLatest) -> None:
        self._keys = context.keys
        self._stored = stored
        value_type = stored.value_type
        self._latest = np.empty(0, dtype=np.int64)
        self._known = np.empty(0, dtype=np.bool_)
        self._changed = np.empty(0, dtype=np.bool_)
        self._rows = RowPool(pa.schema([("timestamp", pa.int64()), ("value", value_type)]))
        self._append(np.array([NO_TIMESTAMP]), pa.nulls(1, value_type))  # the row called NOTHING

    def put(self, updates: Updates, *, look_up: bool) -> Found | None:
        """Puts updates; gives what each of them replaces, if it is to be looked up."""
        replaced, _ = self._apply(updates, Lookups(_NO_ROWS, _NO_ROWS), look_up=look_up)
        found = self._take(replaced) if look_up else None
        self._compact()
        return found

    def look_up(self, lookups: Lookups, updates: Updates) -> Found:
        """Puts updates and answers questions, in order of sequence; of the same one the updates first."""
        _, rows = self._apply(updates, lookups, look_up=True)
        found = self._take(rows)
        self._compact()
        return found

    def changed(self) -> tuple[Column, Found]:
        """The keys (serialised, each once) for which something has been put, and what they have now."""
        codes = np.flatnonzero(self._changed)
        return self._keys.take(codes), self._take(self._latest[codes])

    def memory_bytes(self) -> int:
        """Size of the working set."""
        return self._latest.nbytes + self._known.nbytes + self._changed.nbytes + self._rows.memory_bytes()

    def _apply(
        self, updates: Updates, lookups: Lookups, *, look_up: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows that updates replace, and those that questions find."""
        self._make_room()
        if look_up:
            self._load(np.concatenate([updates.key_code, lookups.key_code]))
        first_row = self._append(updates.timestamp, updates.value)
        rows = np.where(valid_of(updates.value), first_row + np.arange(len(updates.value)), NOTHING)
        replaced, found = np.empty(len(rows), dtype=np.int64), np.empty(len(lookups.key_code), dtype=np.int64)
        put_and_look_up(
            updates.sequence, updates.key_code, rows, *lookups, self._latest, replaced, found
        )  # fmt: skip
        self._known[updates.key_code] = True
        self._changed[updates.key_code] = True
        return replaced, found

    def _make_room(self) -> None:
        self._latest = grown(self._latest, len(self._keys), NOTHING)
        self._known = grown(self._known, len(self._keys))
        self._changed = grown(self._changed, len(self._keys))

    def _load(self, codes: NDArray[np.int64]) -> None:
        """Gets the stored values of keys that are named for the first time."""
        if self._stored.is_empty:
            return
        codes = codes[codes != NULL_KEY]
        wanted = np.unique(codes[~self._known[codes]])
        if len(wanted) == 0:
            return
        found = self._stored.load(self._keys.take(wanted).to_pylist())
        self._known[wanted] = True
        there = np.flatnonzero(valid_of(found.value))
        values = found.value.take(pa.array(there))
        self._latest[wanted[there]] = self._append(found.timestamp[there], values) + np.arange(len(there))

    def _append(self, timestamp: NDArray[np.int64], values: pa.Array) -> int:
        return self._rows.append(pa.RecordBatch.from_arrays([pa.array(timestamp), values], schema=self._rows.schema))

    def _take(self, rows: NDArray[np.int64]) -> Found:
        taken = self._rows.take(rows)
        return Found(taken.column("value"), np.asarray(taken.column("timestamp")))

    def _compact(self) -> None:
        """Drops the rows that no key has any more, whenever there are twice as many as keys."""
        if len(self._rows) < max(_COMPACT_FROM_ROWS, 2 * int(np.count_nonzero(self._latest))):
            return
        codes = np.flatnonzero(self._latest)
        self._rows.keep(np.concatenate([[NOTHING], self._latest[codes]]))
        self._latest[codes] = 1 + np.arange(len(codes))
