"""The versions of each key of a versioned table: the working set over its store.

The store is looked into once for each key that is named; from then on its versions are here. The table's own operator
writes the store by itself (`statelib.operators.table_writer`), so this is forgotten whenever the task flushes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.batch import NULL_KEY
from statelib.kernels.versioned_join import NO_ROW, Timelines
from statelib.operators.accumulators import grown
from statelib.operators.key_codes import key_codes
from statelib.operators.row_pool import RowPool
from statelib.serdes import serde_for

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.batch import Batch
    from statelib.operators.aggregations import AggregatorSpec
    from statelib.operators.base import OperatorContext
    from statelib.stores.version_set import VersionSet
    from statelib.stores.versioned import VersionedKeyValueStore

_NONE = np.empty(0, dtype=np.int64)


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
        aggregator: AggregatorSpec | None = None,
    ) -> None:
        self._aggregator = aggregator
        self._context = context
        self._store = store
        self._is_empty = is_empty
        self._type = value_type
        kip = context.semantics == "kip"
        self._timelines = Timelines(store.history_retention_ms, store.stream_time, kip=kip)
        self._loaded = np.zeros(0, dtype=np.bool_)
        self._values = RowPool(pa.schema([("value", value_type)]))
        self._append(pa.nulls(1, value_type))  # row 0 is what a look-up without a match gives

    def meet(self, stream: Batch, codes: NDArray[np.int64], table: Batch) -> NDArray[np.int64]:
        """Puts the updates and looks up the records, in order of sequence, updates first.

        Returns:
            int64, for each record the row of the version that is valid at its timestamp, or `NO_ROW`.
        """
        puts = self._puts(table, codes)
        return self._timelines.apply(puts, (stream.sequence, codes, stream.timestamp)).found

    def put(self, table: Batch) -> tuple[pa.Array, NDArray[np.bool_]]:
        """Puts updates, none of them refused.

        Returns:
            For each the value of the key's latest version before; bool: whether it is the latest version since.
        """
        applied = self._timelines.apply(self._puts(table, _NONE), (_NONE, _NONE, _NONE))
        return self.values_of(applied.replaced), applied.is_latest

    def values_of(self, rows: NDArray[np.int64]) -> pa.Array:
        """The values of versions, null for `NO_ROW`."""
        return self._values.take(np.maximum(rows, 0)).column(0)

    def memory_bytes(self) -> int:
        """Timelines and values."""
        return self._timelines.memory_bytes() + self._loaded.nbytes + self._values.memory_bytes()

    def _puts(
        self, table: Batch, also_named: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Updates as `Timelines` takes them; their keys and those of look-ups are loaded."""
        codes = key_codes(table, self._context)
        self._timelines.make_room(len(self._context.keys))
        self._load(np.concatenate([codes, also_named]))
        first_row = self._append(table.value)
        rows = np.where(np.asarray(table.value.is_valid()), first_row + np.arange(len(table)), NO_ROW)
        return table.sequence, codes, table.timestamp, rows

    def _load(self, codes: NDArray[np.int64]) -> None:
        """Gets the stored versions of keys that are named for the first time."""
        if self._is_empty:
            return
        self._loaded = grown(self._loaded, len(self._context.keys))
        codes = codes[codes != NULL_KEY]
        wanted = np.unique(codes[~self._loaded[codes]])
        if len(wanted):
            versions = self._store.load(self._context.keys.take(wanted)).versions
            first_row = self._append(self._decoded(versions.values))
            load_versions(self._timelines, wanted, versions, first_row=first_row)
            self._loaded[wanted] = True

    def _decoded(self, rows: pa.Array) -> pa.Array:
        if self._aggregator is None:
            return serde_for(self._type).deserialize(rows)
        stored = serde_for(self._aggregator.stored_type(self._type)).deserialize(rows)
        return self._aggregator.results_of(stored)

    def _append(self, values: pa.Array) -> int:
        return self._values.append(pa.RecordBatch.from_arrays([values], schema=self._values.schema))


def load_versions(timelines: Timelines, codes: NDArray[np.int64], versions: VersionSet, *, first_row: int) -> None:
    """Takes stored versions into timelines; their values are the rows from ``first_row`` on."""
    timelines.make_room(int(codes.max(initial=-1)) + 1)
    rows = np.where(versions.is_tombstone, NO_ROW, first_row + np.arange(len(versions.is_tombstone)))
    timelines.load(codes, versions.offsets, versions.valid_from, rows, versions.remembered)
