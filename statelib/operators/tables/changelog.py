"""What tables log, and whatever has a key-value or versioned store: the key, the value alone, and its timestamp."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.described.exporting import PairsExporter, Records, without_nulls
from statelib.described.restoring import Restoring
from statelib.described.view import EVERYTHING
from statelib.metrics.node_metrics import NodeMetrics
from statelib.operators.base import OperatorContext
from statelib.operators.tables.snapshot import key_value_view
from statelib.operators.tables.store import KeyValueRows, KeyValueStore
from statelib.operators.tables.writer import VersionedStore
from statelib.records.batch import NO_TIMESTAMP, Batch
from statelib.records.key_column import KeyColumn
from statelib.records.key_table import KeyTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from statelib.described.exporting import Share
    from statelib.described.restoring import Target
    from statelib.stores.backend import WriteBatch
    from statelib.stores.byte_columns import Column


class KeyValueExporter(PairsExporter):
    """Of each key its value and timestamp, in bytewise order of keys.

    A plain store of a processor keeps no timestamps, and Kafka Streams logs that of the record that was processed: here
    the task's stream time stands for it, which is not earlier.
    """

    _aggregates = True

    def records(self, share: Share) -> Iterator[Records]:
        """See `statelib.described.exporting`."""
        for raw in key_value_view(self._described).scan(share.place, EVERYTHING):
            keys, values = self._keys.written(raw["key"]), self._values.written(raw["value"])
            timestamp = raw["timestamp"].fill_null(share.place.stream_time_ms).to_numpy()
            yield without_nulls(Records(self._keys.placed_by(keys), keys, values, timestamp))


class RestoringKeyValues(Restoring):
    """Of each key the last value."""

    def __init__(self, target: Target) -> None:
        self._store = KeyValueStore(target.backend, target.store.name)
        self._row = target.row
        self._keeps_timestamps = target.store.settings.get("store") != "KeyValueStore"

    def put(self, keys: Column, values: pa.Array, timestamp: NDArray[np.int64], write: WriteBatch) -> None:
        """See `Restoring`."""
        kept = timestamp if self._keeps_timestamps else np.full(len(timestamp), NO_TIMESTAMP)
        self._store.store(keys, KeyValueRows(kept, values), self._row, write)


class RestoringVersions(Restoring):
    """Each record a version, as the table's own writer puts it."""

    only_last = False

    def __init__(self, target: Target) -> None:
        store, settings = target.store, target.store.settings
        versioned = VersionedStore(store.name, settings["history_retention_ms"], settings["segment_interval_ms"])
        self._context = OperatorContext(
            store.node, target.backend, KeyTable(), NodeMetrics(), semantics=target.semantics
        )
        self._store = versioned.open(self._context)
        self._writer = versioned.writer(self._context, needs_prior=False)
        self._takes_late = target.takes_late
        self._late: list[tuple[bytes, bytes | None, int]] = []

    def put(self, keys: Column, values: pa.Array, timestamp: NDArray[np.int64], write: WriteBatch) -> None:
        """See `Restoring`."""
        self._put_late()
        clock = np.maximum.accumulate(np.concatenate([[self._store.stream_time], timestamp]))[:-1]
        late = np.flatnonzero(timestamp < clock - self._store.history_retention_ms)
        if self._takes_late and len(late):
            columns = (keys.take(pa.array(late)).to_pylist(), values.take(pa.array(late)).to_pylist(), timestamp[late])
            self._late = list(zip(*columns[:2], columns[2].tolist(), strict=True))
        self._writer.put(Batch(KeyColumn(keys), None, values, timestamp, np.arange(len(timestamp))))
        self._writer.flush(write)
        self._context.keys.clear()

    def finish(self, write: WriteBatch) -> None:
        """See `Restoring`."""
        del write
        self._put_late()

    def _put_late(self) -> None:
        """Puts what the last records have left over, now that these are written."""
        for key, value, timestamp in self._late:
            self._store.put_if_latest(key, value, timestamp)
        self._store.flush()
        self._late = []
