"""A versioned store of bytes, whose values include their timestamps (KIP-889, ``VersionedBytesStore``).

A value and its timestamp are the bytes of Kafka's ``ValueAndTimestampSerializer``: the timestamp in ms, i64 big-endian,
then the value (`statelib.operators.tables.codec`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from statelib.calls import arguments_checked
from statelib.errors.kinds import InputError
from statelib.operators.tables.codec import decode_value, encode_value
from statelib.serdes import BytesSerde
from statelib.state.epoch_time import epoch_ms
from statelib.state.suppliers import VersionedStoreSupplier
from statelib.state.versioned import VersionedKeyValueStore

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.metrics.node_metrics import NodeMetrics
    from statelib.operators.versioned.store import VersionedRecord
    from statelib.settings.semantics import Semantics
    from statelib.state.epoch_time import Time
    from statelib.stores.backend import Backend


class VersionedBytesStore:
    """KIP-889's ``VersionedBytesStore``, made by ``VersionedBytesStoreSupplier.get()``; opened like any store."""

    def __init__(self, supplier: VersionedStoreSupplier) -> None:
        self.inner = VersionedKeyValueStore(supplier, BytesSerde(), BytesSerde())
        """The store, with values and timestamps apart."""

    def init(
        self,
        where: Backend | Path | str | None = None,
        *,
        semantics: Semantics = "kip",
        metrics: NodeMetrics | None = None,
    ) -> Self:
        """See `StateStore`."""
        self.inner.init(where, semantics=semantics, metrics=metrics)
        return self

    def flush(self) -> None:
        """See `StateStore`."""
        self.inner.flush()

    def close(self) -> None:
        """See `StateStore`."""
        self.inner.close()

    @property
    def name(self) -> str:
        """The store's name."""
        return self.inner.name

    @property
    def is_open(self) -> bool:
        """See `StateStore`."""
        return self.inner.is_open

    def put(self, key: bytes, value: bytes | None, timestamp: Time | None = None) -> int:
        """Adds a version; returns the same as `VersionedKeyValueStore.put`.

        Args:
            key: The key.
            value: The value; without a ``timestamp``, timestamp and value in one.
            timestamp: The version's timestamp.

        Raises:
            InputError: The key is null, the timestamp negative, or there is none.
        """
        if timestamp is not None:
            return self.inner.put(key, value, epoch_ms(timestamp))
        if value is None:
            step = "delete(key, timestamp)"
            raise InputError("a deletion has no timestamp", store=self.name, next_step=step)
        own_timestamp, own_value = decode_value(value, self.name)
        return self.inner.put(key, own_value, own_timestamp)

    def get(self, key: bytes, as_of: Time | None = None) -> bytes | None:
        """The latest value, or the one valid at ``as_of``, prefixed with its timestamp; None if there is none."""
        return _joined(self.inner.get(key, as_of))

    def delete(self, key: bytes, timestamp: Time) -> bytes | None:
        """Puts a tombstone, and returns the value that was valid until then, prefixed with its timestamp."""
        return _joined(self.inner.delete(key, timestamp))


def _joined(record: VersionedRecord | None) -> bytes | None:
    return None if record is None else encode_value(record.timestamp, record.value)


@arguments_checked
@dataclass(frozen=True, slots=True)
class VersionedBytesStoreSupplier(VersionedStoreSupplier):
    """A versioned key-value store (KIP-889, "VersionedBytesStoreSupplier Interface").

    Attributes: see `VersionedStoreSupplier`.
    """

    def get(self) -> VersionedBytesStore:
        """A new store of bytes; ``init`` opens it."""
        return VersionedBytesStore(self)
