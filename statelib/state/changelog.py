"""Puts what processors have put into their window and session stores back, given their changelogs.

Each record is put once more, at once, with the clock and what expires by it. The bytes of keys are those of
aggregations (`statelib.operators.windows.changelog`, `statelib.operators.sessions.changelog`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from statelib.described.restoring import Restoring
from statelib.operators.sessions.codec import decode_key as decode_session_key
from statelib.operators.windows.codec import decode_key as decode_window_key
from statelib.records.batch import NO_TIMESTAMP
from statelib.serdes import serde_for
from statelib.state.session import SessionStore
from statelib.state.suppliers import SessionBytesStoreSupplier, WindowBytesStoreSupplier
from statelib.state.window import WindowStore

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from statelib.described.restoring import Target
    from statelib.stores.backend import WriteBatch
    from statelib.stores.byte_columns import Column


class RestoringWindowStore(Restoring):
    """Windows of a processor."""

    only_last = False

    def __init__(self, target: Target) -> None:
        settings = target.store.settings
        supplier = WindowBytesStoreSupplier(target.store.name, settings["retention_ms"], settings["window_size_ms"])
        self._keeps_timestamps = settings["store"].startswith("Timestamped")
        self._store = WindowStore(supplier, *_serdes(target)).init(target.backend, semantics=target.semantics)

    def put(self, keys: Column, values: pa.Array, timestamp: NDArray[np.int64], write: WriteBatch) -> None:
        """See `Restoring`."""
        del write
        for raw_key, row, time_ms in zip(keys.to_pylist(), values.to_pylist(), timestamp.tolist(), strict=True):
            key, start_ms = decode_window_key(raw_key, self._store.name)
            keeps = self._keeps_timestamps and row is not None
            self._store.put_bytes(key, row, start_ms, time_ms if keeps else NO_TIMESTAMP)


class RestoringSessionStore(Restoring):
    """Sessions of a processor."""

    only_last = False

    def __init__(self, target: Target) -> None:
        supplier = SessionBytesStoreSupplier(target.store.name, target.store.settings["retention_ms"])
        self._store = SessionStore(supplier, *_serdes(target)).init(target.backend, semantics=target.semantics)

    def put(self, keys: Column, values: pa.Array, timestamp: NDArray[np.int64], write: WriteBatch) -> None:
        """See `Restoring`."""
        del timestamp, write
        for raw_key, row in zip(keys.to_pylist(), values.to_pylist(), strict=True):
            key, start_ms, end_ms = decode_session_key(raw_key, self._store.name)
            self._store.put_bytes(key, row, start_ms, end_ms)


def _serdes(target: Target) -> tuple[Any, Any]:
    """Serdes of the types of a store's keys and values; its own may write other bytes, which nobody looks into here."""
    return serde_for(target.schema.field("key").type), serde_for(target.schema.field("value").type)
