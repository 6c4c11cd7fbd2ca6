"""Puts back what the buffer of a stream-table join has logged (`statelib.operators.joins.stream_table.changelog`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.described.restoring import last_of_each
from statelib.operators.joins.stream_table.buffer_store import JoinBufferStore, WaitingRow
from statelib.operators.joins.stream_table.changelog import split_keys
from statelib.serdes import serde_for, serialized
from statelib.stores.buffer_value_codec import decode

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.described.restoring import Target
    from statelib.stores.backend import WriteBatch
    from statelib.stores.byte_columns import Column


class RestoringJoinBuffer:
    """The records that have come and not left."""

    def __init__(self, target: Target) -> None:
        self._name = target.store.name
        self._store = JoinBufferStore(target.backend, self._name)
        self._schema = target.row
        self._has_run = bool(target.clocks)
        self._arrivals = target.clocks.get("arrivals", 0)

    def put(self, keys: Column, values: pa.Array, timestamp: NDArray[np.int64], write: WriteBatch) -> None:
        """See `Restoring`."""
        del timestamp
        last = last_of_each(keys)
        kept = values.take(pa.array(last))
        plain, time, arrival = split_keys(keys.take(pa.array(last)), self._arrivals, self._name)
        has_value = valid_of(kept)
        stays, gone = np.flatnonzero(has_value), np.flatnonzero(~has_value)
        buffered = decode(kept.take(pa.array(stays)).to_pylist(), self._name)
        columns = {
            "value": serde_for(self._schema.field("value").type).deserialize(buffered.new),
            "headers": buffered.headers,
        }
        arrays = [columns[name] for name in self._schema.names]
        rows = serialized(pa.StructArray.from_arrays(arrays, fields=list(self._schema))).to_pylist()
        entries = (time[stays].tolist(), arrival[stays].tolist(), plain.take(pa.array(stays)).to_pylist(), rows)
        self._store.remove(zip(time[gone].tolist(), arrival[gone].tolist(), strict=True), write)
        self._store.store(-1, [WaitingRow(*entry) for entry in zip(*entries, strict=True)], self._schema, write)

    def finish(self, write: WriteBatch) -> None:
        """Adds what is there as soon as the operator has run."""
        if self._has_run:
            self._store.header.write(self._schema, write)
