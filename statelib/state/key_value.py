"""Key-value stores: plain, and with timestamps (Kafka's ``KeyValueStore``, ``TimestampedKeyValueStore``).

Both have the same bytes (`statelib.operators.tables.codec`): a plain store writes -1 as the timestamp. So it can be
opened as a store with timestamps later, as in Kafka (KIP-258).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from statelib.operators.tables import store as engine
from statelib.records.batch import NO_TIMESTAMP
from statelib.serdes.single_values import to_bytes
from statelib.state.store import StateStore
from statelib.state.timestamped_values import with_timestamp
from statelib.state.values_with_headers import kept, shown
from statelib.stores.backend import WriteBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from statelib.metrics.node_metrics import NodeMetrics
    from statelib.operators.tables.value_and_timestamp import ValueAndTimestamp
    from statelib.settings.semantics import Semantics
    from statelib.stores.backend import Backend
    from statelib.stores.spec import StoreKind


class KeyValueStore(StateStore[engine.KeyValueStore]):
    """The last value put for each key (Kafka's ``KeyValueStore``).

    Keys are in the order of their bytes. Every method raises `ConfigurationError` while the store is not open, and
    `InputError` for a null key or one of another type.

    Made by ``Stores.key_value_store_builder(...).build()``.
    """

    store_kind: ClassVar[StoreKind] = "key-value"
    family_names = staticmethod(engine.KeyValueStore.families)

    def get(self, key: Any) -> Any:
        """The value of ``key``, or None."""
        found = self._engine.get(key)
        return None if found is None else self._shown(found)

    def put(self, key: Any, value: Any) -> None:
        """Sets the value of ``key``; None deletes it."""
        self.put_all([(key, value)])

    def put_all(self, entries: Iterable[tuple[Any, Any]]) -> None:
        """Sets many (key, value) pairs: all of them or none."""
        store, write = self._engine, WriteBatch()
        store.header.write(self._value_schema, write)
        kept = [(key, *self._kept(value)) for key, value in entries]
        for key, value, timestamp in kept:
            store.add(key, value, timestamp, write)
        self._over.write(write)
        if self._log is not None:
            for key, value, timestamp in kept:
                self._logged(self._raw_key(key), to_bytes(value, self._value_serde), timestamp)

    def put_if_absent(self, key: Any, value: Any) -> Any:
        """Sets the value of ``key`` if it has none, and returns the value that it had."""
        there = self.get(key)
        if there is None:
            self.put(key, value)
        return there

    def delete(self, key: Any) -> Any:
        """Removes ``key``, and returns the value that it had."""
        there = self.get(key)
        if there is not None:
            self.put(key, None)
        else:
            self._logged(self._raw_key(key), None)  # as Kafka's, whether there was anything or not
        return there

    def range(self, from_key: Any = None, to_key: Any = None) -> Iterator[tuple[Any, Any]]:
        """Keys from ``from_key`` to ``to_key``, both inclusive, with their values; None: no bound.

        Later puts are not visible.
        """
        return self._all_shown(self._engine.range(from_key, to_key))

    def reverse_range(self, from_key: Any = None, to_key: Any = None) -> Iterator[tuple[Any, Any]]:
        """As `range`, last key first."""
        return self._all_shown(self._engine.range(from_key, to_key, reverse=True))

    def prefix_scan(self, prefix: Any) -> Iterator[tuple[Any, Any]]:
        """Keys whose bytes begin with ``prefix`` (bytes, or what the key serde makes of it), with their values."""
        return self._all_shown(self._engine.prefix_scan(self._raw_prefix(prefix)))

    def all(self) -> Iterator[tuple[Any, Any]]:
        """All keys with their values."""
        return self.range()

    def reverse_all(self) -> Iterator[tuple[Any, Any]]:
        """As `all`, last key first."""
        return self.reverse_range()

    def approximate_num_entries(self) -> int:
        """Roughly how many keys there are."""
        return self._engine.approximate_num_entries()

    def _kept(self, value: Any) -> tuple[Any, int]:
        """(value, timestamp) as they are stored."""
        return value, NO_TIMESTAMP

    def _shown(self, found: ValueAndTimestamp) -> Any:
        """What a reader gets of them."""
        return found.value

    def _all_shown(self, found: Iterator[tuple[Any, ValueAndTimestamp]]) -> Iterator[tuple[Any, Any]]:
        return ((key, self._shown(value)) for key, value in found)

    def _open(self, backend: Backend, semantics: Semantics, metrics: NodeMetrics | None) -> engine.KeyValueStore:
        del semantics, metrics  # nothing is ever refused
        store = engine.KeyValueStore(backend, self.name, key_serde=self._key_serde, value_serde=self._value_serde)
        store.header.check(self._value_schema)
        return store


class TimestampedKeyValueStore(KeyValueStore):
    """As `KeyValueStore`, but its values are `ValueAndTimestamp` (Kafka's ``TimestampedKeyValueStore``).

    ``put(key, ValueAndTimestamp.make(value, timestamp))``: with a value of None this deletes the key.

    Made by ``Stores.timestamped_key_value_store_builder(...).build()``.
    """

    def _kept(self, value: Any) -> tuple[Any, int]:
        return with_timestamp(value, self.name)

    def _shown(self, found: ValueAndTimestamp) -> Any:
        return found


class TimestampedKeyValueStoreWithHeaders(KeyValueStore):
    """As `KeyValueStore`, but its values are `ValueTimestampHeaders` (KIP-1271).

    ``put(key, ValueTimestampHeaders.make(value, timestamp, record.headers))``: a value of None deletes the key.

    Made by ``Stores.timestamped_key_value_store_with_headers_builder(...).build()``.
    """

    def _kept(self, value: Any) -> tuple[Any, int]:
        return kept(value, self.name)

    def _shown(self, found: ValueAndTimestamp) -> Any:
        return shown(found.value, found.timestamp)
