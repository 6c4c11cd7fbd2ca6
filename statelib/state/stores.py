"""Suppliers and builders of stores (Kafka's ``Stores``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.calls import KafkasNames, arguments_checked
from statelib.errors.kinds import ConfigurationError
from statelib.serdes.with_headers import WithHeadersSerde
from statelib.settings.durations import milliseconds
from statelib.state.builder import StoreBuilder
from statelib.state.key_value import KeyValueStore, TimestampedKeyValueStore, TimestampedKeyValueStoreWithHeaders
from statelib.state.session import SessionStore, SessionStoreWithHeaders
from statelib.state.store import serde_of
from statelib.state.suppliers import (
    KeyValueBytesStoreSupplier,
    SessionBytesStoreSupplier,
    WindowBytesStoreSupplier,
)
from statelib.state.versioned import VersionedKeyValueStore
from statelib.state.versioned_bytes import VersionedBytesStoreSupplier
from statelib.state.window import (
    TimestampedWindowStore,
    TimestampedWindowStoreWithDuplicates,
    TimestampedWindowStoreWithHeaders,
    TimestampedWindowStoreWithHeadersAndDuplicates,
    WindowStore,
    WindowStoreWithDuplicates,
    list_serde,
    list_serde_with_timestamps,
)

if TYPE_CHECKING:
    from datetime import timedelta

    from statelib.state.store import SerdeLike


@arguments_checked
class Stores(KafkasNames):
    """Kafka's ``Stores``. Suppliers choose the kind of store; builders add the serdes, or just the Arrow types.

    The suppliers raise `ConfigurationError` for a duration that is negative or has microseconds. Inside a job,
    persistent stores and stores in memory are the same: see `KeyValueBytesStoreSupplier`.
    """

    # --- suppliers -----------------------------------------------------------------------------------------------

    @staticmethod
    def persistent_key_value_store(name: str) -> KeyValueBytesStoreSupplier:
        """A plain store: the value of each key that arrived last."""
        return KeyValueBytesStoreSupplier(name)

    @staticmethod
    def persistent_timestamped_key_value_store(name: str) -> KeyValueBytesStoreSupplier:
        """As `persistent_key_value_store`: whether values have timestamps is said by the store's builder."""
        return KeyValueBytesStoreSupplier(name)

    @staticmethod
    def persistent_timestamped_key_value_store_with_headers(name: str) -> KeyValueBytesStoreSupplier:
        """As `persistent_key_value_store`: whether values have headers is said by the store's builder (KIP-1271)."""
        return KeyValueBytesStoreSupplier(name)

    @staticmethod
    def in_memory_key_value_store(name: str) -> KeyValueBytesStoreSupplier:
        """A plain store in memory."""
        return KeyValueBytesStoreSupplier(name, persistent=False)

    @staticmethod
    def persistent_versioned_key_value_store(
        name: str, history_retention: timedelta, segment_interval: timedelta | None = None
    ) -> VersionedBytesStoreSupplier:
        """A versioned store (KIP-889, "Store Supplier/Builder Interfaces").

        Args:
            name: The store's name.
            history_retention: How long old versions can be queried.
            segment_interval: Width of the segments that expire as a whole, at least 1 ms; None: Kafka's choice.
        """
        return _versioned(name, history_retention, segment_interval, persistent=True)

    @staticmethod
    def in_memory_versioned_key_value_store(
        name: str, history_retention: timedelta, segment_interval: timedelta | None = None
    ) -> VersionedBytesStoreSupplier:
        """A versioned store in memory (which KIP-889 leaves to future work)."""
        return _versioned(name, history_retention, segment_interval, persistent=False)

    @staticmethod
    def persistent_window_store(
        name: str,
        retention_period: timedelta,
        window_size: timedelta,
        retain_duplicates: bool = False,  # noqa: FBT001, FBT002 - as in Kafka
    ) -> WindowBytesStoreSupplier:
        """A window store. Windows are kept for the retention period after their start.

        With ``retain_duplicates`` a key may have several values in a window, as in the stores of joins of two streams
        (`StreamJoined.with_this_store_supplier`). Such a store cannot be handed over to a live application.

        Raises:
            ConfigurationError: The retention is less than the window size.
        """
        return _window(name, retention_period, window_size, retain_duplicates=retain_duplicates, persistent=True)

    @staticmethod
    def persistent_timestamped_window_store(
        name: str,
        retention_period: timedelta,
        window_size: timedelta,
        retain_duplicates: bool = False,  # noqa: FBT001, FBT002 - as in Kafka
    ) -> WindowBytesStoreSupplier:
        """As `persistent_window_store`: whether values have timestamps is said by the store's builder.

        Raises:
            ConfigurationError: The retention is less than the window size.
        """
        return _window(name, retention_period, window_size, retain_duplicates=retain_duplicates, persistent=True)

    @staticmethod
    def persistent_timestamped_window_store_with_headers(
        name: str,
        retention_period: timedelta,
        window_size: timedelta,
        retain_duplicates: bool = False,  # noqa: FBT001, FBT002 - as in Kafka
    ) -> WindowBytesStoreSupplier:
        """As `persistent_window_store`: whether values have headers is said by the store's builder (KIP-1271).

        Raises:
            ConfigurationError: The retention is less than the window size.
        """
        return _window(name, retention_period, window_size, retain_duplicates=retain_duplicates, persistent=True)

    @staticmethod
    def in_memory_window_store(
        name: str,
        retention_period: timedelta,
        window_size: timedelta,
        retain_duplicates: bool = False,  # noqa: FBT001, FBT002 - as in Kafka
    ) -> WindowBytesStoreSupplier:
        """A window store in memory.

        Raises:
            ConfigurationError: The retention is less than the window size.
        """
        return _window(name, retention_period, window_size, retain_duplicates=retain_duplicates, persistent=False)

    @staticmethod
    def persistent_session_store(name: str, retention_period: timedelta) -> SessionBytesStoreSupplier:
        """A session store; sessions are kept for the retention period after their end."""
        return SessionBytesStoreSupplier(name, milliseconds(retention_period, "retention_period"))

    @staticmethod
    def persistent_session_store_with_headers(name: str, retention_period: timedelta) -> SessionBytesStoreSupplier:
        """As `persistent_session_store`: whether values have headers is said by the store's builder (KIP-1271)."""
        return SessionBytesStoreSupplier(name, milliseconds(retention_period, "retention_period"))

    @staticmethod
    def in_memory_session_store(name: str, retention_period: timedelta) -> SessionBytesStoreSupplier:
        """A session store in memory."""
        return SessionBytesStoreSupplier(name, milliseconds(retention_period, "retention_period"), persistent=False)

    # --- builders ------------------------------------------------------------------------------------------------

    @staticmethod
    def key_value_store_builder(
        supplier: KeyValueBytesStoreSupplier, key_serde: SerdeLike, value_serde: SerdeLike
    ) -> StoreBuilder[KeyValueStore]:
        """Builds a `KeyValueStore`."""
        return StoreBuilder(KeyValueStore, supplier, serde_of(key_serde), serde_of(value_serde))

    @staticmethod
    def timestamped_key_value_store_builder(
        supplier: KeyValueBytesStoreSupplier, key_serde: SerdeLike, value_serde: SerdeLike
    ) -> StoreBuilder[TimestampedKeyValueStore]:
        """Builds a `TimestampedKeyValueStore`."""
        return StoreBuilder(TimestampedKeyValueStore, supplier, serde_of(key_serde), serde_of(value_serde))

    @staticmethod
    def timestamped_key_value_store_with_headers_builder(
        supplier: KeyValueBytesStoreSupplier, key_serde: SerdeLike, value_serde: SerdeLike
    ) -> StoreBuilder[TimestampedKeyValueStoreWithHeaders]:
        """Builds a `TimestampedKeyValueStoreWithHeaders` (KIP-1271)."""
        values = WithHeadersSerde(serde_of(value_serde))
        return StoreBuilder(TimestampedKeyValueStoreWithHeaders, supplier, serde_of(key_serde), values)

    @staticmethod
    def versioned_key_value_store_builder(
        supplier: VersionedBytesStoreSupplier, key_serde: SerdeLike, value_serde: SerdeLike
    ) -> StoreBuilder[VersionedKeyValueStore]:
        """Builds a `VersionedKeyValueStore` (KIP-889)."""
        return StoreBuilder(VersionedKeyValueStore, supplier, serde_of(key_serde), serde_of(value_serde))

    @staticmethod
    def window_store_builder(
        supplier: WindowBytesStoreSupplier, key_serde: SerdeLike, value_serde: SerdeLike
    ) -> StoreBuilder[WindowStore]:
        """Builds a `WindowStore`."""
        if supplier.retain_duplicates:
            lists = list_serde(serde_of(value_serde))
            return StoreBuilder(WindowStoreWithDuplicates, supplier, serde_of(key_serde), lists)
        return StoreBuilder(WindowStore, supplier, serde_of(key_serde), serde_of(value_serde))

    @staticmethod
    def timestamped_window_store_builder(
        supplier: WindowBytesStoreSupplier, key_serde: SerdeLike, value_serde: SerdeLike
    ) -> StoreBuilder[TimestampedWindowStore]:
        """Builds a `TimestampedWindowStore`."""
        if supplier.retain_duplicates:
            lists = list_serde_with_timestamps(serde_of(value_serde))
            return StoreBuilder(TimestampedWindowStoreWithDuplicates, supplier, serde_of(key_serde), lists)
        return StoreBuilder(TimestampedWindowStore, supplier, serde_of(key_serde), serde_of(value_serde))

    @staticmethod
    def timestamped_window_store_with_headers_builder(
        supplier: WindowBytesStoreSupplier, key_serde: SerdeLike, value_serde: SerdeLike
    ) -> StoreBuilder[TimestampedWindowStoreWithHeaders]:
        """Builds a `TimestampedWindowStoreWithHeaders` (KIP-1271)."""
        values = WithHeadersSerde(serde_of(value_serde))
        if supplier.retain_duplicates:
            lists = list_serde_with_timestamps(values)
            return StoreBuilder(TimestampedWindowStoreWithHeadersAndDuplicates, supplier, serde_of(key_serde), lists)
        return StoreBuilder(TimestampedWindowStoreWithHeaders, supplier, serde_of(key_serde), values)

    @staticmethod
    def session_store_builder(
        supplier: SessionBytesStoreSupplier, key_serde: SerdeLike, value_serde: SerdeLike
    ) -> StoreBuilder[SessionStore]:
        """Builds a `SessionStore`."""
        return StoreBuilder(SessionStore, supplier, serde_of(key_serde), serde_of(value_serde))

    @staticmethod
    def session_store_with_headers_builder(
        supplier: SessionBytesStoreSupplier, key_serde: SerdeLike, value_serde: SerdeLike
    ) -> StoreBuilder[SessionStoreWithHeaders]:
        """Builds a `SessionStoreWithHeaders` (KIP-1271)."""
        values = WithHeadersSerde(serde_of(value_serde))
        return StoreBuilder(SessionStoreWithHeaders, supplier, serde_of(key_serde), values)


def _versioned(
    name: str, history_retention: timedelta, segment_interval: timedelta | None, *, persistent: bool
) -> VersionedBytesStoreSupplier:
    interval = None if segment_interval is None else milliseconds(segment_interval, "segment_interval", at_least=1)
    retention = milliseconds(history_retention, "history_retention")
    return VersionedBytesStoreSupplier(name, retention, interval, persistent)


def _window(
    name: str, retention_period: timedelta, window_size: timedelta, *, retain_duplicates: bool, persistent: bool
) -> WindowBytesStoreSupplier:
    retention_ms = milliseconds(retention_period, "retention_period")
    size_ms = milliseconds(window_size, "window_size")
    if retention_ms < size_ms:
        raise ConfigurationError(
            f"windows of {size_ms} ms are kept for {retention_ms} ms only",
            store=name,
            next_step="make the retention period at least the window size",
        )
    return WindowBytesStoreSupplier(name, retention_ms, size_ms, persistent, retain_duplicates)
