"""The window store: the aggregate of each key and time window, kept for a retention time (Kafka's ``WindowStore``).

Rows are bytes here; the operator that owns the store serialises them. The store has a clock of its own, the largest
window start written, and a window is there while ``start > clock - retention``. Where the rows lie is the matter of
`statelib.operators.windows.layouts`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.scatter import scatter
from statelib.operators.tables.codec import decode_value, decode_values, encode_value, encode_values
from statelib.operators.windows.codec import (
    BY_KEY,
    BY_START,
    encode_start_key,
)
from statelib.operators.windows.layouts import RowsByKey, RowsByStart
from statelib.operators.windows.window_filter import WindowFilter
from statelib.records.batch import NO_TIMESTAMP
from statelib.stores.byte_columns import raw_column
from statelib.stores.header import Header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from statelib.metrics.node_metrics import NodeMetrics
    from statelib.operators.windows.layouts import WindowLayout
    from statelib.stores.backend import Backend, ColumnOf, WriteBatch
    from statelib.stores.byte_columns import Column

_ADDED_AT_ONCE = 1 << 14
_END_OF_TIME = (1 << 63) - 2


@dataclass(frozen=True, slots=True)
class WindowRow:
    """What the store holds of one key and window: start in ms, largest record timestamp in ms, serialised aggregate."""

    key: bytes
    start_ms: int
    timestamp_ms: int
    row: bytes


@dataclass(frozen=True, slots=True)
class WindowColumns:
    """Many windows, as columns of one length: serialised keys, int64 starts and timestamps in ms, serialised rows."""

    keys: pa.Array
    start: NDArray[np.int64]
    timestamp: NDArray[np.int64]
    rows: pa.Array

    def __len__(self) -> int:
        return len(self.start)

    def filter(self, keep: NDArray[np.bool_]) -> WindowColumns:
        """Those for which ``keep`` is true."""
        chosen = pa.array(keep)
        return WindowColumns(self.keys.filter(chosen), self.start[keep], self.timestamp[keep], self.rows.filter(chosen))


@dataclass(frozen=True, slots=True)
class WindowChanges:
    """The windows of a working set. The store makes columns of them some at a time: not all are in memory twice.

    Attributes:
        keys: Gives the serialised keys of some windows, given their indices (int64).
        start: int64, ms.
        timestamp: int64, ms; `NO_TIMESTAMP`: the window does not exist (any more).
        rows: Gives the serialised aggregates of some windows.
        stored: Whether the store has the window already.
    """

    keys: ColumnOf
    start: NDArray[np.int64]
    timestamp: NDArray[np.int64]
    rows: ColumnOf
    stored: NDArray[np.bool_]


class WindowStore:
    """See the module's docstring.

    Args:
        backend: Where the families are.
        name: Of the store; its families are ``families(name)``.
        retention_ms: How long after its start a window is kept.
        stream_time: The store's clock as of the last commit, ms.
        metrics: Where refused puts are counted, as ``expired-window-record-drop`` (KIP-328).
        on_grid: Whether windows start at few different times. A store that is new has its rows in order of the start
            then.

    Raises:
        ConfigurationError: The store was written in another format.
        CorruptedDataError: Its header cannot be read.
    """

    def __init__(
        self,
        backend: Backend,
        name: str,
        *,
        retention_ms: int,
        stream_time: int = NO_TIMESTAMP,
        metrics: NodeMetrics | None = None,
        on_grid: bool = False,
    ) -> None:
        self.stream_time = stream_time
        self._backend = backend
        self._name = name
        self._windows, self._by_start = self.families(name)
        self._retention_ms = retention_ms
        self._metrics = metrics
        self.newest_stored = stream_time
        """No stored window starts later, ms."""
        self._filter = WindowFilter(after_ms=stream_time, span_ms=retention_ms)
        self.header = Header(backend, self._by_start, BY_START if on_grid else BY_KEY, name, others=(BY_KEY, BY_START))
        self._layout: WindowLayout = (
            RowsByStart(backend, self._by_start, name)
            if self.is_by_start
            else RowsByKey(backend, self._windows, self._by_start, name)
        )

    @staticmethod
    def families(name: str) -> tuple[str, str]:
        """The backend families of the store called ``name``: the windows, and their index by start."""
        return name, f"{name}.by-start"

    @property
    def is_by_start(self) -> bool:
        """Whether the windows lie in order of their start."""
        return self.header.version == BY_START

    @property
    def last_expired_start(self) -> int:
        """The largest start, in ms, that is out of retention."""
        return self.stream_time - self._retention_ms

    def fetch(self, key: bytes, start_ms: int) -> WindowRow | None:
        """One window, or None."""
        raw = self._layout.get(key, start_ms)
        if raw is None or start_ms <= self.last_expired_start:
            return None
        return WindowRow(key, start_ms, *decode_value(raw, self._name))

    def fetch_range(self, key: bytes, from_ms: int, to_ms: int) -> list[WindowRow]:
        """The windows of ``key`` that start from ``from_ms`` to ``to_ms``, both included, in order of time."""
        from_ms = max(from_ms, 0, self.last_expired_start + 1)
        if from_ms > to_ms:
            return []
        return [self._row(*entry) for entry in self._layout.of_key(key, from_ms, min(to_ms, _END_OF_TIME))]

    def all(self) -> Iterator[WindowRow]:
        """All windows within retention, in the order in which they lie."""
        return (self._row(*entry) for entry in self._layout.all() if entry[1] > self.last_expired_start)

    def scan(self, key: bytes | None, from_ms: int, end_ms: int) -> Iterator[WindowColumns]:
        """Windows within retention that start from ``from_ms`` to before ``end_ms``, some thousand at a time.

        Args:
            key: Of this key only; None: of all.
            from_ms: The earliest start.
            end_ms: What all start before.

        Yields:
            In the order in which they lie.
        """
        yield from self.lying(key, max(from_ms, self.last_expired_start + 1), end_ms)

    def lying(self, key: bytes | None, from_ms: int, end_ms: int) -> Iterator[WindowColumns]:
        """As `scan`, with windows that are out of retention: they are there until the next `expire`."""
        from_ms = max(from_ms, 0)
        if from_ms >= end_ms:
            return
        for keys, start, values in self._layout.columns(key, from_ms, min(end_ms, _END_OF_TIME)):
            keep = (start >= from_ms) & (start < end_ms)
            if key is not None:
                keep &= np.asarray(pc.equal(keys, key))
            windows = WindowColumns(keys, start, *decode_values(values, self._name))
            yield windows if keep.all() else windows.filter(keep)

    def starting(self, from_ms: int, end_ms: int) -> Iterator[WindowColumns]:
        """As `lying`, of all keys, by start and key bytes however they lie."""
        first_ms = max(from_ms, 0)
        for keys, start, values in self._layout.starting(first_ms, end_ms) if first_ms < end_ms else ():
            yield WindowColumns(keys, start, *decode_values(values, self._name))

    def _row(self, key: bytes, start_ms: int, value: bytes) -> WindowRow:
        return WindowRow(key, start_ms, *decode_value(value, self._name))

    def in_time(self, from_ms: int, to_ms: int, *, reverse: bool = False) -> Iterator[WindowRow]:
        """Windows of all keys that start from ``from_ms`` to ``to_ms``, both included, by start and key bytes."""
        from_ms = max(from_ms, 0, self.last_expired_start + 1)
        if from_ms <= to_ms:
            entries = self._layout.in_time(from_ms, min(to_ms, _END_OF_TIME) + 1, reverse=reverse)
            yield from (self._row(*entry) for entry in entries)

    @property
    def is_empty(self) -> bool:
        """Whether there is no window at all: look-ups can be skipped."""
        return next(self._layout.all(), None) is None

    def look_up(self, keys: Column, start: NDArray[np.int64]) -> tuple[NDArray[np.int64], pa.Array]:
        """What lies there of windows, in retention or not.

        Args:
            keys: Serialised.
            start: int64, ms.

        Returns:
            int64, timestamps in ms, `NO_TIMESTAMP` where nothing lies; serialised aggregates, null there.
        """
        timestamp, raws = np.full(len(start), NO_TIMESTAMP), self._layout.get_many(keys, start)
        there = np.array([raw is not None for raw in raws], np.bool_)
        timestamp[there], rows = decode_values(raw_column(raws).drop_null(), self._name)
        return timestamp, scatter(rows, there)

    def count_from(self, first_start_ms: int) -> int:
        """How many windows there are that start at ``first_start_ms`` or later."""
        first = encode_start_key(max(first_start_ms, self.last_expired_start + 1, 0))
        return self._backend.count(self._by_start, first)

    def put(self, key: bytes, start_ms: int, row: bytes | None, timestamp_ms: int, write: WriteBatch) -> None:
        """Sets a window, or removes it (``row`` None). A window out of retention is refused and counted."""
        self.stream_time = max(self.stream_time, start_ms)
        if start_ms <= self.last_expired_start:
            if self._metrics is not None:
                self._metrics.count("expired-window-record-drop", 1)
            return
        self.newest_stored = self.stream_time
        if row is None:
            self._layout.delete(key, start_ms, write)
        else:
            self._filter.after_ms = max(self._filter.after_ms, start_ms)
            self._layout.put(key, start_ms, encode_value(timestamp_ms, row), write)

    def load_keys(self, keys: Sequence[bytes]) -> tuple[NDArray[np.int64], list[WindowRow]]:
        """All windows within retention of many keys.

        Returns:
            int64: the number of the key of each window; and the windows, by key and start.
        """
        if not keys or next(self._layout.all(), None) is None:
            return np.empty(0, dtype=np.int64), []
        last_ms = max(self.newest_stored, 0)
        found = [(n, row) for n, key in enumerate(keys) for row in self.fetch_range(key, 0, last_ms)]
        return np.array([n for n, _ in found], dtype=np.int64), [row for _, row in found]

    def load(
        self, keys_of: Callable[[NDArray[np.int64]], pa.Array], start: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], list[tuple[int, bytes]]]:
        """Looks up many windows at once; those that the store cannot have are not looked for.

        Args:
            keys_of: Gives the serialised keys of some of the windows.
            start: int64, ms, the start of each window.

        Returns:
            int64, ascending: which of the windows exist; and for each of these (timestamp in ms, row).
        """
        wanted = np.flatnonzero((start <= self.newest_stored) & (start > self.last_expired_start))
        if len(wanted) == 0:  # as mostly, since windows follow each other: the rest would take 0.3 ms for nothing
            return wanted, []
        keys = keys_of(wanted)
        may_be = self._filter.may_have(keys, start[wanted])
        wanted, keys = wanted[may_be], keys.filter(pa.array(may_be))
        raws = self._layout.get_many(keys, start[wanted])
        there = [(i, raw) for i, raw in zip(wanted.tolist(), raws, strict=True) if raw is not None]
        return (
            np.array([i for i, _ in there], dtype=np.int64),
            [decode_value(raw, self._name) for _, raw in there],
        )

    def store(self, changes: WindowChanges, schema: pa.Schema, write: WriteBatch) -> None:
        """Adds changed windows to ``write``, and the removal of all that the store's clock has expired.

        Args:
            changes: Windows within retention, each once.
            schema: The types of a row.
            write: The batch that also carries the task's position.
        """
        self.header.write(schema, write)
        self.expire(write)
        keys, start = changes.keys, changes.start
        there = changes.timestamp != NO_TIMESTAMP
        new = np.flatnonzero(there & ~changes.stored)
        self._filter.expect(start[new])
        for first in range(0, len(new), _ADDED_AT_ONCE):
            some = new[first : first + _ADDED_AT_ONCE]
            self._filter.add(keys(some), start[some])

        def values(rows: NDArray[np.int64]) -> Column:
            return encode_values(changes.timestamp[rows], changes.rows(rows))

        self._layout.put_rows(keys, start, values, np.flatnonzero(there), new, write)
        self._layout.delete_rows(keys, start, np.flatnonzero(~there & changes.stored), write)
        self.newest_stored = self.stream_time

    def expire(self, write: WriteBatch) -> None:
        """Adds the removal of all windows that the store's clock has expired to ``write``."""
        if self.last_expired_start >= 0:
            self._layout.delete_until(self.last_expired_start, write)
            self._filter.forget(self.last_expired_start)

    def memory_bytes(self) -> int:
        """Size of what is known of the stored windows."""
        return self._filter.memory_bytes()
