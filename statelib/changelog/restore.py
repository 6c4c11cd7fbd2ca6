"""Puts the records of a changelog back into a store: what a Kafka Streams application does when it starts.

The layouts are in `statelib.operators.changelog`. What is written are the bytes that the job's own operators wrote,
whatever the portions in which the records come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.changelog.restore_join_buffer import RestoringJoinBuffer
from statelib.changelog.restore_state_store import RestoringSchedule, RestoringSessionStore, RestoringWindowStore
from statelib.changelog.restore_stream_join import RestoringHeldRecords, RestoringJoinWindow
from statelib.changelog.restore_subscriptions import RestoringSubscriptions
from statelib.changelog.restore_suppression import RestoringSuppression
from statelib.columns.arrow_buffers import spans_of, valid_of
from statelib.described.restoring import Target, last_of_each
from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.metrics.node_metrics import NodeMetrics
from statelib.operators.base import OperatorContext
from statelib.operators.deduplication.codec import decode_values
from statelib.operators.deduplication.kernel import NO_ENTRY
from statelib.operators.deduplication.store import Changes, DeduplicationStore
from statelib.operators.sessions.store import SessionBounds, SessionStore
from statelib.operators.tables.store import KeyValueRows, KeyValueStore
from statelib.operators.tables.writer import VersionedStore
from statelib.operators.windows.store import WindowChanges, WindowStore
from statelib.records.batch import NO_TIMESTAMP, Batch
from statelib.records.key_column import KeyColumn
from statelib.records.key_table import KeyTable
from statelib.serdes import serde_for
from statelib.stores.backend import WriteBatch
from statelib.stores.byte_columns import cut, unpacked
from statelib.stores.stored_rows import stored_rows, stored_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import NDArray

    from statelib.described.restoring import Restoring
    from statelib.documents.manifests import StoreDescription
    from statelib.settings.semantics import Semantics
    from statelib.stores.backend import Backend
    from statelib.stores.byte_columns import Column

_WINDOW_SUFFIX = np.dtype([("start", ">i8"), ("sequence", ">i4")])
_SESSION_SUFFIX = np.dtype([("end", ">i8"), ("start", ">i8")])


def restore(
    store: StoreDescription,
    schema: pa.Schema,
    records: Iterable[pa.RecordBatch],
    backend: Backend,
    *,
    clock_ms: int = NO_TIMESTAMP,
    clocks: Mapping[str, int] | None = None,
    semantics: Semantics = "kip",
    takes_late: bool = False,
) -> int:
    """Writes what a changelog holds into a store that is empty.

    Args:
        store: The store.
        schema: Its types (`StoreDescription.arrow_schema`, decoded).
        records: The changelog from its beginning, in order: key (binary), value (binary, null), timestamp (int64 ms).
        backend: Where the store is.
        clock_ms: Of windows, sessions and deduplications: the clock that the store goes by, as of the end;
            `NO_TIMESTAMP`: it has none.
        clocks: Those of the node that writes the store, as of the end.
        semantics: Those of the job.
        takes_late: Whether a versioned store takes a record that is older than its retention too, if it is its key's
            latest: among records of a plain store, or in another order than they were put.

    Returns:
        How many records there were.

    Raises:
        ConfigurationError: Stores of this kind have no changelog.
        CorruptedDataError: A record is not one of this store's.
    """
    if store.kind not in _KINDS:
        raise ConfigurationError(f"a {store.kind} store has no changelog", store=store.name)
    of_processor = "store" in store.settings and store.kind in _OF_PROCESSORS
    kinds = _OF_PROCESSORS if of_processor else _KINDS
    restoring = kinds[store.kind](Target(store, schema, backend, clock_ms, clocks or {}, semantics, takes_late))
    count = 0
    for batch in records:
        if len(batch):
            write = WriteBatch()
            restoring.put(batch.column("key"), batch.column("value"), batch.column("timestamp").to_numpy(), write)
            backend.write(write)
            count += len(batch)
    write = WriteBatch()
    restoring.finish(write)
    backend.write(write)
    return count


class _KeyValue:
    """Of each key the last value."""

    def __init__(self, target: Target) -> None:
        self._store = KeyValueStore(target.backend, target.store.name)
        self._row = target.row
        self._keeps_timestamps = target.store.settings.get("store") != "KeyValueStore"

    def put(self, keys: Column, values: pa.Array, timestamp: NDArray[np.int64], write: WriteBatch) -> None:
        last = last_of_each(keys)
        chosen = pa.array(last)
        kept = timestamp[last] if self._keeps_timestamps else np.full(len(last), NO_TIMESTAMP)
        rows = KeyValueRows(kept, values.take(chosen))
        self._store.store(keys.take(chosen).to_pylist(), rows, self._row, write)

    def finish(self, write: WriteBatch) -> None:
        del write


class _Versions:
    """Each record a version, as the table's own writer puts it."""

    def __init__(self, target: Target) -> None:
        store, settings = target.store, target.store.settings
        versioned = VersionedStore(store.name, settings["history_retention_ms"], settings["segment_interval_ms"])
        self._context = OperatorContext(
            store.node, target.backend, KeyTable(), NodeMetrics(), semantics=target.semantics
        )
        self._store = versioned.open(self._context)
        self._writer = versioned.writer(self._context, needs_prior=False)
        self._takes_late = target.takes_late
        self._late: list[tuple[bytes, bytes | None, int]] = []

    def put(self, keys: Column, values: pa.Array, timestamp: NDArray[np.int64], write: WriteBatch) -> None:
        self._put_late()
        clock = np.maximum.accumulate(np.concatenate([[self._store.stream_time], timestamp]))[:-1]
        late = np.flatnonzero(timestamp < clock - self._store.history_retention_ms)
        if self._takes_late and len(late):
            columns = (keys.take(pa.array(late)).to_pylist(), values.take(pa.array(late)).to_pylist(), timestamp[late])
            self._late = list(zip(*columns[:2], columns[2].tolist(), strict=True))
        self._writer.put(Batch(KeyColumn(keys), None, values, timestamp, np.arange(len(timestamp))))
        self._writer.flush(write)
        self._context.keys.clear()

    def finish(self, write: WriteBatch) -> None:
        del write
        self._put_late()

    def _put_late(self) -> None:
        """Puts what the last records have left over, now that these are written."""
        for key, value, timestamp in self._late:
            self._store.put_if_latest(key, value, timestamp)
        self._late = []


