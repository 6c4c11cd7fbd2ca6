"""What a store holds of one key, whatever kind of store it is: for ``hindstream inspect``.

A processor's spec tells the kind of its store. Tables and aggregations by key, windows, sessions, deduplications,
buffers and the stores of custom processors are each read in the way in which their operator reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import pyarrow as pa

from hindstream.numbers import time_text
from statelib.errors import InternalError
from statelib.operators.base import OperatorSpec
from statelib.operators.deduplicate import DeduplicateSpec
from statelib.operators.derived_table import DerivedTable
from statelib.operators.distinct import Distinct
from statelib.operators.foreign_key_join import ForeignKeyJoin
from statelib.operators.foreign_key_resolve import ForeignKeyResolve
from statelib.operators.join_buffer import JoinBuffer
from statelib.operators.key_aggregate import KeyAggregate
from statelib.operators.process import Process
from statelib.operators.session_aggregate import SessionAggregate
from statelib.operators.sliding_aggregate import SlidingAggregate
from statelib.operators.stored_rows import stored_type as of_columns
from statelib.operators.stream_stream_join import StreamStreamJoin
from statelib.operators.suppress import Suppress
from statelib.operators.table_join import TableJoinMerge
from statelib.operators.table_source import PlainTableSource, TableSource
from statelib.operators.table_writer import PlainStore, TableStore, VersionedStore
from statelib.operators.window_aggregate import WindowAggregate
from statelib.serdes import serde_for
from statelib.state import (
    KeyValueStore,
    SessionStore,
    StateStore,
    ValueAndTimestamp,
    VersionedKeyValueStore,
    WindowStore,
)
from statelib.stores.backend import Backend
from statelib.stores.deduplication import DeduplicationStore
from statelib.stores.join_buffer import JoinBufferStore
from statelib.stores.key_value import KeyValueStore as PlainRows
from statelib.stores.session import SessionStore as SessionRows
from statelib.stores.stream_join import HeldStore, JoinWindowStore
from statelib.stores.subscription_codec import decode_key
from statelib.stores.subscriptions import SubscriptionStore
from statelib.stores.suppression_buffer import SuppressionBufferStore
from statelib.stores.versioned import VersionedKeyValueStore as Versions
from statelib.stores.window import WindowStore as WindowRows
from statelib.topology import Processor

Entry = tuple[str, object]
"""When, or what for, and the value."""

_FOREVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Place:
    """What is asked for.

    Attributes:
        backend: The task's stores.
        store: The store's name.
        key: The key's bytes; of a deduplication by key and id those of both, framed as in the store.
        at_ms: Of a versioned store the version of that time, of windows and sessions those that hold it; None: the
            latest version, all windows.
        store_time_ms: The store's clock.
        stream_time_ms: The task's.
        forwarded: What its operator forwards, fields ``key`` and ``value``.
    """

    backend: Backend
    store: str
    key: bytes
    at_ms: int | None
    store_time_ms: int
    stream_time_ms: int
    forwarded: pa.Schema


def stores_of(node: Processor) -> tuple[str, ...]:
    """The stores that a node writes: not those that it only looks into."""
    return tuple(store.name for store in node.spec.state_stores() if store.kind != "punctuation")


@singledispatch
def entries(spec: OperatorSpec, place: Place) -> Iterator[Entry]:
    """What the store of an operator holds of a key."""
    del place
    raise InternalError("nobody knows how to look into this operator's store", operator=type(spec).__name__)


@entries.register
def _(spec: TableSource, place: Place) -> Iterator[Entry]:
    return _table(spec.table_store, place)


@entries.register
def _(spec: PlainTableSource, place: Place) -> Iterator[Entry]:
    return _table(PlainStore(spec.store), place)


@entries.register(DerivedTable)
@entries.register(TableJoinMerge)
def _(spec: DerivedTable | TableJoinMerge, place: Place) -> Iterator[Entry]:
    return iter(()) if spec.store is None else _table(spec.store, place)


@entries.register
def _(spec: KeyAggregate, place: Place) -> Iterator[Entry]:
    return _table(spec.store, place, spec.aggregator)


@entries.register
def _(spec: WindowAggregate, place: Place) -> Iterator[Entry]:
    retention_ms = spec.retention_ms or spec.windows.retention_ms
    return _windows(place, retention_ms, spec.windows.size_ms, holds_end=False)


@entries.register
def _(spec: SlidingAggregate, place: Place) -> Iterator[Entry]:
    # Of sliding windows and sessions the longer retention of the two modes: what the store holds, it shows.
    return _windows(place, spec.seen_ms("kip"), spec.windows.time_difference_ms, holds_end=True)


@entries.register
def _(spec: SessionAggregate, place: Place) -> Iterator[Entry]:
    store = SessionRows(place.backend, place.store, retention_ms=spec.seen_ms("kip"), stream_time=place.store_time_ms)
    for row in store.fetch(place.key):
        if place.at_ms is None or row.start_ms <= place.at_ms <= row.end_ms:
            yield _between(row.start_ms, row.end_ms), _decoded(row.row, store.header.schema)


@entries.register
def _(spec: Distinct, place: Place) -> Iterator[Entry]:
    return entries(spec.counted, place)


@entries.register
def _(spec: DeduplicateSpec, place: Place) -> Iterator[Entry]:
    found = DeduplicationStore(place.backend, spec.store, interval_ms=spec.interval_ms).fetch(place.key)
    columns = (found.timestamp.tolist(), found.partition.tolist(), found.offset.tolist())
    for timestamp, partition, offset in zip(*columns, strict=True):
        expired = ", expired" if timestamp < place.stream_time_ms - spec.interval_ms else ""
        yield time_text(timestamp) + expired, {"partition": partition, "offset": offset}


@entries.register
def _(spec: Suppress, place: Place) -> Iterator[Entry]:
    store = SuppressionBufferStore(place.backend, spec.store, suffix_words=spec.suffix_words)
    for row in store.all():
        if row.key == place.key:
            yield f"leaves after {time_text(row.time_ms + spec.wait_ms)}", _value(row.row, store.header.schema)


@entries.register
def _(spec: JoinBuffer, place: Place) -> Iterator[Entry]:
    store = JoinBufferStore(place.backend, spec.store)
    for row in store.all():
        if row.key == place.key:
            until = time_text(row.timestamp_ms + spec.grace_ms)
            yield f"{time_text(row.timestamp_ms)}, joined after {until}", _value(row.row, store.header.schema)


@entries.register
def _(spec: StreamStreamJoin, place: Place) -> Iterator[Entry]:
    if place.store == spec.held_store:
        held_rows = HeldStore(place.backend, place.store)
        for held in held_rows.all():
            if held.row.key == place.key:
                side = "left" if held.is_left else "right"
                waits = f"{time_text(held.row.timestamp_ms)} ({side}), has met nobody"
                yield waits, _field(held.row.value, held_rows.header.schema, side)
    else:
        rows = JoinWindowStore(place.backend, place.store)
        for row in rows.fetch(place.key, 0):
            yield time_text(row.timestamp_ms), _field(row.value, rows.header.schema, 0)


@entries.register
def _(spec: ForeignKeyJoin, place: Place) -> Iterator[Entry]:
    store = SubscriptionStore(place.backend, spec.store)
    found, _ = store.load([place.key])
    keys = [decode_key(raw, spec.store)[1] for raw in found.keys.to_pylist()]
    referring = serde_for(place.forwarded.field("key").type).deserialize(pa.array(keys, pa.binary()))
    for key, row in zip(referring.to_pylist(), found.rows.to_pylist(), strict=True):
        yield f"row {key}", _field(row, store.header.schema, 0)


@entries.register
def _(spec: ForeignKeyResolve, place: Place) -> Iterator[Entry]:
    store = PlainRows(place.backend, spec.store)
    found = store.get(place.key)
    if found is not None:
        yield "answered", _field(found.value, store.header.schema, 0)


@entries.register
def _(spec: Process, place: Place) -> Iterator[Entry]:
    builder = next(builder for builder in spec.stores if builder.name == place.store)
    key = builder.key_serde.deserialize(pa.array([place.key], pa.binary()))[0].as_py()
    return _of_processor(builder.build().init(place.backend), key, place.at_ms)


def _table(store: TableStore, place: Place, aggregator: Any = None) -> Iterator[Entry]:
    if isinstance(store, VersionedStore):
        versions = Versions(
            place.backend,
            store.name,
            history_retention_ms=store.history_retention_ms,
            segment_interval_ms=store.segment_interval_ms,
        )
        found: Any = versions.get(place.key) if place.at_ms is None else versions.get(place.key, place.at_ms)
    else:
        found = PlainRows(place.backend, store.name).get(place.key)
    if found is None:
        return
    value_type = place.forwarded.field("value").type
    stored_type = value_type if aggregator is None else of_columns(aggregator.stored_columns(value_type))
    stored = serde_for(stored_type).deserialize(pa.array([found.value], pa.binary()))
    value = stored if aggregator is None else aggregator.results_of(stored)
    yield f"since {time_text(found.timestamp)}", value[0].as_py()


def _windows(place: Place, retention_ms: int, length_ms: int, *, holds_end: bool) -> Iterator[Entry]:
    rows = WindowRows(place.backend, place.store, retention_ms=retention_ms, stream_time=place.store_time_ms)
    first, last = 0, _FOREVER
    if place.at_ms is not None:
        first, last = place.at_ms - length_ms + (not holds_end), place.at_ms
    for row in rows.fetch_range(place.key, first, last):
        yield _between(row.start_ms, row.start_ms + length_ms), _decoded(row.row, rows.header.schema)


@singledispatch
def _of_processor(store: StateStore[Any], key: Any, at_ms: int | None) -> Iterator[Entry]:
    del key, at_ms
    raise InternalError("nobody knows how to look into this store", store=store.name, kind=type(store).__name__)


@_of_processor.register
def _(store: VersionedKeyValueStore, key: Any, at_ms: int | None) -> Iterator[Entry]:
    found = store.get(key, at_ms)
    if found is not None:
        yield f"since {time_text(found.timestamp)}", found.value


@_of_processor.register
def _(store: KeyValueStore, key: Any, at_ms: int | None) -> Iterator[Entry]:
    del at_ms  # it knows of now only
    value = store.get(key)
    if isinstance(value, ValueAndTimestamp):
        yield f"since {time_text(value.timestamp)}", value.value
    elif value is not None:
        yield "now", value


@_of_processor.register
def _(store: WindowStore, key: Any, at_ms: int | None) -> Iterator[Entry]:
    for window, value in store.fetch_range(key, key, 0, _FOREVER if at_ms is None else at_ms):
        if at_ms is None or at_ms < window.window_end:
            yield _between(window.window_start, window.window_end), value


@_of_processor.register
def _(store: SessionStore, key: Any, at_ms: int | None) -> Iterator[Entry]:
    for session, value in store.fetch(key):
        if at_ms is None or session.window_start <= at_ms <= session.window_end:
            yield _between(session.window_start, session.window_end), value


def _between(start_ms: int, end_ms: int) -> str:
    return f"{time_text(start_ms)} to {time_text(end_ms)}"


def _value(row: bytes, schema: pa.Schema | None) -> object:
    """Of what a buffer keeps, the record's value."""
    found = _decoded(row, schema)
    return found["value"] if isinstance(found, dict) else found


def _field(value: bytes, schema: pa.Schema | None, name: str | int) -> object:
    """A value that is stored in the bytes of its type, the field ``name`` of the store's schema."""
    if schema is None:
        return value.hex()
    return serde_for(schema.field(name).type).deserialize(pa.array([value], pa.binary()))[0].as_py()


def _decoded(row: bytes, schema: pa.Schema | None) -> object:
    if schema is None:
        return row.hex()
    return serde_for(pa.struct(list(schema))).deserialize(pa.array([row], pa.binary()))[0].as_py()
