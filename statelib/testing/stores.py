"""The stores of a topology in a test, to be read: as custom processors see theirs, and as Arrow tables.

Nothing is kept here: each question replays what has been piped in, and looks at the newest commit.
"""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, overload

import pyarrow as pa

from statelib.calls import KafkasNames
from statelib.columns.time_columns import python_values
from statelib.columns.windowed import Windowed
from statelib.operators.tables.value_and_timestamp import ValueAndTimestamp
from statelib.operators.versioned.store import VersionedRecord
from statelib.records.batch import NO_TIMESTAMP
from statelib.serdes import serde_for
from statelib.state.epoch_time import Time, epoch_ms
from statelib.state.values_with_headers import shown, shown_aggregation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_END_OF_TIME = (1 << 63) - 1


class ReadsStore(Protocol):
    """Reads a view of the store, as `statelib.snapshots.StoreSnapshot.read` does."""

    def __call__(self, view: str, *, where: Mapping[str, Any] | None, as_of: Time | None) -> pa.Table:
        """The rows."""


class _Row(NamedTuple):
    key: Any
    value: Any
    timestamp: int
    order: bytes
    """The key's bytes: Kafka's stores have keys in their order."""
    start: int
    end: int


class ReadOnlyStore(KafkasNames):
    """A store of any kind, as rows.

    Args:
        name: The store's name.
        kind: See `StoreSnapshot`.
        read: Reads it.
    """

    def __init__(self, name: str, kind: str, read: ReadsStore) -> None:
        self.name = name
        self.kind = kind
        self._read = read

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def to_arrow(self, view: str = "latest") -> pa.Table:
        """All rows; `StoreSnapshot` says which views and columns stores have."""
        return self._read(view, where=None, as_of=None)

    def _rows(self, view: str = "latest", *, key: Any = None, as_of: Time | None = None) -> list[_Row]:
        """Rows in the order of their keys' bytes: of one key, or of all."""
        table = self._read(view, where=None if key is None else {"key": key}, as_of=as_of)
        if not table.num_rows:
            return []
        raw = serde_for(table["key"].type).serialize(table["key"].combine_chunks()).to_pylist()
        named = set(table.column_names)
        from_ms, to_ms = ("valid_from", "valid_to") if view == "history" else ("window_start", "window_end")
        times = [
            _times(table[name]) if name in named else [NO_TIMESTAMP] * len(raw)
            for name in ("timestamp", from_ms, to_ms)
        ]
        keys, values = (python_values(table[name]) for name in ("key", "value"))
        rows = starmap(_Row, zip(keys, values, times[0], raw, times[1], times[2], strict=True))
        return sorted(rows, key=lambda row: row.order)

    def _between(self, from_key: Any, to_key: Any, rows: list[_Row]) -> list[_Row]:
        """Those with a key in a range, both ends included; None: no bound."""
        if not rows:
            return []
        type_ = self.to_arrow().schema.field("key").type
        first, last = (None if key is None else _key_bytes(key, type_) for key in (from_key, to_key))
        return [row for row in rows if (first is None or row.order >= first) and (last is None or row.order <= last)]


