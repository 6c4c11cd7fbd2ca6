"""The versioned key-value store of KIP-889, with the queries of KIP-960 and KIP-968."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

from statelib.operators.versioned import store as engine
from statelib.serdes.single_values import to_bytes
from statelib.state.epoch_time import epoch_ms
from statelib.state.queries import VersionedKeyQuery
from statelib.state.store import StateStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.metrics.node_metrics import NodeMetrics
    from statelib.operators.versioned.store import VersionedRecord
    from statelib.serdes import Serde
    from statelib.settings.semantics import Semantics
    from statelib.state.epoch_time import Time
    from statelib.state.queries import MultiVersionedKeyQuery
    from statelib.state.suppliers import VersionedStoreSupplier
    from statelib.stores.backend import Backend
    from statelib.stores.spec import StoreKind


class VersionedKeyValueStore(StateStore[engine.VersionedKeyValueStore]):
    """Several versions of each key, which are looked up by time (KIP-889, ``VersionedKeyValueStore``).

    A version is valid from its timestamp to the next version's. Times are milliseconds, or a `datetime` with a
    time zone. Every method raises `ConfigurationError` while the store is not open.

    Puts are collected in memory, up to some megabytes, so that a key's history is written once and not once a put.
    `flush` and `close` write them. A processor's stores are flushed by the job.

    Made by ``Stores.versioned_key_value_store_builder(...).build()``.
    """

    PUT_RETURN_CODE_VALID_TO_UNDEFINED: ClassVar = engine.VALID_TO_UNDEFINED
    """What `put` gives where nothing is later (-1)."""
    PUT_RETURN_CODE_NOT_PUT: ClassVar = engine.NOT_PUT
    """What `put` gives where it has refused (the smallest int64)."""

    store_kind: ClassVar[StoreKind] = "versioned"
    family_names = staticmethod(engine.VersionedKeyValueStore.families)

    def __init__(self, supplier: VersionedStoreSupplier, key_serde: Serde, value_serde: Serde) -> None:
        super().__init__(supplier, key_serde, value_serde)
        self.history_retention_ms = supplier.history_retention_ms
        self._segment_interval_ms = supplier.segment_interval_ms

    @property
    def segment_interval_ms(self) -> int:
        """Width of the segments that expire as a whole."""
        return self._engine.segment_interval_ms

    @property
    def stream_time(self) -> int:
        """The store's clock: the largest timestamp put, -1 if none."""
        return self._engine.stream_time

    def put(self, key: Any, value: Any, timestamp: Time) -> int:
        """Adds a version, or replaces the one with the same timestamp. A value of None is a tombstone.

        Returns:
            The time at which the version ends: the timestamp of the key's next version, tombstones included;
            ``PUT_RETURN_CODE_VALID_TO_UNDEFINED`` if there is none; ``PUT_RETURN_CODE_NOT_PUT`` if the timestamp is
            older than the retention.

        Raises:
            InputError: The key is null, a type is wrong, or the timestamp is negative.
        """
        time = epoch_ms(timestamp)
        self._log_put(key, value, time)
        return self._engine.put(key, value, time)

    def delete(self, key: Any, timestamp: Time) -> VersionedRecord | None:
        """Puts a tombstone, and returns the value that was valid at ``timestamp``; None also if it is refused.

        Raises:
            InputError: The key is null, or the timestamp negative.
        """
        time = epoch_ms(timestamp)
        self._log_put(key, None, time)
        return self._engine.delete(key, time)

    def flush(self) -> None:
        """See `StateStore`."""
        self._engine.flush()

    def _log_put(self, key: Any, value: Any, timestamp: int) -> None:
        """Logs what is about to be put; the shipped library logs what is refused, too."""
        if self._log is None or timestamp < 0:
            return
        is_refused = timestamp < max(self.stream_time, timestamp) - self.history_retention_ms
        if self._logs_refused or not is_refused:
            self._logged(self._raw_key(key), to_bytes(value, self._value_serde), timestamp)

    def get(self, key: Any, as_of: Time | None = None) -> VersionedRecord | None:
        """The latest value, or the value valid at ``as_of``; None if there is none.

        If ``as_of`` is older than the history retention, only the latest value can be found, if it was valid then. The
        first time that nothing is found is logged.

        Raises:
            InputError: The key is null.
        """
        engine = self._opened
        if engine is None:
            raise self._not_open()
        return engine.get(key, as_of if as_of is None else epoch_ms(as_of))

    def history(
        self,
        key: Any,
        from_time: Time | None = None,
        to_time: Time | None = None,
        order: Literal["ascending", "descending"] = "descending",
    ) -> list[VersionedRecord]:
        """The values that are valid at any time from ``from_time`` to ``to_time``, and when they ended.

        Like a `MultiVersionedKeyQuery`. Tombstones are left out.

        Raises:
            InputError: The key is null, or the range ends before it begins.
        """
        first = None if from_time is None else epoch_ms(from_time)
        last = None if to_time is None else epoch_ms(to_time)
        return self._engine.history(key, first, last, order=order)

    @overload
    def query(self, query: VersionedKeyQuery) -> VersionedRecord | None: ...
    @overload
    def query(self, query: MultiVersionedKeyQuery) -> list[VersionedRecord]: ...
    def query(
        self, query: VersionedKeyQuery | MultiVersionedKeyQuery
    ) -> VersionedRecord | list[VersionedRecord] | None:
        """Answers a query. Unlike `get`, it returns when a version ended (``valid_to``), unless it is the latest.

        Raises:
            InputError: The key is null, or the range ends before it begins.
        """
        if isinstance(query, VersionedKeyQuery):
            time = None if query.as_of_timestamp is None else epoch_ms(query.as_of_timestamp)
            return self._engine.versioned_key_query(query.key, time)
        return self.history(query.key, query.first, query.last, query.order)

    def range(
        self, from_key: Any = None, to_key: Any = None, as_of: Time | None = None
    ) -> Iterator[tuple[Any, VersionedRecord]]:
        """Keys from ``from_key`` to ``to_key``, both inclusive, in the order of their bytes, with their values (`get`).

        Keys without a value at ``as_of`` are left out. Each key is read when the iterator reaches it.
        """
        return self._engine.range(from_key, to_key, None if as_of is None else epoch_ms(as_of))

    def prefix_scan(self, prefix: Any, as_of: Time | None = None) -> Iterator[tuple[Any, VersionedRecord]]:
        """As `range`, for keys whose bytes begin with ``prefix`` (bytes, or a value that the key serde serialises)."""
        return self._engine.prefix_scan(self._raw_prefix(prefix), None if as_of is None else epoch_ms(as_of))

    def all(self, as_of: Time | None = None) -> Iterator[tuple[Any, VersionedRecord]]:
        """As `range`, for all keys."""
        return self.range(as_of=as_of)

    def approximate_num_entries(self) -> int:
        """The approximate number of keys that have a latest value."""
        return self._engine.approximate_num_entries()

    def _open(
        self, backend: Backend, semantics: Semantics, metrics: NodeMetrics | None
    ) -> engine.VersionedKeyValueStore:
        self._logs_refused = semantics != "kip"
        opened = engine.VersionedKeyValueStore(
            backend,
            self.name,
            history_retention_ms=self.history_retention_ms,
            segment_interval_ms=self._segment_interval_ms,
            semantics=semantics,
            metrics=metrics,
            key_serde=self._key_serde,
            value_serde=self._value_serde,
        )
        if self._owns_backend:  # who forgets to close the store does not lose puts
            weakref.finalize(self, opened.flush)
        return opened
