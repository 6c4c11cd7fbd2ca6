"""What a store holds, read with the job's code and row by row: what a snapshot of it must say."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.columns.windowed_type import WindowedType
from statelib.operators.deduplication.codec import SEGMENT_BYTES
from statelib.operators.deduplication.distinct import Distinct
from statelib.operators.deduplication.operator import DeduplicateSpec
from statelib.operators.joins.foreign_key.codec import decode_key as decode_subscription
from statelib.operators.joins.foreign_key.codec import decode_value
from statelib.operators.joins.stream_stream.codec import decode_key
from statelib.operators.joins.stream_stream.store import HeldStore, JoinWindowStore
from statelib.operators.joins.stream_table.buffer import JoinBuffer
from statelib.operators.joins.stream_table.buffer_store import JoinBufferStore
from statelib.operators.processors.codec import KEY, decode_calls
from statelib.operators.processors.process import Process
from statelib.operators.sessions.operator import SessionAggregate
from statelib.operators.sessions.store import SessionStore
from statelib.operators.sliding.operator import SlidingAggregate
from statelib.operators.suppress.operator import Suppress
from statelib.operators.suppress.store import SuppressionBufferStore
from statelib.operators.tables.store import KeyValueStore
from statelib.operators.versioned.store import VersionedKeyValueStore
from statelib.operators.windows.store import WindowStore
from statelib.records.batch import NO_TIMESTAMP
from statelib.serdes import serde_for
from statelib.stores.stored_rows import stored_type as of_columns

if TYPE_CHECKING:
    from statelib.documents.manifests import CommittedTask
    from statelib.stores.backend import Backend
    from statelib.stores.spec import StoreSpec
    from statelib.topology import Processor

Rows = list[tuple[Any, ...]]


def rows_of(
    node: Processor, store: StoreSpec, types: dict[str, pa.Schema], backend: Backend, task: CommittedTask
) -> Rows:
    """All rows of the view ``latest``; times in ms."""
    made, parent = types[node.name], types[node.parents[0]]
    clock = task.position.clocks.get(node.name, {}).get("store_time", NO_TIMESTAMP)
    reader = _READERS[store.kind]
    return list(reader(node.spec, store, made, parent, backend, clock, task.position.stream_time))


def one(raw: bytes | None, arrow_type: pa.DataType) -> Any:
    """A value, given its bytes."""
    return serde_for(arrow_type).deserialize(pa.array([raw], pa.binary()))[0].as_py()


def plain_key_type(made: pa.Schema) -> pa.DataType:
    """Of the keys of a store that has their windows beside them."""
    of = made.field("key").type
    return of.key_type if isinstance(of, WindowedType) else of


def result(spec: Any, raw: bytes, made: pa.Schema) -> Any:
    """What a table has, given what is stored."""
    value_type = made.field("value").type
    if not hasattr(spec, "aggregator"):
        return one(raw, value_type)
    stored_type = of_columns(spec.aggregator.stored_columns(value_type))
    stored = serde_for(stored_type).deserialize(pa.array([raw], pa.binary()))
    return spec.aggregator.results_of(stored)[0].as_py()


def window_result(spec: Any, raw: bytes, schema: pa.Schema) -> Any:
    """The same of a window's row: means are made of sums and counts by hand."""
    row = one(raw, pa.struct(list(schema)))
    shown = {}
    for name, number in row.items():
        of, _, part = name.rpartition(".")
        match part:
            case _ if not of:
                shown[name] = number
            case "sum":
                count = row[f"{of}.count"]
                shown[of] = number / count if number is not None and count else None
            case "m2":  # of samples; all are deviations
                count = row[f"{of}.count"]
                shown[of] = math.sqrt(number / (count - 1)) if count > 1 else None
            case "values" | "sketch" if f"{of}.count" in row:
                shown[of] = row[f"{of}.count"]
            case "value":
                shown[of] = number
    return shown["value"] if list(shown) == ["value"] else shown


def versioned_store(store: StoreSpec, backend: Backend) -> VersionedKeyValueStore:
    """The store, of bytes."""
    settings: Any = store.settings
    return VersionedKeyValueStore(
        backend,
        store.name,
        history_retention_ms=settings["history_retention_ms"],
        segment_interval_ms=settings["segment_interval_ms"],
    )


def _key_value(spec, store, made, parent, backend, clock, stream_time):
    if isinstance(spec, Process):
        builder = next(builder for builder in spec.stores if builder.name == store.name)
        yield from ((key, value, None) for key, value in builder.build().init(backend).all())
        return
    for key, (raw, timestamp) in KeyValueStore(backend, store.name).all():
        yield one(key, made.field("key").type), result(spec, raw, made), timestamp


def _answers(spec, store, made, parent, backend, clock, stream_time):
    for key, (raw, timestamp) in KeyValueStore(backend, store.name).all():
        yield one(key, made.field("key").type), int.from_bytes(raw, "big"), timestamp


