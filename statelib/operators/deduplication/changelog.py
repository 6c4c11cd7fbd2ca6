"""What a deduplication logs, which Kafka Streams never had: each entry that it sets.

The id's bytes, the entry as the store has it (`statelib.operators.deduplication.codec`), the forwarded record's
timestamp. What expires is not logged, as in windows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import spans_of
from statelib.described.restoring import Restoring, last_of_each
from statelib.operators.deduplication.codec import decode_values
from statelib.operators.deduplication.kernel import NO_ENTRY
from statelib.operators.deduplication.store import Changes, DeduplicationStore

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.described.restoring import Target
    from statelib.stores.backend import WriteBatch
    from statelib.stores.byte_columns import Column


class RestoringDeduplication(Restoring):
    """Of each id the last entry that the store keeps at the clock that it had at last."""

    only_last = False

    def __init__(self, target: Target) -> None:
        self._name = target.store.name
        interval_ms = target.store.settings["interval_ms"]
        self._store = DeduplicationStore(target.backend, self._name, interval_ms=interval_ms)
        self._clock_ms = target.clock_ms

    def put(self, keys: Column, values: pa.Array, timestamp: NDArray[np.int64], write: WriteBatch) -> None:
        """See `Restoring`."""
        alive = np.flatnonzero(timestamp >= self._store.kept_from(self._clock_ms))
        if not len(alive):
            return
        last = alive[last_of_each(keys.take(pa.array(alive)))]
        ids = keys.take(pa.array(last))
        entries = decode_values(values.take(pa.array(last)).to_pylist(), self._name)
        stored_ms = np.full(len(last), NO_ENTRY)
        there, before = self._store.load(ids, since_ms=0)
        stored_ms[there] = before.timestamp
        codes = np.arange(len(last))
        changes = Changes(
            codes, entries.timestamp, stored_ms, lambda some: (spans_of(ids.take(pa.array(some))),), entries.take
        )
        self._store.store(changes, write)