class ReadOnlyKeyValueStore(ReadOnlyStore):
    """The last value of each key (Kafka's ``ReadOnlyKeyValueStore``); keys are in the order of their bytes."""

    def get(self, key: Any) -> Any:
        """The value of ``key``, or None."""
        return next((self._shown(row) for row in self._rows(key=key)), None)

    def range(self, from_key: Any = None, to_key: Any = None) -> Iterator[tuple[Any, Any]]:
        """Keys from ``from_key`` to ``to_key``, both inclusive, with their values; None: no bound."""
        return self._all_shown(self._between(from_key, to_key, self._rows()))

    def reverse_range(self, from_key: Any = None, to_key: Any = None) -> Iterator[tuple[Any, Any]]:
        """As `range`, last key first."""
        return self._all_shown(self._between(from_key, to_key, self._rows())[::-1])

    def prefix_scan(self, prefix: Any) -> Iterator[tuple[Any, Any]]:
        """Keys whose bytes begin with ``prefix`` (bytes, or what the key serde makes of it), with their values."""
        rows = self._rows()
        if not rows:
            return iter(())
        begin = prefix if isinstance(prefix, bytes) else _key_bytes(prefix, self.to_arrow().schema.field("key").type)
        return self._all_shown([row for row in rows if row.order.startswith(begin)])

    def all(self) -> Iterator[tuple[Any, Any]]:
        """All keys with their values."""
        return self.range()

    def reverse_all(self) -> Iterator[tuple[Any, Any]]:
        """As `all`, last key first."""
        return self.reverse_range()

    def approximate_num_entries(self) -> int:
        """How many keys there are."""
        return len(self._rows())

    def _shown(self, row: _Row) -> Any:
        return row.value

    def _all_shown(self, rows: list[_Row]) -> Iterator[tuple[Any, Any]]:
        return ((row.key, self._shown(row)) for row in rows)


class ReadOnlyTimestampedKeyValueStore(ReadOnlyKeyValueStore):
    """As `ReadOnlyKeyValueStore`, with `ValueAndTimestamp` (Kafka's ``TimestampedKeyValueStore``)."""

    def _shown(self, row: _Row) -> Any:
        return ValueAndTimestamp(row.value, row.timestamp)


class ReadOnlyTimestampedKeyValueStoreWithHeaders(ReadOnlyKeyValueStore):
    """As `ReadOnlyKeyValueStore`, with `ValueTimestampHeaders` (Kafka's ``TimestampedKeyValueStoreWithHeaders``)."""

    def _shown(self, row: _Row) -> Any:
        return shown(row.value, row.timestamp)


class ReadOnlyVersionedKeyValueStore(ReadOnlyStore):
    """Several versions of each key (KIP-889, Kafka's ``VersionedKeyValueStore``)."""

    def get(self, key: Any, as_of: Time | None = None) -> VersionedRecord | None:
        """The latest value, or the one that was valid at ``as_of``; None if there is none."""
        rows = self._rows(key=key, as_of=as_of)
        return next((VersionedRecord(row.value, row.timestamp) for row in rows), None)

    def history(self, key: Any) -> list[VersionedRecord]:
        """All values of ``key``, the latest first, and when they ended (KIP-968); tombstones are left out."""
        rows = sorted(self._rows("history", key=key), key=lambda row: -row.start)
        return [
            VersionedRecord(row.value, row.start, None if row.end == NO_TIMESTAMP else row.end)
            for row in rows
            if row.value is not None
        ]

    def all(self, as_of: Time | None = None) -> Iterator[tuple[Any, VersionedRecord]]:
        """All keys that have a value, with it, in the order of the keys' bytes."""
        return ((row.key, VersionedRecord(row.value, row.timestamp)) for row in self._rows(as_of=as_of))