def _versioned(spec, store, made, parent, backend, clock, stream_time):
    for key, found in versioned_store(store, backend).range():
        yield one(key, made.field("key").type), result(spec, found.value, made), found.timestamp


def _window(spec, store, made, parent, backend, clock, stream_time):
    spec = spec.counted if isinstance(spec, Distinct) else spec
    is_sliding = isinstance(spec, SlidingAggregate)
    retention_ms = spec.seen_ms("kip") if is_sliding else spec.retention_ms or spec.windows.retention_ms
    rows = WindowStore(backend, store.name, retention_ms=retention_ms, stream_time=clock)
    for row in rows.all():
        value = window_result(spec, row.row, rows.header.schema)
        (end_ms,) = spec.windows.end_of(np.array([row.start_ms])).tolist()
        yield one(row.key, plain_key_type(made)), row.start_ms, end_ms, value, row.timestamp_ms


def _session(spec, store, made, parent, backend, clock, stream_time):
    spec = spec.counted if isinstance(spec, Distinct) else spec
    assert isinstance(spec, SessionAggregate)
    rows = SessionStore(backend, store.name, retention_ms=spec.seen_ms("kip"), stream_time=clock)
    for row in rows.all():
        value = window_result(spec, row.row, rows.header.schema)
        yield one(row.key, plain_key_type(made)), row.start_ms, row.end_ms, value


def _deduplication(spec, store, made, parent, backend, clock, stream_time):
    assert isinstance(spec, DeduplicateSpec)
    for raw_key, raw in backend.scan(f"{store.name}.entries"):
        ids = raw_key[SEGMENT_BYTES:]
        if spec.kind == "by_key_value":
            length = int.from_bytes(ids[:4], "big")
            shown = (one(ids[4 : 4 + length], pa.string()), one(ids[4 + length :], pa.string()))
        else:
            shown = (one(ids, pa.string()),)
        timestamp, offset, source, partition = (
            int.from_bytes(raw[a:b], "big", signed=True) for a, b in ((1, 9), (9, 17), (17, 19), (19, 23))
        )
        yield *shown, timestamp, source, partition, offset, timestamp < stream_time - spec.interval_ms


def _suppression(spec, store, made, parent, backend, clock, stream_time):
    assert isinstance(spec, Suppress)
    rows = SuppressionBufferStore(backend, store.name, suffix_words=spec.suffix_words)
    for row in rows.all():
        bounds = (row.start_ms, row.end_ms) if spec.windows else ()
        content = one(row.row, pa.struct(list(rows.header.schema)))
        key = one(row.key, plain_key_type(made))
        yield key, *bounds, content["value"], content["timestamp"], row.time_ms + spec.wait_ms("kip")


def _join_buffer(spec, store, made, parent, backend, clock, stream_time):
    assert isinstance(spec, JoinBuffer)
    rows = JoinBufferStore(backend, store.name)
    for row in rows.all():
        value = one(row.row, pa.struct(list(rows.header.schema)))["value"]
        yield one(row.key, made.field("key").type), value, row.timestamp_ms, row.timestamp_ms + spec.grace_ms


def _join_window(spec, store, made, parent, backend, clock, stream_time):
    schema = JoinWindowStore(backend, store.name).header.schema
    for raw_key, raw in backend.scan(store.name):
        key, timestamp, _ = decode_key(raw_key, store.name)
        yield one(key, made.field("key").type), one(raw, schema.field(0).type), timestamp


def _held(spec, store, made, parent, backend, clock, stream_time):
    rows = HeldStore(backend, store.name)
    for held in rows.all():
        side = "left" if held.is_left else "right"
        value = one(held.row.value, rows.header.schema.field(side).type)
        sides = (value, None) if held.is_left else (None, value)
        yield one(held.row.key, made.field("key").type), side, *sides, held.row.timestamp_ms


def _subscriptions(spec, store, made, parent, backend, clock, stream_time):
    for raw_key, raw in backend.scan(store.name):
        foreign, primary = decode_subscription(raw_key, store.name)
        number, row = decode_value(raw, store.name)
        left = parent.field("value").type.field("left").type
        yield one(foreign, parent.field("key").type), one(primary, made.field("key").type), one(row, left), number


def _punctuation(spec, store, made, parent, backend, clock, stream_time):
    raw = backend.get(store.name, KEY)
    for call in [] if raw is None else decode_calls(raw, ""):
        clock = "wall-clock time" if call.by_wall_clock else "stream time"
        yield call.due_ms, clock, call.interval_ms, call.cancelled, call.callback


_READERS: dict[str, Any] = {
    "key-value": _key_value,
    "versioned": _versioned,
    "window": _window,
    "session": _session,
    "deduplication": _deduplication,
    "suppression-buffer": _suppression,
    "join-buffer": _join_buffer,
    "join-window": _join_window,
    "held-records": _held,
    "subscriptions": _subscriptions,
    "foreign-key-answers": _answers,
    "punctuation": _punctuation,
}
