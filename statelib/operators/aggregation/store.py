"""Where an aggregation by key keeps its aggregates: in a plain store, or each update as a version of its key.

Both are asked for the aggregates of keys that are named for the first time since the last flush. A plain store gets the
aggregates as they are at the next flush; a versioned one is told all updates, and refuses those that are too old.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.operators.tables.store import KeyValueRows, KeyValueStore
from statelib.records.batch import NO_TIMESTAMP
from statelib.serdes import serde_for
from statelib.stores.stored_rows import stored_type

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.operators.base import OperatorContext
    from statelib.operators.tables.writer import PlainStore, VersionedStore, Written
    from statelib.records.batch import Batch
    from statelib.stores.backend import WriteBatch

_END_OF_TIME = np.iinfo(np.int64).max


class PlainAggregateStore:
    """Aggregates in a key-value store."""

    clock = NO_TIMESTAMP

    def __init__(self, store: PlainStore, context: OperatorContext) -> None:
        self._keys = context.keys
        self._store = KeyValueStore(context.backend, store.name)

    def is_doubtful(self, timestamp: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the update of each record might not become what its key has: never."""
        return np.zeros(len(timestamp), dtype=np.bool_)

    def load(self, codes: NDArray[np.int64], schema: pa.Schema) -> tuple[NDArray[np.int64], pa.Array]:
        """The aggregates of keys: since when (ms; `NO_TIMESTAMP`: there is none), and what is stored."""
        self._store.header.check(schema)
        if self._store.is_empty:
            return np.full(len(codes), NO_TIMESTAMP), pa.nulls(len(codes), stored_type(schema))
        found = self._store.load(self._keys.take(codes).to_pylist())
        return found.timestamp, serde_for(stored_type(schema)).deserialize(found.rows)

    def flush(
        self,
        codes: NDArray[np.int64],
        timestamp: NDArray[np.int64],
        values: pa.Array,
        schema: pa.Schema,
        write: WriteBatch,
    ) -> None:
        """Adds aggregates to ``write``: their keys, since when (`NO_TIMESTAMP`: deleted) and what is stored."""
        rows = serde_for(values.type).serialize(values)
        deleted = timestamp == NO_TIMESTAMP
        if deleted.any():
            rows = rows.take(pa.array(np.arange(len(rows)), mask=deleted))
        self._store.store(self._keys.take(codes), KeyValueRows(timestamp, rows), schema, write)

    def memory_bytes(self) -> int:
        """Nothing beyond what the aggregation has."""
        return 0


class VersionedAggregateStore:
    """Aggregates as versions.

    Args:
        store: The store.
        context: The operator's.
        deletes: Whether aggregates may be deleted; otherwise every update that is put is the latest.
    """

    def __init__(self, store: VersionedStore, context: OperatorContext, *, deletes: bool) -> None:
        self._spec = store
        self._context = context
        self._deletes = deletes
        self._writer = store.writer(context, needs_prior=deletes)
        self.clock = store.open(context).stream_time
        """The largest timestamp put, ms."""

    def is_doubtful(self, timestamp: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the update of each record might not become what its key has.

        It may be refused; and if the key's latest version is a deletion, an older update only enters the history. The
        store's clock is never ahead of the largest timestamp so far.
        """
        clock = np.maximum.accumulate(np.concatenate([[self.clock], timestamp]))[:-1]
        certain_for_ms = 0 if self._deletes else self._spec.history_retention_ms
        doubtful: NDArray[np.bool_] = timestamp < clock - certain_for_ms
        return doubtful

    def load(self, codes: NDArray[np.int64], schema: pa.Schema) -> tuple[NDArray[np.int64], pa.Array]:
        """See `PlainAggregateStore`: the latest versions."""
        store = self._spec.open(self._context)
        everything_later = np.full(len(codes), _END_OF_TIME)
        versions = store.load(self._context.keys.take(codes), everything_later).versions
        last = versions.offsets[1:] - 1
        there = np.diff(versions.offsets) > 0
        there[there] = ~versions.is_tombstone[last[there]]
        timestamp = np.full(len(codes), NO_TIMESTAMP)
        timestamp[there] = versions.valid_from[last[there]]
        return timestamp, serde_for(stored_type(schema)).deserialize(versions.values.take(pa.array(last, mask=~there)))

    def put(self, versions: Batch) -> Written:
        """Puts updates."""
        written = self._writer.put(versions)
        if len(written.changes):
            self.clock = max(self.clock, int(written.changes.timestamp.max()))
        return written

    def flush(
        self,
        codes: NDArray[np.int64],
        timestamp: NDArray[np.int64],
        values: pa.Array,
        schema: pa.Schema,
        write: WriteBatch,
    ) -> None:
        """Adds the versions since the last flush to ``write``."""
        del codes, timestamp, values, schema
        self._writer.flush(write)

    def memory_bytes(self) -> int:
        """The versions since the last flush."""
        return self._writer.memory_bytes()
