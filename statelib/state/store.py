"""What every state store is: named, opened over a backend, closed (Kafka's ``StateStore``)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeAlias, TypeVar

import pyarrow as pa

from statelib.errors.kinds import ConfigurationError, InputError
from statelib.records.batch import NO_TIMESTAMP
from statelib.serdes import serde_for
from statelib.serdes.single_values import to_bytes
from statelib.stores.memory import MemoryBackend
from statelib.stores.rocksdb import RocksDbBackend

if TYPE_CHECKING:
    from types import TracebackType

    from statelib.metrics.node_metrics import NodeMetrics
    from statelib.serdes import Serde
    from statelib.settings.semantics import Semantics
    from statelib.state.log import StoreLog
    from statelib.state.suppliers import BytesStoreSupplier
    from statelib.stores.backend import Backend
    from statelib.stores.spec import StoreKind

Engine = TypeVar("Engine")
"""The store of `statelib.stores` that reads and writes the bytes."""

SerdeLike: TypeAlias = "Serde | pa.DataType"
"""A serde, or the Arrow type of what is to be stored: `serde_for` has its serde."""


def serde_of(serde: SerdeLike) -> Serde:
    """The serde itself, or that of an Arrow type."""
    return serde_for(serde) if isinstance(serde, pa.DataType) else serde


class StateStore(ABC, Generic[Engine]):
    """Kafka's ``StateStore``, made by a `StoreBuilder`. It can be used between `init` and `close`.

    Args:
        supplier: Name and settings.
        key_serde: The serde of keys.
        value_serde: The serde of values.
    """

    store_kind: ClassVar[StoreKind]
    """See `StoreKind`."""

    def __init__(self, supplier: BytesStoreSupplier, key_serde: Serde, value_serde: Serde) -> None:
        self.name = supplier.name
        self.persistent = supplier.persistent
        self._key_serde = key_serde
        self._value_serde = value_serde
        self._value_schema = pa.schema([("value", value_serde.arrow_type)])  # of a row, for the store's header
        self._backend: Backend | None = None
        self._opened: Engine | None = None
        self._owns_backend = False
        self._log: StoreLog | None = None

    def log_to(self, log: StoreLog | None) -> None:
        """Logs all further puts, as Kafka's changelogging stores do; None: stops."""
        self._log = log

    def init(
        self,
        where: Backend | Path | str | None = None,
        *,
        semantics: Semantics = "kip",
        metrics: NodeMetrics | None = None,
    ) -> Self:
        """Opens the store and returns it.

        Args:
            where: A backend, or the folder of a persistent store. None: a store in memory.
            semantics: See `Semantics`.
            metrics: Where refused puts are counted.

        Raises:
            ConfigurationError: The store is open already; a persistent store was given no folder, or a store in memory
                was given one; the stored data has another format or other settings.
        """
        if self._backend is not None:
            raise ConfigurationError("the store is open already", store=self.name, next_step="close() it first")
        self._owns_backend = where is None or isinstance(where, (str, Path))
        if where is None and self.persistent:
            step = "init(folder), or an in-memory supplier"
            raise ConfigurationError("a persistent store needs a folder", store=self.name, next_step=step)
        if isinstance(where, (str, Path)):
            if not self.persistent:
                step = "init() without one, or a persistent supplier"
                raise ConfigurationError("a store in memory has no folder", store=self.name, next_step=step)
            self._backend = RocksDbBackend(where)
        else:
            self._backend = where or MemoryBackend()
        try:
            self._opened = self._open(self._backend, semantics, metrics)
        except BaseException:
            self.close()
            raise
        return self

    @property
    def is_open(self) -> bool:
        """Whether it can be used."""
        return self._opened is not None

    def flush(self) -> None:
        """Writes what puts have left in memory: only versioned stores do so; the others write each put at once.

        Until then nobody else sees it who reads the same folder or backend, and a process that is killed loses it.
        `close` flushes.

        Raises:
            ConfigurationError: The store is not open.
        """
        self._over  # noqa: B018 - raises

    def close(self) -> None:
        """Flushes, and releases the store's own folder or memory; a given backend stays open. Twice does nothing."""
        if self._backend is None:
            return
        try:
            if self._opened is not None:
                self.flush()
        finally:
            if self._owns_backend:
                self._backend.close()
            self._backend = self._opened = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def approximate_size_bytes(self) -> int:
        """The store's approximate size, in memory and on disk."""
        self.flush()
        return sum(self._over.approximate_bytes(family) for family in self.family_names(self.name))

    @staticmethod
    @abstractmethod
    def family_names(name: str) -> tuple[str, ...]:
        """The backend families of a store of this kind that is called ``name``."""

    @abstractmethod
    def _open(self, backend: Backend, semantics: Semantics, metrics: NodeMetrics | None) -> Engine:
        """The engine's store over ``backend``."""

    @property
    def _engine(self) -> Engine:
        if self._opened is None:
            raise self._not_open()
        return self._opened

    @property
    def _over(self) -> Backend:
        if self._backend is None:
            raise self._not_open()
        return self._backend

    def _not_open(self) -> ConfigurationError:
        return ConfigurationError("the store is not open", store=self.name, next_step="init() it first")

    def _raw_key(self, key: Any) -> bytes:
        """The bytes of a key.

        Raises:
            InputError: The key is null.
        """
        raw = to_bytes(key, self._key_serde)
        if raw is None:
            raise InputError("a store has no null key", store=self.name)
        return raw

    def _logged(self, raw_key: bytes, raw_value: bytes | None, timestamp: int = NO_TIMESTAMP) -> None:
        """Logs a put, if anybody wants to know; ``timestamp``: that of the value, ms, if it has one of its own."""
        if self._log is not None:
            self._log.add(raw_key, raw_value, None if timestamp == NO_TIMESTAMP else timestamp)

    def _raw_prefix(self, prefix: Any) -> bytes:
        """The bytes of a prefix: bytes as they are, else by the key serde."""
        return prefix if isinstance(prefix, bytes) else to_bytes(prefix, self._key_serde) or b""
