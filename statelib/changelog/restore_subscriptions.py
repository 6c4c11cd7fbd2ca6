"""Puts what a foreign-key join has logged of its subscriptions back into their store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.scatter import scatter
from statelib.described.restoring import last_of_each
from statelib.operators.joins.foreign_key.codec import decode_keys, decode_values
from statelib.operators.joins.foreign_key.store import StoredSubscriptions, SubscriptionStore

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.described.restoring import Target
    from statelib.stores.backend import WriteBatch
    from statelib.stores.byte_columns import Column


class RestoringSubscriptions:
    """Of each subscription the last row; the layout is in `statelib.operators.changelog`."""

    def __init__(self, target: Target) -> None:
        self._store = SubscriptionStore(target.backend, target.store.name)
        self._schema = target.row

    def put(self, keys: Column, values: pa.Array, timestamp: NDArray[np.int64], write: WriteBatch) -> None:
        """See `Restoring`."""
        del timestamp
        last = pa.array(last_of_each(keys))
        raw_keys, raw_values = keys.take(last), values.take(last)
        decode_keys(raw_keys, self._store.name)  # a damaged one is told
        there = valid_of(raw_values)
        numbers, rows = decode_values(raw_values.filter(pa.array(there)), self._store.name)
        number = np.zeros(len(there), np.int64)
        number[there] = numbers
        self._store.store(StoredSubscriptions(raw_keys, number, scatter(rows, there)), self._schema, write)

    def finish(self, write: WriteBatch) -> None:
        """Nothing is left to do."""
