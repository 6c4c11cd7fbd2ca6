"""State stores by Kafka's names (``org.apache.kafka.streams.state``): a key at a time, over a folder or a task's state.

A supplier says what kind of store it is and where, a builder adds the serdes, and what it builds is opened by `init`::

    supplier = Stores.persistent_versioned_key_value_store("rates", timedelta(days=2))
    builder = Stores.versioned_key_value_store_builder(supplier, pa.string(), pa.float64())
    with builder.build().init(folder) as rates:
        rates.put("EUR", 1.08, 1_000)
        rates.get("EUR", as_of=1_500)  # -> VersionedRecord(1.08, 1000)

In a custom processor (`statelib.operators.processors.definition`) the store is there already, over the task's state.
Operators use the same bytes through `statelib.stores`, many keys at a time; this is the slow way.

Begin with `stores`.
"""

from statelib.columns.windowed import Windowed
from statelib.operators.tables.value_and_timestamp import ValueAndTimestamp
from statelib.operators.versioned.store import VersionedRecord
from statelib.state.builder import StoreBuilder
from statelib.state.key_value import KeyValueStore, TimestampedKeyValueStore, TimestampedKeyValueStoreWithHeaders
from statelib.state.queries import MultiVersionedKeyQuery, VersionedKeyQuery
from statelib.state.session import SessionStore, SessionStoreWithHeaders
from statelib.state.store import StateStore
from statelib.state.stores import Stores
from statelib.state.suppliers import (
    KeyValueBytesStoreSupplier,
    SessionBytesStoreSupplier,
    WindowBytesStoreSupplier,
)
from statelib.state.values_with_headers import AggregationWithHeaders, ValueTimestampHeaders
from statelib.state.versioned import VersionedKeyValueStore
from statelib.state.versioned_bytes import VersionedBytesStore, VersionedBytesStoreSupplier
from statelib.state.window import TimestampedWindowStore, TimestampedWindowStoreWithHeaders, WindowStore

__all__ = [
    "AggregationWithHeaders",
    "KeyValueBytesStoreSupplier",
    "KeyValueStore",
    "MultiVersionedKeyQuery",
    "SessionBytesStoreSupplier",
    "SessionStore",
    "SessionStoreWithHeaders",
    "StateStore",
    "StoreBuilder",
    "Stores",
    "TimestampedKeyValueStore",
    "TimestampedKeyValueStoreWithHeaders",
    "TimestampedWindowStore",
    "TimestampedWindowStoreWithHeaders",
    "ValueAndTimestamp",
    "ValueTimestampHeaders",
    "VersionedBytesStore",
    "VersionedBytesStoreSupplier",
    "VersionedKeyQuery",
    "VersionedKeyValueStore",
    "VersionedRecord",
    "WindowBytesStoreSupplier",
    "WindowStore",
    "Windowed",
]
