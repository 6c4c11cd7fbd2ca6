"""The working set of a versioned table over its store: the versions of each key.

The store is looked into once for each key that is named; from then on its versions are here. The table's own operator
writes the store by itself (`statelib.operators.tables.writer`), so this is forgotten whenever the task flushes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.growing import grown
from statelib.columns.scatter import scatter
from statelib.operators.key_codes import key_codes
from statelib.operators.versioned.kernel import NO_ROW, Timelines
from statelib.records.batch import NULL_KEY
from statelib.records.row_pool import RowPool
from statelib.serdes import serde_for
from statelib.stores.byte_columns import in_order
from statelib.stores.stored_rows import stored_type

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext
    from statelib.operators.versioned.store import VersionedKeyValueStore
    from statelib.operators.versioned.version_set import VersionSet
    from statelib.records.batch import Batch
    from statelib.stores.stored_rows import StoredStates

_NONE = np.empty(0, dtype=np.int64)
_LOADED_WHOLE, _NOT_LOADED = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class VersionedValues:
    """See the module's docstring.

    Args:
        context: The operator's.
        store: The table's store, as it was last written.
        is_empty: Whether that holds nothing at all.
        value_type: The type of a value.
        aggregator: What has made the table, if the store holds its states instead of values.
    """

    def __init__(
        self,
        context: OperatorContext,
        store: VersionedKeyValueStore,
        *,
        is_empty: bool,
        value_type: pa.DataType,
        aggregator: StoredStates | None = None,
    ) -> None:
        self._aggregator = aggregator
        self._context = context
        self._store = store
        self._is_empty = is_empty
        self._type = value_type
        kip = context.semantics == "kip"
        self._timelines = Timelines(store.history_retention_ms, store.stream_time, kip=kip)
        self._loaded_from = np.zeros(0, dtype=np.int64)  # by key code, ms
        self._values = RowPool(pa.schema([("value", value_type)]))

    def meet(self, stream: Batch, codes: NDArray[np.int64], table: Batch) -> NDArray[np.int64]:
        """Puts the updates and looks up the records, in order of sequence, updates first.

        Returns:
            int64, for each record the row of the version that is valid at its timestamp, or `NO_ROW`.
        """
        puts = self._puts(table, codes, stream.timestamp)
        return self._timelines.apply(puts, (stream.sequence, codes, stream.timestamp)).found

    def put(self, table: Batch) -> tuple[pa.Array, NDArray[np.bool_]]:
        """Puts updates, none of them refused.

        Returns:
            For each the value of the key's latest version before; bool: whether it is the latest version since.
        """
        applied = self._timelines.apply(self._puts(table, _NONE, _NONE), (_NONE, _NONE, _NONE))
        return self.values_of(applied.replaced), applied.is_latest

    def values_of(self, rows: NDArray[np.int64]) -> pa.Array:
        """The values of versions, null for `NO_ROW`."""
        there = rows != NO_ROW
        found = rows if there.all() else rows[there]  # as mostly: few look-ups have no match
        return scatter(self._values.take(found).column(0), there)

    def memory_bytes(self) -> int:
        """Timelines and values."""
        return self._timelines.memory_bytes() + self._loaded_from.nbytes + self._values.memory_bytes()

    def _puts(
        self, table: Batch, asked: NDArray[np.int64], asked_at: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Updates as `Timelines` takes them; their keys, and those that are ``asked`` for at a time, are loaded."""
        codes = key_codes(table, self._context)
        self._timelines.make_room(len(self._context.keys))
        if not self._is_empty:
            self._load(np.concatenate([codes, asked]), np.concatenate([table.timestamp, asked_at]))
        first_row = self._append(table.value)
        rows = np.where(valid_of(table.value), first_row + np.arange(len(table)), NO_ROW)
        return table.sequence, codes, table.timestamp, rows

    def _load(self, codes: NDArray[np.int64], times: NDArray[np.int64]) -> None:
        """Gets the stored versions of keys that are named for the first time, or at an earlier time than before.

        First those from the earliest time of this batch on. A key that turns out to be asked for at an earlier one gets
        all that is within retention, so no key is read more than twice.
        """
        self._loaded_from = grown(self._loaded_from, len(self._context.keys), _NOT_LOADED)
        # What is older than the retention meets the latest version or nothing.
        times = np.maximum(times, self._timelines.stream_time - self._store.history_retention_ms)
        rows = np.flatnonzero(codes != NULL_KEY)
        rows = rows[times[rows] < self._loaded_from[codes[rows]]]
        if len(rows) == 0:
            return
        wanted, key_of = np.unique(codes[rows], return_inverse=True)
        from_ms = np.full(len(wanted), _NOT_LOADED)
        np.minimum.at(from_ms, key_of, times[rows])
        order = in_order(self._context.keys.take(wanted)).to_numpy()  # the store is fastest then
        wanted, from_ms = wanted[order], from_ms[order]
        again = self._loaded_from[wanted] != _NOT_LOADED
        self._load_new(wanted[~again], from_ms[~again])
        if again.any():
            self._load_rest(wanted[again])

    def _load_new(self, codes: NDArray[np.int64], from_ms: NDArray[np.int64]) -> None:
        versions = self._store.load(self._context.keys.take(codes), from_ms).versions
        load_versions(self._timelines, codes, versions, first_row=self._append(self._decoded(versions.values)))
        self._loaded_from[codes] = from_ms

    def _load_rest(self, codes: NDArray[np.int64]) -> None:
        versions = self._store.load(self._context.keys.take(codes)).versions
        rows = rows_of(versions, first_row=self._append(self._decoded(versions.values)))
        self._timelines.extend_back(codes, self._loaded_from[codes], versions.offsets, versions.valid_from, rows)
        self._loaded_from[codes] = _LOADED_WHOLE

    def _decoded(self, rows: pa.Array) -> pa.Array:
        if self._aggregator is None:
            return serde_for(self._type).deserialize(rows)
        stored = serde_for(stored_type(self._aggregator.stored_columns(self._type))).deserialize(rows)
        return self._aggregator.results_of(stored)

    def _append(self, values: pa.Array) -> int:
        return self._values.append(pa.RecordBatch.from_arrays([values], schema=self._values.schema))


def load_versions(timelines: Timelines, codes: NDArray[np.int64], versions: VersionSet, *, first_row: int) -> None:
    """Takes stored versions into timelines; their values are the rows from ``first_row`` on."""
    timelines.make_room(int(codes.max(initial=-1)) + 1)
    rows = rows_of(versions, first_row=first_row)
    timelines.load(codes, versions.offsets, versions.valid_from, rows, versions.remembered)


def rows_of(versions: VersionSet, *, first_row: int) -> NDArray[np.int64]:
    """The rows of versions whose values are the rows from ``first_row`` on; `NO_ROW` for tombstones."""
    return np.where(versions.is_tombstone, NO_ROW, first_row + np.arange(len(versions.is_tombstone)))