class _Windows:
    """Of each window the last aggregate."""

    def __init__(self, target: Target) -> None:
        settings = target.store.settings
        self._target = target
        self._store = WindowStore(
            target.backend,
            target.store.name,
            retention_ms=settings["seen_ms"][target.semantics],
            on_grid=settings["on_grid"],
        )

    def put(self, keys: Column, values: pa.Array, timestamp: NDArray[np.int64], write: WriteBatch) -> None:
        last = last_of_each(keys)
        chosen = pa.array(last)
        plain, bounds = _split(keys.take(chosen), _WINDOW_SUFFIX, self._target.store.name)
        start = bounds["start"].astype(np.int64)
        self._store.stream_time = max(self._store.stream_time, int(start.max()))
        is_there = np.zeros(len(start), dtype=np.bool_)
        there, _ = self._store.load(lambda some: plain.take(pa.array(some)), start)
        is_there[there] = True
        rows = values.take(chosen)
        time, raw = (
            np.where(valid_of(rows), timestamp[last], NO_TIMESTAMP),
            _as_row(rows, self._target.row),
        )
        alive = np.flatnonzero(start > self._store.last_expired_start)
        changes = WindowChanges(
            lambda some: plain.take(pa.array(alive[some])),
            start[alive],
            time[alive],
            lambda some: raw.take(pa.array(alive[some])),
            is_there[alive],
        )
        self._store.store(changes, self._target.row, write)

    def finish(self, write: WriteBatch) -> None:
        _expire(self._store, self._target.clock_ms, write)


