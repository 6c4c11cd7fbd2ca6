"""The session store: the aggregate of each key and session, kept for a retention time (Kafka's ``SessionStore``).

Rows are bytes here; the operator that owns the store serialises them. The store has a clock of its own, the largest
session end written, and a session is there while ``end > clock - retention``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.operators.sessions.codec import (
    BOUNDS_BYTES,
    FORMAT_VERSION,
    decode_end_key,
    decode_end_keys,
    decode_key,
    decode_keys,
    encode_end_key,
    encode_end_keys,
    encode_key,
    encode_keys,
)
from statelib.records.batch import NO_TIMESTAMP
from statelib.stores.byte_columns import empty_values, raw_column
from statelib.stores.column_scan import look_up, scan_columns
from statelib.stores.header import Header

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from statelib.metrics.node_metrics import NodeMetrics
    from statelib.stores.backend import Backend, WriteBatch
    from statelib.stores.byte_columns import Column

_END_OF_TIME = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class SessionRow:
    """What the store holds of one session: key, first and last timestamp in ms, serialised aggregate."""

    key: bytes
    start_ms: int
    end_ms: int
    row: bytes


@dataclass(frozen=True, slots=True)
class SessionBounds:
    """Sessions without their aggregates, as columns of one length.

    Attributes:
        keys: Serialised keys.
        start: int64, ms.
        end: int64, ms.
    """

    keys: pa.Array
    start: NDArray[np.int64]
    end: NDArray[np.int64]

    def to_list(self) -> list[tuple[bytes, int, int]]:
        """(key, start, end) of each."""
        return list(zip(self.keys.to_pylist(), self.start.tolist(), self.end.tolist(), strict=True))


class SessionStore:
    """See the module's docstring.

    Args:
        backend: Where the families are.
        name: Of the store; its families are ``families(name)``.
        retention_ms: How long after its end a session is kept.
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
        self._sessions, self._by_end = self.families(name)
        self._retention_ms = retention_ms
        self._metrics = metrics
        self.newest_stored = stream_time
        self.header = Header(backend, self._by_end, FORMAT_VERSION, name)

    @staticmethod
    def families(name: str) -> tuple[str, str]:
        """The backend families of the store called ``name``: the sessions, and their index by end."""
        return name, f"{name}.by-end"

    @property
    def last_expired_end(self) -> int:
        """The largest end, in ms, that is out of retention."""
        return self.stream_time - self._retention_ms

    def fetch_session(self, key: bytes, start_ms: int, end_ms: int) -> bytes | None:
        """The row of the session with exactly these bounds, or None."""
        if end_ms <= self.last_expired_end:
            return None
        return self._backend.get(self._sessions, encode_key(key, start_ms, end_ms))

    def fetch(self, key: bytes) -> list[SessionRow]:
        """All sessions of ``key``, by end."""
        return self.find_sessions(key, 0, _END_OF_TIME)

    def find_sessions(self, key: bytes, earliest_end_ms: int, latest_start_ms: int) -> list[SessionRow]:
        """The sessions of ``key`` that end at ``earliest_end_ms`` or later and start at ``latest_start_ms`` or sooner.

        Returns:
            By end, then by start.
        """
        first_end = max(earliest_end_ms, 0, self.last_expired_end + 1)
        first = encode_key(key, 0, first_end)
        last = encode_key(key, _END_OF_TIME, _END_OF_TIME)
        found = [
            SessionRow(*decode_key(raw, self._name), row)
            for raw, row in self._backend.scan(self._sessions, first, last)
            if len(raw) == len(key) + BOUNDS_BYTES
        ]
        return [session for session in found if session.start_ms <= latest_start_ms]

    def in_time(self, earliest_end_ms: int, latest_start_ms: int, *, reverse: bool = False) -> Iterator[SessionRow]:
        """Sessions of all keys, chosen as by `find_sessions`, by end, then start, then key bytes."""
        first = encode_end_key(max(earliest_end_ms, 0, self.last_expired_end + 1))
        for raw, _ in self._backend.scan(self._by_end, first, reverse=reverse):
            key, start_ms, end_ms = decode_end_key(raw, self._name)
            row = self.fetch_session(key, start_ms, end_ms) if start_ms <= latest_start_ms else None
            if row is not None:
                yield SessionRow(key, start_ms, end_ms, row)

    @property
    def is_empty(self) -> bool:
        """Whether there is no session at all: look-ups can be skipped."""
        return self._backend.is_empty(self._sessions)

    def look_up(self, raw_keys: Column) -> pa.Array:
        """The rows that lie under keys as they are stored, in retention or not; null where there is none."""
        return raw_column(look_up(self._backend, self._sessions, raw_keys))

    def count_from(self, first_end_ms: int) -> int:
        """How many sessions there are that end at ``first_end_ms`` or later."""
        first = encode_end_key(max(first_end_ms, self.last_expired_end + 1, 0))
        return self._backend.count(self._by_end, first)

    def all(self) -> Iterator[SessionRow]:
        """All sessions within retention, in the order in which they are stored."""
        for raw, row in self._backend.scan(self._sessions):
            key, start_ms, end_ms = decode_key(raw, self._name)
            if end_ms > self.last_expired_end:
                yield SessionRow(key, start_ms, end_ms, row)

    def scan(self, key: bytes | None = None) -> Iterator[tuple[SessionBounds, pa.Array]]:
        """Sessions within retention, some thousand at a time, in the order in which they are stored, with their rows.

        Args:
            key: Of this key only; None: of all.
        """
        first, end = b"", None
        if key is not None:
            first, end = encode_key(key, 0, 0), encode_key(key, _END_OF_TIME, _END_OF_TIME)
        for raw_keys, rows in scan_columns(self._backend, self._sessions, first, end):
            keys, start, ends = decode_keys(raw_keys, self._name)
            keep = ends > self.last_expired_end
            if key is not None:
                keep &= np.asarray(pc.equal(keys, key))
            chosen = pa.array(keep)
            yield SessionBounds(keys.filter(chosen), start[keep], ends[keep]), rows.filter(chosen)

    def ending(self, after_ms: int, until_ms: int | None) -> Iterator[pa.Array]:
        """The serialised keys of sessions that end after ``after_ms`` and until ``until_ms``, some thousand at a time.

        Those of sessions that are out of retention too, until the next `expire`; None: they end at any time.
        """
        for raws in self._ending(after_ms, until_ms):
            yield decode_end_keys(raws, self._name)[0]

    def ending_with_rows(self, after_ms: int, until_ms: int | None) -> Iterator[tuple[SessionBounds, pa.Array]]:
        """The sessions of `ending`, in order of end, then start, then key bytes, with their rows."""
        for raws in self._ending(after_ms, until_ms):
            bounds = SessionBounds(*decode_end_keys(raws, self._name))
            yield bounds, self.look_up(encode_keys(bounds.keys, bounds.start, bounds.end))

    def _ending(self, after_ms: int, until_ms: int | None) -> Iterator[Column]:
        """The keys of the index by end."""
        first_ms, last_ms = max(after_ms + 1, 0), self.newest_stored if until_ms is None else until_ms
        if first_ms <= min(last_ms, self.newest_stored):
            ends = encode_end_key(first_ms), encode_end_key(last_ms + 1)
            for raws, _ in scan_columns(self._backend, self._by_end, *ends):
                yield raws

    def put(self, session: SessionRow, write: WriteBatch) -> None:
        """Sets a session. One that is out of retention is refused and counted."""
        self.stream_time = max(self.stream_time, session.end_ms)
        if session.end_ms <= self.last_expired_end:
            if self._metrics is not None:
                self._metrics.count("expired-window-record-drop", 1)
            return
        self.newest_stored = self.stream_time
        self._put(session, write)

    def remove(self, key: bytes, start_ms: int, end_ms: int, write: WriteBatch) -> None:
        """Removes the session with exactly these bounds, if it is there."""
        write.delete(self._sessions, encode_key(key, start_ms, end_ms))
        write.delete(self._by_end, encode_end_key(end_ms, start_ms, key))

    def load(self, keys: list[bytes]) -> tuple[NDArray[np.int64], list[SessionRow]]:
        """All sessions of many keys.

        Returns:
            int64, ascending: for each session the index of its key; and the sessions, those of a key by end.
        """
        if self.is_empty:
            return np.empty(0, dtype=np.int64), []
        found = [self.fetch(key) for key in keys]
        index = np.repeat(np.arange(len(keys)), [len(sessions) for sessions in found])
        return index, [session for sessions in found for session in sessions]

    def store(
        self, removed: SessionBounds, changed: SessionBounds, rows: pa.Array, schema: pa.Schema, write: WriteBatch
    ) -> None:
        """Adds changed sessions to ``write``, and the removal of all that the store's clock has expired.

        Args:
            removed: Bounds that stored sessions no longer have.
            changed: Sessions within retention that are new or have another aggregate, each once.
            rows: The serialised aggregates of ``changed``.
            schema: The types of a row.
            write: The batch that also carries the task's position.
        """
        self.header.write(schema, write)
        self.expire(write)
        write.delete_columns(self._sessions, encode_keys(removed.keys, removed.start, removed.end))
        write.delete_columns(self._by_end, encode_end_keys(removed.keys, removed.start, removed.end))
        index = encode_end_keys(changed.keys, changed.start, changed.end)
        write.put_columns(self._sessions, encode_keys(changed.keys, changed.start, changed.end), rows)
        write.put_columns(self._by_end, index, empty_values(len(index)))
        self.newest_stored = self.stream_time

    def _put(self, session: SessionRow, write: WriteBatch) -> None:
        write.put(self._sessions, encode_key(session.key, session.start_ms, session.end_ms), session.row)
        write.put(self._by_end, encode_end_key(session.end_ms, session.start_ms, session.key), b"")

    def expire(self, write: WriteBatch) -> None:
        """Adds the removal of all sessions that the store's clock has expired to ``write``."""
        if self.last_expired_end < 0:
            return
        first, end = encode_end_key(0), encode_end_key(self.last_expired_end + 1)
        expired = [raws for raws, _ in scan_columns(self._backend, self._by_end, first, end)]
        for raws in expired:
            write.delete_columns(self._sessions, encode_keys(*decode_end_keys(raws, self._name)))
        if expired:
            write.delete_range(self._by_end, first, end)
