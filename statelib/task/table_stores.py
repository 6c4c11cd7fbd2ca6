"""Opens the stores of tables and aggregations for custom processors: with Kafka's methods, over the very bytes.

A store that keeps values can be written, too. One that keeps the states of aggregate functions (of a mean: the sum and
the count) can only be read, and deleted from: a result alone does not make a state. Windows and sessions can be read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from statelib.columns.windowed_type import WindowedType
from statelib.errors.kinds import ConfigurationError
from statelib.operators.tables import store as tables
from statelib.operators.tables.source import PlainTableSource
from statelib.operators.tables.writer import PlainStore, VersionedStore
from statelib.operators.windows.definition import SlidingWindows, TimeWindows
from statelib.operators.windows.operator import WindowAggregate
from statelib.operators.windows.windowed_aggregate import WindowedAggregateSpec
from statelib.serdes import serde_for
from statelib.serdes.base import all_good
from statelib.state.key_value import TimestampedKeyValueStore
from statelib.state.session import SessionStore
from statelib.state.suppliers import (
    KeyValueBytesStoreSupplier,
    SessionBytesStoreSupplier,
    VersionedStoreSupplier,
    WindowBytesStoreSupplier,
)
from statelib.state.versioned import VersionedKeyValueStore
from statelib.state.window import TimestampedWindowStore
from statelib.stores.stored_rows import stored_type, stored_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.metrics.node_metrics import NodeMetrics
    from statelib.operators.base import OperatorContext
    from statelib.records.batch import Batch
    from statelib.serdes import Serde
    from statelib.serdes.base import Lenient
    from statelib.settings.semantics import Semantics
    from statelib.state import StateStore
    from statelib.stores.backend import Backend
    from statelib.stores.stored_rows import StoredStates
    from statelib.topology import Processor


def opened_store(owner: Processor, store: str, made: Batch, context: OperatorContext) -> StateStore[Any]:
    """A store of a node.

    Args:
        owner: The node.
        store: The store's name.
        made: Nothing, of the types of what the node forwards.
        context: The node's.

    Raises:
        ConfigurationError: It is a store that holds no table.
    """
    spec: Any = owner.spec
    if isinstance(spec, WindowedAggregateSpec):
        return _windowed(spec, store, made, context)
    of_table: Any = getattr(spec, "table_store", None) or getattr(spec, "store", None)
    if isinstance(spec, PlainTableSource):
        of_table = PlainStore(store)
    keys, values = serde_for(made.keys.type), _serde_of(getattr(spec, "aggregator", None), made.value.type)
    opened: StateStore[Any]
    match of_table:
        case PlainStore():
            opened = _TableStore(KeyValueBytesStoreSupplier(store), keys, values)
        case VersionedStore():
            supplier = VersionedStoreSupplier(store, of_table.history_retention_ms, of_table.segment_interval_ms)
            opened = _VersionedTableStore(supplier, keys, values)
        case _:
            raise no_table(owner.name, store)
    return opened.init(context.backend, semantics=context.semantics)


def no_table(node: str, store: str) -> ConfigurationError:
    """The error where a processor is connected with a store that holds something else than a table."""
    return ConfigurationError(
        f"the store of {node} holds no table or aggregation, so processors cannot use it",
        store=store,
        next_step="use the store of a table or an aggregation, or one of add_state_store()",
    )


def _windowed(spec: WindowedAggregateSpec, store: str, made: Batch, context: OperatorContext) -> StateStore[Any]:
    key_type = made.keys.type
    if not isinstance(key_type, WindowedType):
        raise no_table(context.node, store)
    keys, values = serde_for(key_type.key_type), _Results(spec.aggregator, made.value.type, as_rows=True)
    opened: StateStore[Any]
    match spec.windows:
        case TimeWindows(size_ms=size_ms) | SlidingWindows(time_difference_ms=size_ms):
            windows = WindowBytesStoreSupplier(store, spec.kept_ms, size_ms)
            opened = _Windows(windows, keys, values, context, on_grid=isinstance(spec, WindowAggregate))
        case _ if spec.operator == "session_aggregate":
            opened = _Sessions(SessionBytesStoreSupplier(store, spec.kept_ms), keys, values, context)
        case _:
            raise ConfigurationError(
                "processors cannot use a store of windows that differ in size",
                store=store,
                node=context.node,
                next_step="aggregate by TimeWindows, SlidingWindows or SessionWindows, or process the results",
            )
    return opened.init(context.backend)


@dataclass(frozen=True, slots=True)
class _Results:
    """Reads stored states as results.

    Attributes:
        states: The aggregation.
        arrow_type: Of a result.
        as_rows: Whether a lone column is kept as a row, too, as windows and sessions have it.
    """

    states: StoredStates
    arrow_type: pa.DataType
    as_rows: bool

    def serialize(self, values: pa.Array) -> NoReturn:
        """Refused."""
        del values
        raise ConfigurationError(
            "a store that keeps the states of aggregate functions can only be read: a result alone makes no state",
            next_step="put into a store of the processor's own, or aggregate with aggregate_with() or reduce()",
        )

    def deserialize(self, data: pa.BinaryArray) -> pa.Array:
        """The results."""
        columns = self.states.stored_columns(self.arrow_type)
        if self.as_rows:
            return self.states.results_of(stored_value(serde_for(pa.struct(list(columns))).deserialize(data)))
        return self.states.results_of(serde_for(stored_type(columns)).deserialize(data))

    def deserialize_lenient(self, data: pa.BinaryArray) -> Lenient:
        """As `deserialize`: what the engine has written can be read."""
        return all_good(self.deserialize(data))

    def describe(self) -> Mapping[str, object]:
        """Nobody asks."""
        return {}


def _serde_of(states: StoredStates | None, result: pa.DataType) -> Serde:
    if states is None or states.stored_columns(result) == pa.schema([("value", result)]):
        return serde_for(result)
    return _Results(states, result, as_rows=False)


class _TableStore(TimestampedKeyValueStore):
    def _open(self, backend: Backend, semantics: Semantics, metrics: NodeMetrics | None) -> tables.KeyValueStore:
        del semantics, metrics
        return tables.KeyValueStore(backend, self.name, key_serde=self._key_serde, value_serde=self._value_serde)


class _VersionedTableStore(VersionedKeyValueStore):
    def put(self, key: Any, value: Any, timestamp: Any) -> NoReturn:
        """Refused."""
        del key, value, timestamp
        raise _read_only(self.name)

    def delete(self, key: Any, timestamp: Any) -> NoReturn:
        """Refused."""
        del key, timestamp
        raise _read_only(self.name)


class _Windows(TimestampedWindowStore):
    def __init__(
        self,
        supplier: WindowBytesStoreSupplier,
        key_serde: Serde,
        value_serde: Serde,
        context: OperatorContext,
        *,
        on_grid: bool,
    ) -> None:
        super().__init__(supplier, key_serde, value_serde)
        self._clock_ms = context.clock("store_time")
        self._on_grid = on_grid

    def put(self, key: Any, value: Any, window_start: Any) -> NoReturn:
        """Refused."""
        del key, value, window_start
        raise _read_only(self.name)

    def _open(self, backend: Backend, semantics: Semantics, metrics: NodeMetrics | None) -> Any:
        del semantics
        return self._engine_class(
            backend,
            self.name,
            retention_ms=self.retention_ms,
            stream_time=self._clock_ms,
            metrics=metrics,
            on_grid=self._on_grid,
        )


class _Sessions(SessionStore):
    def __init__(
        self, supplier: SessionBytesStoreSupplier, key_serde: Serde, value_serde: Serde, context: OperatorContext
    ) -> None:
        super().__init__(supplier, key_serde, value_serde)
        self._clock_ms = context.clock("store_time")

    def put(self, session: Any, aggregate: Any) -> NoReturn:
        """Refused."""
        del session, aggregate
        raise _read_only(self.name)

    def _open(self, backend: Backend, semantics: Semantics, metrics: NodeMetrics | None) -> Any:
        del semantics
        return self._engine_class(
            backend, self.name, retention_ms=self.retention_ms, stream_time=self._clock_ms, metrics=metrics
        )


def _read_only(store: str) -> ConfigurationError:
    return ConfigurationError(
        "processors can only read the stores of versioned tables, windows and sessions",
        store=store,
        next_step="put into a store of add_state_store(), or send records to the table's topic",
    )
