"""Puts what suppress has logged of its buffer (`statelib.operators.suppress.changelog`) back into a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.described.restoring import last_of_each
from statelib.operators.sizes import serialized_bytes
from statelib.operators.suppress.codec import BufferedRows, encode_keys
from statelib.operators.suppress.operator import BUFFER_TIME_BYTES, RECORD_CONTEXT_BYTES
from statelib.operators.suppress.store import BufferChanges, SuppressionBufferStore
from statelib.operators.windows.definition import SessionWindows, windows_of
from statelib.serdes import serde_for, serialized
from statelib.stores.buffer_value_codec import decode
from statelib.stores.byte_columns import split_tail

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.described.restoring import Target
    from statelib.stores.backend import WriteBatch
    from statelib.stores.buffer_value_codec import BufferValues
    from statelib.stores.byte_columns import Column


class RestoringSuppression:
    """Of each key what waits last. Where the row is from is not in the store; how much it counts is found again."""

    def __init__(self, target: Target) -> None:
        settings = target.store.settings
        self._name = target.store.name
        self._windows = None if settings["windows"] is None else windows_of(settings["windows"])
        self._suffix_words = self._windows.key_suffix_words if self._windows else 0
        self._schema = target.row
        self._as_shipped = target.semantics == "kafka-4.3"
        self._final = settings["time_limit_ms"] is None
        self._store = SuppressionBufferStore(
            target.backend, self._name, suffix_words=self._suffix_words, time_is_of_key=self._final
        )
        self._records = self._bytes = 0
        self._has_run = bool(target.clocks)

    def put(self, keys: Column, values: pa.Array, timestamp: NDArray[np.int64], write: WriteBatch) -> None:
        """See `Restoring`."""
        self._has_run = True
        last = last_of_each(keys)
        raw_keys, kept = keys.take(pa.array(last)), values.take(pa.array(last))
        plain, start, end = self._split(raw_keys)
        for there in self._store.load(raw_keys, end):
            self._store.remove(encode_keys(there, self._suffix_words), there.time, write)
            self._records -= len(there)
            self._bytes -= int(there.counted_bytes.sum())
        stays = np.flatnonzero(valid_of(kept))
        chosen = pa.array(stays)
        buffered = decode(kept.take(chosen).to_pylist(), self._name)
        staying = raw_keys.take(chosen)
        rows = BufferedRows(
            key=plain.take(chosen),
            start=start[stays],
            end=end[stays],
            time=buffered.time,
            updated=timestamp[last][stays],
            counted_bytes=self._counted(staying, buffered),
            row=serialized(self._rows(buffered).to_struct_array()),
        )
        self._store.store(BufferChanges.of(staying, rows), self._schema, write)
        self._records += len(stays)
        self._bytes += int(rows.counted_bytes.sum())

    def finish(self, write: WriteBatch) -> None:
        """Adds how much there is."""
        if self._has_run:
            self._store.store_totals(self._records, self._bytes, self._schema, write)

    def _split(self, raw_keys: Column) -> tuple[Column, NDArray[np.int64], NDArray[np.int64]]:
        """Plain keys, and their windows' bounds: 0 without windows."""
        match self._windows:
            case None:
                nothing = np.zeros(len(raw_keys), np.int64)
                return raw_keys, nothing, nothing
            case SessionWindows():
                plain, words = split_tail(raw_keys, np.dtype([("end", ">i8"), ("start", ">i8")]), self._name)
                return plain, words["start"].astype(np.int64), words["end"].astype(np.int64)
        plain, words = split_tail(raw_keys, np.dtype([("start", ">i8")]), self._name)
        start = words["start"].astype(np.int64)
        return plain, start, self._windows.end_of(start)

    def _rows(self, buffered: BufferValues) -> pa.RecordBatch:
        """As `statelib.operators.suppress.buffered_columns.to_store` gives them."""
        columns: dict[str, Any] = {
            "timestamp": pa.array(buffered.timestamp),
            "value": self._values(buffered.new),
            "headers": buffered.headers,
        }
        if "old" in self._schema.names:
            columns["prior"] = self._values(buffered.prior)
            columns["old"] = (
                self._values(buffered.old) if self._as_shipped else pa.nulls(len(buffered), columns["value"].type)
            )
        return pa.RecordBatch.from_arrays([columns[name] for name in self._schema.names], schema=self._schema)

    def _values(self, raws: pa.Array) -> pa.Array:
        return serde_for(self._schema.field("value").type).deserialize(raws)

    def _counted(self, raw_keys: Column, buffered: BufferValues) -> NDArray[np.int64]:
        """What each key counts, as `statelib.operators.suppress.operator` has it."""
        lengths = serialized_bytes(raw_keys) + serialized_bytes(self._values(buffered.new))
        if not self._as_shipped:
            return lengths
        lengths += BUFFER_TIME_BYTES + RECORD_CONTEXT_BYTES + serialized_bytes(buffered.topic)
        if "old" not in self._schema.names:
            return lengths
        prior, old = (serialized_bytes(self._values(raws)) for raws in (buffered.prior, buffered.old))
        is_other = np.array(
            [a != b for a, b in zip(buffered.prior.to_pylist(), buffered.old.to_pylist(), strict=True)], np.bool_
        )
        return lengths + prior + np.where(is_other, old, 0)
