"""What windows log, of aggregations and of processors: keys as `statelib.operators.windows.codec` has them in format 1.

The value is the aggregate; null is a deletion. The layout is Kafka's and has no version of its own: others read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.described.exporting import PairsExporter, Records, aggregates_written, without_nulls
from statelib.described.importing import Suffixed
from statelib.described.restoring import Restoring
from statelib.described.view import EVERYTHING
from statelib.errors.kinds import ConfigurationError, InputError
from statelib.operators.aggregation.changelog import rows_of_values
from statelib.operators.windows.codec import SUFFIXES, decode_keys, encode_keys
from statelib.operators.windows.snapshot import window_view
from statelib.operators.windows.store import WindowChanges, WindowStore
from statelib.records.batch import NO_TIMESTAMP
from statelib.settings.semantics import rules_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from statelib.described.description import Described
    from statelib.described.exporting import Share
    from statelib.described.live_format import StoreFormat
    from statelib.described.restoring import Target
    from statelib.stores.backend import WriteBatch
    from statelib.stores.byte_columns import Column


class WindowExporter(PairsExporter):
    """The windows within retention by the store's own clock, in the order in which the store has them.

    Each has its own timestamp; those of a processor's plain store, of which Kafka Streams logs that of the record that
    was processed, have their start.
    """

    _aggregates = True

    def __init__(self, described: Described, declared: StoreFormat) -> None:
        if str(described.settings.get("store")).endswith("Duplicates"):
            raise ConfigurationError(
                "a window has several values, which a live application counts up as it puts them",
                store=described.name,
                next_step="leave the store out, or store lists in a window store without duplicates",
            )
        super().__init__(described, declared)

    def records(self, share: Share) -> Iterator[Records]:
        """See `statelib.described.exporting`."""
        written = aggregates_written(self._described, self._values)
        for raw in window_view(self._described).scan(share.place, EVERYTHING):
            keys, start = self._keys.written(raw["key"]), raw["window_start"]
            timestamp = np.where(raw["timestamp"].is_valid(), raw["timestamp"].fill_null(0), start)
            placed_by = self._keys.placed_by(keys)
            yield without_nulls(Records(placed_by, encode_keys(keys, start), written(raw["value"]), timestamp))


class WindowImporter(Suffixed):
    """Windows: one record each."""

    _suffix = SUFFIXES

    def _check_suffixes(self, suffixes: np.ndarray[tuple[int], Any]) -> None:
        if suffixes["sequence"].any():
            raise InputError(
                "a window has a sequence number: the application's store retains duplicates, and Hindstream's does not"
            )

    def _told(self, suffixes: np.ndarray[tuple[int], Any]) -> None:
        self._advance("store_time", suffixes["start"])

    def values(self, batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
        """See `Importer`; a window has the timestamp of the newest record that it has taken up."""
        values, timestamp = super().values(batch)
        self._advance("stream_time", timestamp.to_numpy()[valid_of(batch.column("value"))])
        return values, timestamp


class RestoringWindows(Restoring):
    """Of each window the last aggregate."""

    def __init__(self, target: Target) -> None:
        settings = target.store.settings
        self._target = target
        self._store = WindowStore(
            target.backend,
            target.store.name,
            retention_ms=settings["seen_ms"][rules_of(target.semantics)],
            on_grid=settings["on_grid"],
        )

    def put(self, keys: Column, values: pa.Array, timestamp: NDArray[np.int64], write: WriteBatch) -> None:
        """See `Restoring`."""
        plain, start = decode_keys(keys, self._target.store.name)
        self._store.stream_time = max(self._store.stream_time, int(start.max()))
        is_there = np.zeros(len(start), dtype=np.bool_)
        there, _ = self._store.load(lambda some: plain.take(pa.array(some)), start)
        is_there[there] = True
        time = np.where(valid_of(values), timestamp, NO_TIMESTAMP)
        raw = rows_of_values(values, self._target.row)
        alive = np.flatnonzero(start > self._store.last_expired_start)
        changes = WindowChanges(
            lambda some: plain.take(pa.array(alive[some])),
            start[alive],
            time[alive],
            lambda some: raw.take(pa.array(alive[some])),
            is_there[alive],
        )
        self._store.store(changes, self._target.row, write)

    def finish(self, write: WriteBatch) -> None:
        """Adds the removal of what the clock that the store had at last has expired."""
        self._store.stream_time = max(self._store.stream_time, self._target.clock_ms)
        self._store.expire(write)
