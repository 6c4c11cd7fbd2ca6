"""What window and session stores have in common: a clock of their own, which expires what is out of retention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from statelib.operators.sessions.store import SessionRow, SessionStore
from statelib.operators.windows.store import WindowRow, WindowStore
from statelib.operators.windows.store_clock import StoreClock
from statelib.serdes.single_values import to_bytes
from statelib.state.store import StateStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from statelib.metrics.node_metrics import NodeMetrics
    from statelib.serdes import Serde
    from statelib.settings.semantics import Semantics
    from statelib.state.suppliers import SessionBytesStoreSupplier, WindowBytesStoreSupplier
    from statelib.stores.backend import Backend, WriteBatch

_Engine = TypeVar("_Engine", WindowStore, SessionStore)
_Row = TypeVar("_Row", WindowRow, SessionRow)


class ExpiringStore(StateStore[_Engine]):
    """See the module's docstring."""

    _engine_class: ClassVar[type[Any]]
    """The store of `statelib.operators` that reads and writes the bytes."""

    def __init__(
        self,
        supplier: WindowBytesStoreSupplier | SessionBytesStoreSupplier,
        key_serde: Serde,
        value_serde: Serde,
    ) -> None:
        super().__init__(supplier, key_serde, value_serde)
        self.retention_ms = supplier.retention_ms

    @property
    def stream_time(self) -> int:
        """The store's clock: the largest window start, or session end, put or removed; -1 if none."""
        return self._engine.stream_time

    def _carry_out(self, write: WriteBatch, time_ms: int) -> None:
        """Writes a put of this time, with what the store's clock then expires."""
        if time_ms > self._clock.stream_time:
            self._engine.expire(write)
        self._clock.advance(time_ms, write)
        self._over.write(write)

    def _between(self, rows: Iterable[_Row], key_from: Any, key_to: Any) -> Iterator[_Row]:
        """Those of the keys from the one to the other, in the order of their bytes; None: without a bound."""
        first, last = to_bytes(key_from, self._key_serde), to_bytes(key_to, self._key_serde)
        return (row for row in rows if (first is None or row.key >= first) and (last is None or row.key <= last))

    def _open(self, backend: Backend, semantics: Semantics, metrics: NodeMetrics | None) -> _Engine:
        del semantics  # there is one
        self._clock = StoreClock(backend, self.name)
        clock = self._clock.stream_time
        store: _Engine = self._engine_class(
            backend, self.name, retention_ms=self.retention_ms, stream_time=clock, metrics=metrics
        )
        store.header.check(self._value_schema)
        return store