class ReadOnlyWindowStore(ReadOnlyStore):
    """The value of each key and window (Kafka's ``ReadOnlyWindowStore``).

    Times are those at which windows start, both ends included. Windows of several keys are ordered by start, then by
    the key's bytes.
    """

    @overload
    def fetch(self, key: Any, time_from: Time) -> Any: ...
    @overload
    def fetch(self, key: Any, time_from: Time, time_to: Time) -> Iterator[tuple[int, Any]]: ...
    def fetch(self, key: Any, time_from: Time, time_to: Time | None = None) -> Any:
        """The value of the window that starts at ``time_from``, or None; with ``time_to`` (start, value) of several."""
        rows = _in_time(self._rows(key=key), time_from, time_from if time_to is None else time_to)
        if time_to is None:
            return next((self._shown(row) for row in rows), None)
        return ((row.start, self._shown(row)) for row in rows)

    def backward_fetch(self, key: Any, time_from: Time, time_to: Time) -> Iterator[tuple[int, Any]]:
        """As `fetch` of several, the latest first."""
        return iter([*self.fetch(key, time_from, time_to)][::-1])

    def fetch_range(self, key_from: Any, key_to: Any, time_from: Time, time_to: Time) -> Iterator[tuple[Windowed, Any]]:
        """The windows of a range of keys (Kafka's ``fetch(keyFrom, keyTo, timeFrom, timeTo)``); None: no bound."""
        rows = _in_time(self._between(key_from, key_to, self._rows()), time_from, time_to)
        return ((Windowed(row.key, row.start, row.end), self._shown(row)) for row in rows)

    def backward_fetch_range(
        self, key_from: Any, key_to: Any, time_from: Time, time_to: Time
    ) -> Iterator[tuple[Windowed, Any]]:
        """As `fetch_range`, the latest first."""
        return iter([*self.fetch_range(key_from, key_to, time_from, time_to)][::-1])

    def fetch_all(self, time_from: Time, time_to: Time) -> Iterator[tuple[Windowed, Any]]:
        """The windows of all keys that start in the range."""
        return self.fetch_range(None, None, time_from, time_to)

    def backward_fetch_all(self, time_from: Time, time_to: Time) -> Iterator[tuple[Windowed, Any]]:
        """As `fetch_all`, the latest first."""
        return self.backward_fetch_range(None, None, time_from, time_to)

    def all(self) -> Iterator[tuple[Windowed, Any]]:
        """All windows."""
        return self.fetch_all(0, _END_OF_TIME)

    def backward_all(self) -> Iterator[tuple[Windowed, Any]]:
        """All windows, the latest first."""
        return self.backward_fetch_all(0, _END_OF_TIME)

    def _shown(self, row: _Row) -> Any:
        return row.value


class ReadOnlyTimestampedWindowStore(ReadOnlyWindowStore):
    """As `ReadOnlyWindowStore`, with `ValueAndTimestamp` (Kafka's ``TimestampedWindowStore``)."""

    def _shown(self, row: _Row) -> Any:
        return ValueAndTimestamp(row.value, row.timestamp)


class ReadOnlyTimestampedWindowStoreWithHeaders(ReadOnlyWindowStore):
    """As `ReadOnlyWindowStore`, with `ValueTimestampHeaders` (Kafka's ``TimestampedWindowStoreWithHeaders``)."""

    def _shown(self, row: _Row) -> Any:
        return shown(row.value, row.timestamp)


