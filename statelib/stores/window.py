"""The window store: the aggregate of each key and time window, kept for a retention time (Kafka's ``WindowStore``).

Rows are bytes here; the operator that owns the store serialises them. The store has a clock of its own, the largest
window start written, and a window is there while ``start > clock - retention``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.batch import NO_TIMESTAMP
from statelib.stores.byte_columns import empty_values
from statelib.stores.header import Header
from statelib.stores.window_codec import (
    FORMAT_VERSION,
    SUFFIX_BYTES,
    decode_key,
    decode_start_key,
    decode_start_keys,
    decode_value,
    encode_key,
    encode_keys,
    encode_start_key,
    encode_start_keys,
    encode_value,
    encode_values,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from statelib.metrics import NodeMetrics
    from statelib.stores.backend import Backend, WriteBatch

_READ_AT_ONCE = 1 << 14
_END_OF_TIME = (1 << 63) - 2


@dataclass(frozen=True, slots=True)
class WindowRow:
    """What the store holds of one key and window: start in ms, largest record timestamp in ms, serialised aggregate."""

    key: bytes
    start_ms: int
    timestamp_ms: int
    row: bytes


@dataclass(frozen=True, slots=True)
class WindowChanges:
    """The windows of a working set as columns, all of one length.

    Attributes:
        keys: Serialised keys.
        start: int64, ms.
        timestamp: int64, ms; `NO_TIMESTAMP`: the window does not exist (any more).
        rows: Serialised aggregates.
        stored: Whether the store has the window already.
    """

    keys: pa.Array
    start: NDArray[np.int64]
    timestamp: NDArray[np.int64]
    rows: pa.Array
    stored: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.start)

    def filter(self, keep: NDArray[np.bool_]) -> WindowChanges:
        """Those for which ``keep`` is true."""
        if keep.all():
            return self
        chosen = pa.array(keep)
        keys, rows = self.keys.filter(chosen), self.rows.filter(chosen)
        return WindowChanges(keys, self.start[keep], self.timestamp[keep], rows, self.stored[keep])


class WindowStore:
    """See the module's docstring.

    Args:
        backend: Where the families are.
        name: Of the store; its families are ``families(name)``.
        retention_ms: How long after its start a window is kept.
        stream_time: The store's clock as of the last commit, ms.
        metrics: Where refused puts are counted, as ``expired-window-record-drop`` (KIP-328).

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
    ) -> None:
        self.stream_time = stream_time
        self._backend = backend
        self._name = name
        self._windows, self._by_start = self.families(name)
        self._retention_ms = retention_ms
        self._metrics = metrics
        self.newest_stored = stream_time
        """No stored window starts later, ms."""
        self.header = Header(backend, self._by_start, FORMAT_VERSION, name)

    @staticmethod
    def families(name: str) -> tuple[str, str]:
        """The backend families of the store called ``name``: the windows, and their index by start."""
        return name, f"{name}.by-start"

    @property
    def last_expired_start(self) -> int:
        """The largest start, in ms, that is out of retention."""
        return self.stream_time - self._retention_ms

    def fetch(self, key: bytes, start_ms: int) -> WindowRow | None:
        """One window, or None."""
        raw = self._backend.get(self._windows, encode_key(key, start_ms))
        if raw is None or start_ms <= self.last_expired_start:
            return None
        return WindowRow(key, start_ms, *decode_value(raw, self._name))

    def fetch_range(self, key: bytes, from_ms: int, to_ms: int) -> list[WindowRow]:
        """The windows of ``key`` that start from ``from_ms`` to ``to_ms``, both included, in order of time."""
        from_ms = max(from_ms, 0, self.last_expired_start + 1)
        if from_ms > to_ms:
            return []
        entries = self._backend.scan(self._windows, encode_key(key, from_ms), encode_key(key, to_ms) + b"\x00")
        return [
            WindowRow(*decode_key(raw, self._name), *decode_value(value, self._name))
            for raw, value in entries
            if len(raw) == len(key) + SUFFIX_BYTES
        ]

    def all(self) -> Iterator[WindowRow]:
        """All windows within retention, by key bytes and start."""
        for raw, value in self._backend.scan(self._windows):
            key, start_ms = decode_key(raw, self._name)
            if start_ms > self.last_expired_start:
                yield WindowRow(key, start_ms, *decode_value(value, self._name))

    def in_time(self, from_ms: int, to_ms: int, *, reverse: bool = False) -> Iterator[WindowRow]:
        """Windows of all keys that start from ``from_ms`` to ``to_ms``, both included, by start and key bytes."""
        from_ms = max(from_ms, 0, self.last_expired_start + 1)
        if from_ms > to_ms:
            return
        first, end = encode_start_key(from_ms), encode_start_key(min(to_ms, _END_OF_TIME) + 1)
        for raw, _ in self._backend.scan(self._by_start, first, end, reverse=reverse):
            start_ms, key = decode_start_key(raw, self._name)
            window = self.fetch(key, start_ms)
            if window is not None:
                yield window

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
            write.delete(self._windows, encode_key(key, start_ms))
            write.delete(self._by_start, encode_start_key(start_ms, key))
        else:
            write.put(self._windows, encode_key(key, start_ms), encode_value(timestamp_ms, row))
            write.put(self._by_start, encode_start_key(start_ms, key), b"")

    def load_keys(self, keys: Sequence[bytes]) -> tuple[NDArray[np.int64], list[WindowRow]]:
        """All windows within retention of many keys.

        Returns:
            int64: the number of the key of each window; and the windows, by key and start.
        """
        if not keys or self._backend.is_empty(self._windows):
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
        if len(wanted) == 0 or self._backend.is_empty(self._windows):
            return np.empty(0, dtype=np.int64), []
        raws = self._backend.multi_get(self._windows, encode_keys(keys_of(wanted), start[wanted]).to_pylist())
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
        there = changes.timestamp != NO_TIMESTAMP
        written = changes.filter(there)
        write.put_columns(
            self._windows, encode_keys(written.keys, written.start), encode_values(written.timestamp, written.rows)
        )
        new = written.filter(~written.stored)
        write.put_columns(self._by_start, encode_start_keys(new.keys, new.start), empty_values(len(new)))
        gone = changes.filter(~there & changes.stored)
        write.delete_columns(self._windows, encode_keys(gone.keys, gone.start))
        write.delete_columns(self._by_start, encode_start_keys(gone.keys, gone.start))
        self.newest_stored = self.stream_time

    def expire(self, write: WriteBatch) -> None:
        """Adds the removal of all windows that the store's clock has expired to ``write``."""
        if self.last_expired_start < 0:
            return
        first, end = encode_start_key(0), encode_start_key(self.last_expired_start + 1)
        for expired in _some_at_once(raw for raw, _ in self._backend.scan(self._by_start, first, end)):
            keys, start = decode_start_keys(expired, self._name)
            write.delete_columns(self._windows, encode_keys(keys, start))
        write.delete_range(self._by_start, first, end)


def _some_at_once(items: Iterable[bytes]) -> Iterator[list[bytes]]:
    remaining = iter(items)
    while some := list(islice(remaining, _READ_AT_ONCE)):
        yield some
