"""Puts back what a join of two streams has logged (`statelib.operators.joins.stream_stream.changelog`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from statelib.described.restoring import last_of_each
from statelib.operators.joins.stream_stream.changelog import split_held_keys, split_window_keys
from statelib.operators.joins.stream_stream.definition import retention_of
from statelib.operators.joins.stream_stream.store import HeldRow, HeldStore, JoinRow, JoinWindowStore
from statelib.records.batch import NO_TIMESTAMP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from statelib.described.restoring import Target
    from statelib.stores.backend import WriteBatch
    from statelib.stores.byte_columns import Column


class RestoringJoinWindow:
    """The records of one side that others may meet."""

    def __init__(self, target: Target) -> None:
        settings = target.store.settings
        self._name = target.store.name
        self._store = JoinWindowStore(target.backend, self._name)
        self._schema = target.row
        self._has_run = bool(target.clocks)
        self._arrivals = target.clocks.get("arrivals", 0)
        self._expired_ms = target.clocks.get(settings["side"], NO_TIMESTAMP) - retention_of(settings)

    def put(self, keys: Column, values: pa.Array, timestamp: NDArray[np.int64], write: WriteBatch) -> None:
        """See `Restoring`."""
        del timestamp
        last = pa.array(last_of_each(keys))
        plain, time, arrival = split_window_keys(keys.take(last), self._arrivals, self._name)
        columns = (plain.to_pylist(), time.tolist(), arrival.tolist(), values.take(last).to_pylist())
        rows = list(zip(*columns, strict=True))
        added = [JoinRow(key, time, number, value) for key, time, number, value in rows if value is not None]
        removed = [JoinRow(key, time, number, b"") for key, time, number, value in rows if value is None]
        self._store.store(added, removed, NO_TIMESTAMP, self._schema, write)

    def finish(self, write: WriteBatch) -> None:
        """Adds the removal of what has expired."""
        if self._has_run:
            self._store.store([], [], self._expired_ms, self._schema, write)


class RestoringHeldRecords:
    """The records of both sides that wait for a match."""

    def __init__(self, target: Target) -> None:
        self._name = target.store.name
        self._store = HeldStore(target.backend, self._name)
        self._schema = target.row
        self._has_run = bool(target.clocks)
        self._arrivals = target.clocks.get("arrivals", 0)

    def put(self, keys: Column, values: pa.Array, timestamp: NDArray[np.int64], write: WriteBatch) -> None:
        """See `Restoring`."""
        del timestamp
        last = pa.array(last_of_each(keys))
        plain, time, is_left, arrival = split_held_keys(keys.take(last), self._arrivals, self._name)
        columns = (is_left.tolist(), plain.to_pylist(), time.tolist(), arrival.tolist(), values.take(last).to_pylist())
        rows = [
            (HeldRow(left, JoinRow(key, time, number, value or b"")), value)
            for left, key, time, number, value in zip(*columns, strict=True)
        ]
        added = [row for row, value in rows if value is not None]
        removed = [row for row, value in rows if value is None]
        self._store.store(added, removed, self._schema, write)

    def finish(self, write: WriteBatch) -> None:
        """Adds what is there as soon as the join has run."""
        if self._has_run:
            self._store.header.write(self._schema, write)
