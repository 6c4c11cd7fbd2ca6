"""Puts what processors have put into their window and session stores back, given their changelogs."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from statelib.described.restoring import Restoring
from statelib.errors.kinds import CorruptedDataError
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

_WINDOW = struct.Struct(">qi")
_SESSION = struct.Struct(">qq")


class _OneByOne(Restoring, ABC):
    """A window or session store of a processor: its puts once more, with the clock and what expires by it."""

    _suffix: struct.Struct

    def __init__(self, target: Target) -> None:
        self._name = target.store.name

    def put(self, keys: Column, values: pa.Array, timestamp: NDArray[np.int64], write: WriteBatch) -> None:
        """See `statelib.changelog.restore`; each put is carried out at once."""
        del write
        for raw, row, time in zip(keys.to_pylist(), values.to_pylist(), timestamp.tolist(), strict=True):
            if len(raw) < self._suffix.size:
                raise CorruptedDataError(
                    f"a record of the changelog has a key of {len(raw)} bytes, too few for a window", store=self._name
                )
            cut = len(raw) - self._suffix.size
            first, second = self._suffix.unpack_from(raw, cut)
            self._put(raw[:cut], row, first, second, time)

    @abstractmethod
    def _put(self, key: bytes, row: bytes | None, first: int, second: int, timestamp: int) -> None:
        """Puts one record; ``first`` and ``second``: what comes behind its key."""


class RestoringWindowStore(_OneByOne):
    """Windows of a processor."""

    _suffix = _WINDOW

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        settings = target.store.settings
        supplier = WindowBytesStoreSupplier(self._name, settings["retention_ms"], settings["window_size_ms"])
        self._keeps_timestamps = settings["store"] == "TimestampedWindowStore"
        self._store = WindowStore(supplier, *serdes(target)).init(target.backend, semantics=target.semantics)

    def _put(self, key: bytes, row: bytes | None, first: int, second: int, timestamp: int) -> None:
        del second
        keeps = self._keeps_timestamps and row is not None
        self._store.put_bytes(key, row, first, timestamp if keeps else NO_TIMESTAMP)


class RestoringSessionStore(_OneByOne):
    """Sessions of a processor."""

    _suffix = _SESSION

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        supplier = SessionBytesStoreSupplier(self._name, target.store.settings["retention_ms"])
        self._store = SessionStore(supplier, *serdes(target)).init(target.backend, semantics=target.semantics)

    def _put(self, key: bytes, row: bytes | None, first: int, second: int, timestamp: int) -> None:
        """See `Restoring`."""
        del timestamp
        self._store.put_bytes(key, row, second, first)


def serdes(target: Target) -> tuple[Any, Any]:
    """Serdes of the types of a store's keys and values; its own may write other bytes, which nobody looks into here."""
    return serde_for(target.schema.field("key").type), serde_for(target.schema.field("value").type)