class _Sessions:
    """Of each session the last aggregate."""

    def __init__(self, target: Target) -> None:
        self._target = target
        retention_ms = target.store.settings["seen_ms"][target.semantics]
        self._store = SessionStore(target.backend, target.store.name, retention_ms=retention_ms)

    def put(self, keys: Column, values: pa.Array, timestamp: NDArray[np.int64], write: WriteBatch) -> None:
        del timestamp
        last = pa.array(last_of_each(keys))
        plain, bounds = _split(keys.take(last), _SESSION_SUFFIX, self._target.store.name)
        start, end = (bounds[name].astype(np.int64) for name in ("start", "end"))
        rows = values.take(last)
        self._store.stream_time = max(self._store.stream_time, int(end.max()))
        alive = end > self._store.last_expired_end
        there = alive & valid_of(rows)
        gone = alive & ~there
        self._store.store(
            SessionBounds(plain.filter(pa.array(gone)), start[gone], end[gone]),
            SessionBounds(plain.filter(pa.array(there)), start[there], end[there]),
            _as_row(rows.filter(pa.array(there)), self._target.row),
            self._target.row,
            write,
        )

    def finish(self, write: WriteBatch) -> None:
        _expire(self._store, self._target.clock_ms, write)


class _Deduplication:
    """Of each id the last entry that the store keeps at the clock that it had at last."""

    def __init__(self, target: Target) -> None:
        self._name = target.store.name
        interval_ms = target.store.settings["interval_ms"]
        self._store = DeduplicationStore(target.backend, self._name, interval_ms=interval_ms)
        self._clock_ms = target.clock_ms

    def put(self, keys: Column, values: pa.Array, timestamp: NDArray[np.int64], write: WriteBatch) -> None:
        alive = np.flatnonzero(timestamp >= self._store.kept_from(self._clock_ms))
        if not len(alive):
            return
        last = alive[last_of_each(keys.take(pa.array(alive)))]
        ids = keys.take(pa.array(last))
        entries = decode_values(values.take(pa.array(last)).to_pylist(), self._name)
        stored_ms = np.full(len(last), NO_ENTRY)
        there, before = self._store.load(ids, since_ms=0)
        stored_ms[there] = before.timestamp
        codes = np.arange(len(last))
        changes = Changes(
            codes, entries.timestamp, stored_ms, lambda some: (spans_of(ids.take(pa.array(some))),), entries.take
        )
        self._store.store(changes, write)

    def finish(self, write: WriteBatch) -> None:
        del write


_KINDS: dict[str, Callable[[Target], Restoring]] = {
    "key-value": _KeyValue,
    "versioned": _Versions,
    "window": _Windows,
    "session": _Sessions,
    "deduplication": _Deduplication,
    "suppression-buffer": RestoringSuppression,
    "join-buffer": RestoringJoinBuffer,
    "punctuation": RestoringSchedule,
    "join-window": RestoringJoinWindow,
    "held-records": RestoringHeldRecords,
    "subscriptions": RestoringSubscriptions,
    "foreign-key-answers": _KeyValue,
}
_OF_PROCESSORS: dict[str, Callable[[Target], Restoring]] = {
    "key-value": _KeyValue,
    "versioned": _Versions,
    "window": RestoringWindowStore,
    "session": RestoringSessionStore,
}
"""The settings of processors' stores say what class they are of (``store``)."""


def _expire(store: WindowStore | SessionStore, clock_ms: int, write: WriteBatch) -> None:
    """Adds the removal of what the clock that the store had at last has expired."""
    store.stream_time = max(store.stream_time, clock_ms)
    store.expire(write)


def _as_row(values: pa.Array, row: pa.Schema) -> pa.Array:
    """The bytes of rows as windows have them, given the bytes of the values that are logged."""
    decoded = stored_rows(serde_for(stored_type(row)).deserialize(values), row)
    masked = pa.StructArray.from_arrays(decoded.flatten(), fields=list(row), mask=values.is_null())
    return serde_for(masked.type).serialize(masked)


def _split(keys: Column, suffix: np.dtype[Any], store: str) -> tuple[Column, NDArray[Any]]:
    """The plain keys, and what comes behind them."""
    content, start, length = spans_of(keys)
    if len(length) and int(length.min()) < suffix.itemsize:
        raise CorruptedDataError(
            f"a record of the changelog has a key of {int(length.min())} bytes, too few for a window",
            store=store,
            next_step="restore the archive of the changelog from a copy",
        )
    tails = cut(content, start + length - suffix.itemsize, np.full(len(length), suffix.itemsize))
    return cut(content, start, length - suffix.itemsize), unpacked(tails, suffix)