class ReadOnlySessionStore(ReadOnlyStore):
    """The aggregate of each key and session (Kafka's ``ReadOnlySessionStore``).

    Sessions are ordered by end, then start, then the key's bytes; both ends of a session are inclusive.
    """

    def fetch(self, key: Any) -> Iterator[tuple[Windowed, Any]]:
        """All sessions of ``key``."""
        return self.find_sessions(key, 0, _END_OF_TIME)

    def backward_fetch(self, key: Any) -> Iterator[tuple[Windowed, Any]]:
        """All sessions of ``key``, the latest first."""
        return self.backward_find_sessions(key, 0, _END_OF_TIME)

    def fetch_session(self, key: Any, session_start: Time, session_end: Time) -> Any:
        """The aggregate of the session with exactly these bounds, or None."""
        bounds = (epoch_ms(session_start), epoch_ms(session_end))
        return next((self._shown(row) for row in self._rows(key=key) if (row.start, row.end) == bounds), None)

    def find_sessions(
        self, key: Any, earliest_session_end: Time, latest_session_start: Time
    ) -> Iterator[tuple[Windowed, Any]]:
        """The sessions of ``key`` that reach into the time from the one to the other, both included."""
        return self._sessions(_reaching(self._rows(key=key), earliest_session_end, latest_session_start))

    def backward_find_sessions(
        self, key: Any, earliest_session_end: Time, latest_session_start: Time
    ) -> Iterator[tuple[Windowed, Any]]:
        """As `find_sessions`, the latest first."""
        return iter([*self.find_sessions(key, earliest_session_end, latest_session_start)][::-1])

    def find_sessions_of_range(
        self, key_from: Any, key_to: Any, earliest_session_end: Time, latest_session_start: Time
    ) -> Iterator[tuple[Windowed, Any]]:
        """As `find_sessions`, for a range of keys (Kafka's ``findSessions(keyFrom, keyTo, ...)``); None: no bound."""
        rows = self._between(key_from, key_to, self._rows())
        return self._sessions(_reaching(rows, earliest_session_end, latest_session_start))

    def backward_find_sessions_of_range(
        self, key_from: Any, key_to: Any, earliest_session_end: Time, latest_session_start: Time
    ) -> Iterator[tuple[Windowed, Any]]:
        """As `find_sessions_of_range`, the latest first."""
        return iter([*self.find_sessions_of_range(key_from, key_to, earliest_session_end, latest_session_start)][::-1])

    def find_sessions_by_end(
        self, earliest_session_end: Time, latest_session_end: Time
    ) -> Iterator[tuple[Windowed, Any]]:
        """The sessions of all keys that end in the time from the one to the other, both included (KIP-825)."""
        first, last = epoch_ms(earliest_session_end), epoch_ms(latest_session_end)
        return self._sessions([row for row in self._rows() if first <= row.end <= last])

    def fetch_range(self, key_from: Any, key_to: Any) -> Iterator[tuple[Windowed, Any]]:
        """All sessions of a range of keys (Kafka's ``fetch(keyFrom, keyTo)``); None: no bound."""
        return self.find_sessions_of_range(key_from, key_to, 0, _END_OF_TIME)

    def backward_fetch_range(self, key_from: Any, key_to: Any) -> Iterator[tuple[Windowed, Any]]:
        """As `fetch_range`, the latest first."""
        return self.backward_find_sessions_of_range(key_from, key_to, 0, _END_OF_TIME)

    def all(self) -> Iterator[tuple[Windowed, Any]]:
        """The sessions of all keys."""
        return self._sessions(self._rows())

    def _shown(self, row: _Row) -> Any:
        return row.value

    def _sessions(self, rows: list[_Row]) -> Iterator[tuple[Windowed, Any]]:
        in_order = sorted(rows, key=lambda row: (row.end, row.start, row.order))
        return ((Windowed(row.key, row.start, row.end), self._shown(row)) for row in in_order)


class ReadOnlySessionStoreWithHeaders(ReadOnlySessionStore):
    """As `ReadOnlySessionStore`, with `AggregationWithHeaders` (Kafka's ``SessionStoreWithHeaders``)."""

    def _shown(self, row: _Row) -> Any:
        return shown_aggregation(row.value)


KEY_VALUE, WINDOW, SESSION, VERSIONED = "key-value", "window", "session", "versioned"

OF_KIND: Mapping[str, type[ReadOnlyStore]] = {
    KEY_VALUE: ReadOnlyTimestampedKeyValueStore,
    WINDOW: ReadOnlyTimestampedWindowStore,
    SESSION: ReadOnlySessionStore,
    VERSIONED: ReadOnlyVersionedKeyValueStore,
}
"""What shows most of a store, by its kind; any other kind is a `ReadOnlyStore`."""


def _in_time(rows: list[_Row], time_from: Time, time_to: Time) -> list[_Row]:
    first, last = epoch_ms(time_from), epoch_ms(time_to)
    return sorted((row for row in rows if first <= row.start <= last), key=lambda row: (row.start, row.order))


def _reaching(rows: list[_Row], earliest_end: Time, latest_start: Time) -> list[_Row]:
    first, last = epoch_ms(earliest_end), epoch_ms(latest_start)
    return [row for row in rows if row.end >= first and row.start <= last]


def _times(column: pa.ChunkedArray) -> list[int]:
    """In ms; `NO_TIMESTAMP` where there is none."""
    return list(column.cast(pa.int64()).fill_null(NO_TIMESTAMP).to_pylist())


def _key_bytes(key: Any, type_: pa.DataType) -> bytes:
    raw: bytes = serde_for(type_).serialize(pa.array([key], type_))[0].as_py()
    return raw
