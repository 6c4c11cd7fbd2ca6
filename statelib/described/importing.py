"""What the importers of all kinds of stores have in common: an application's records made our own changelog's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.described.buffer_value_codec import decode, encode
from statelib.described.live_format import LiveKeys, LiveValues
from statelib.records.batch import NO_TIMESTAMP
from statelib.serdes import serde_for
from statelib.stores.byte_columns import joined, packed, split_tail

if TYPE_CHECKING:
    from statelib.described.description import Described
    from statelib.described.live_format import StoreFormat
    from statelib.stores.byte_columns import Column


class Importer(Protocol):
    """Of one store."""

    clocks: dict[str, int]
    """See `statelib.changelog.import_records.Imported`: what the records so far tell."""

    def keys(self, raws: Column) -> pa.Array:
        """Keys as our changelog has them."""

    def values(self, batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
        """Values, where null stays null, and timestamps (int64 ms) as our changelog has them."""


class Pairs:
    """Keys and values that the application's serdes write."""

    def __init__(self, described: Described, form: StoreFormat, *, aggregates: bool = True) -> None:
        self.clocks: dict[str, int] = {}
        self._name = described.name
        self._keys = LiveKeys(described, form.key)
        self._values = LiveValues(described, form, aggregates=aggregates)

    def keys(self, raws: Column) -> pa.Array:
        """See `Importer`."""
        return self._keys.read(raws)

    def values(self, batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
        """See `Importer`."""
        return self._values.read(batch.column("value")), batch.column("timestamp")

    def _advance(self, clock: str, times: np.ndarray[tuple[int], Any]) -> None:
        """Takes up some times (ms)."""
        if len(times):
            self.clocks[clock] = max(self.clocks.get(clock, NO_TIMESTAMP), int(times.max()))


class Suffixed(Pairs):
    """Keys that something comes behind."""

    _suffix: np.dtype[Any]

    def keys(self, raws: Column) -> pa.Array:
        """See `Importer`."""
        plain, suffixes = split_tail(raws, self._suffix, self._name)
        self._check_suffixes(suffixes)
        self._told(suffixes)
        return joined(self._keys.read(plain), packed(suffixes))

    def _check_suffixes(self, suffixes: np.ndarray[tuple[int], Any]) -> None:
        """Refuses those that are not of such a store."""

    def _told(self, suffixes: np.ndarray[tuple[int], Any]) -> None:
        """Takes up what they tell of the clocks."""


class Buffered(Pairs):
    """What waits: `statelib.described.buffer_value_codec`. Its log has times of a wall clock, so records' own count."""

    def __init__(self, described: Described, form: StoreFormat) -> None:
        super().__init__(described, form, aggregates=False)
        self._own = serde_for(self._values.type)

    def values(self, batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
        """See `Importer`."""
        there = np.flatnonzero(valid_of(batch.column("value")))
        buffered = decode(batch.column("value").take(pa.array(there)).to_pylist(), self._name)
        parts = {name: self._own_bytes(getattr(buffered, name)) for name in ("prior", "old", "new")}
        which = np.full(len(batch), -1)
        which[there] = np.arange(len(there))
        timestamp = np.zeros(len(batch), np.int64)
        timestamp[there] = buffered.timestamp
        return encode(replace(buffered, **parts)).take(pa.array(which, mask=which < 0)), pa.array(timestamp)

    def _own_bytes(self, raws: pa.Array) -> pa.Array:
        return self._own.serialize(self._values.states_of(raws)).cast(pa.binary())
