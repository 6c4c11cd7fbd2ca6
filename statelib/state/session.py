"""The session store (Kafka's ``SessionStore``).

It has its own clock: the largest session end put. A session is retained while ``end > clock - retention``. Later it is
refused by `SessionStore.put`, not visible, and removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from statelib.columns.windowed import Windowed
from statelib.errors.kinds import InputError
from statelib.operators.sessions import store as engine
from statelib.operators.sessions.codec import encode_key
from statelib.operators.sessions.store import SessionRow
from statelib.operators.windows.store_clock import StoreClock
from statelib.serdes.single_values import from_bytes, to_bytes
from statelib.state.epoch_time import epoch_ms
from statelib.state.expiring import ExpiringStore
from statelib.state.values_with_headers import kept_aggregation, shown_aggregation
from statelib.stores.backend import WriteBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from statelib.state.epoch_time import Time
    from statelib.stores.spec import StoreKind

_END_OF_TIME = (1 << 63) - 1


class SessionStore(ExpiringStore[engine.SessionStore]):
    """The aggregate of each key and session (Kafka's ``SessionStore``).

    A session's key is a `Windowed`, both ends inclusive. Times are milliseconds, or a `datetime` with a time zone.
    Sessions are ordered by end, then start, then the bytes of the key. Every method raises `ConfigurationError` while
    the store is not open, and `InputError` for a null key or one of another type.

    Made by ``Stores.session_store_builder(...).build()``.
    """

    store_kind: ClassVar[StoreKind] = "session"
    _engine_class: ClassVar[type[engine.SessionStore]] = engine.SessionStore

    @staticmethod
    def family_names(name: str) -> tuple[str, ...]:
        """The backend families of the store called ``name``."""
        return *engine.SessionStore.families(name), StoreClock.family(name)

    def put(self, session: Windowed, aggregate: Any) -> None:
        """Sets the aggregate of a session; None removes it. A session out of retention is refused and counted.

        Raises:
            InputError: The key is null, a type is wrong, the session begins before 1970 or ends before it begins.
        """
        key, start_ms, end_ms = session
        raw_key, row = self._raw_key(key), to_bytes(self._kept(aggregate), self._value_serde)
        if not 0 <= start_ms <= end_ms:
            raise InputError(f"a session cannot be from {start_ms} to {end_ms}", store=self.name)
        self.put_bytes(raw_key, row, start_ms, end_ms)
        self._logged(encode_key(raw_key, start_ms, end_ms), row)

    def put_bytes(self, raw_key: bytes, row: bytes | None, start_ms: int, end_ms: int) -> None:
        """As `put`, of serialised keys and values, without a log."""
        store, write = self._engine, WriteBatch()
        store.header.write(self._value_schema, write)
        if row is None:
            store.stream_time = max(store.stream_time, end_ms)
            store.remove(raw_key, start_ms, end_ms, write)
        else:
            store.put(SessionRow(raw_key, start_ms, end_ms, row), write)
        self._carry_out(write, end_ms)

    def remove(self, session: Windowed) -> None:
        """Removes the session with exactly these bounds, if it exists."""
        self.put(session, None)

    def fetch_session(self, key: Any, session_start: Time, session_end: Time) -> Any:
        """The aggregate of the session with exactly these bounds, or None."""
        row = self._engine.fetch_session(self._raw_key(key), epoch_ms(session_start), epoch_ms(session_end))
        return self._seen(row)

    def fetch(self, key: Any) -> Iterator[tuple[Windowed, Any]]:
        """All sessions of ``key``."""
        return self.find_sessions(key, 0, _END_OF_TIME)

    def backward_fetch(self, key: Any) -> Iterator[tuple[Windowed, Any]]:
        """All sessions of ``key``, the latest first."""
        return self.backward_find_sessions(key, 0, _END_OF_TIME)

    def fetch_range(self, key_from: Any, key_to: Any) -> Iterator[tuple[Windowed, Any]]:
        """All sessions of a range of keys (Kafka's ``fetch(keyFrom, keyTo)``); None: no bound."""
        return self.find_sessions_of_range(key_from, key_to, 0, _END_OF_TIME)

    def backward_fetch_range(self, key_from: Any, key_to: Any) -> Iterator[tuple[Windowed, Any]]:
        """As `fetch_range`, the latest first."""
        return self.backward_find_sessions_of_range(key_from, key_to, 0, _END_OF_TIME)

    def find_sessions(
        self, key: Any, earliest_session_end: Time, latest_session_start: Time
    ) -> Iterator[tuple[Windowed, Any]]:
        """The sessions of ``key`` that reach into the time from the one to the other, both included."""
        return iter(self._of_key(key, earliest_session_end, latest_session_start))

    def backward_find_sessions(
        self, key: Any, earliest_session_end: Time, latest_session_start: Time
    ) -> Iterator[tuple[Windowed, Any]]:
        """As `find_sessions`, the latest first."""
        return iter(self._of_key(key, earliest_session_end, latest_session_start)[::-1])

    def find_sessions_of_range(
        self, key_from: Any, key_to: Any, earliest_session_end: Time, latest_session_start: Time
    ) -> Iterator[tuple[Windowed, Any]]:
        """As `find_sessions`, for a range of keys (Kafka's ``findSessions(keyFrom, keyTo, ...)``)."""
        return self._of_keys(key_from, key_to, earliest_session_end, latest_session_start, reverse=False)

    def backward_find_sessions_of_range(
        self, key_from: Any, key_to: Any, earliest_session_end: Time, latest_session_start: Time
    ) -> Iterator[tuple[Windowed, Any]]:
        """As `find_sessions_of_range`, the latest first."""
        return self._of_keys(key_from, key_to, earliest_session_end, latest_session_start, reverse=True)

    def find_sessions_by_end(
        self, earliest_session_end: Time, latest_session_end: Time
    ) -> Iterator[tuple[Windowed, Any]]:
        """The sessions of all keys that end in the time from the one to the other, both included.

        Kafka's ``findSessions(earliestSessionEndTime, latestSessionEndTime)`` (KIP-825).
        """
        last_ms = epoch_ms(latest_session_end)
        rows = self._engine.in_time(epoch_ms(earliest_session_end), last_ms, reverse=False)
        return self._shown(row for row in rows if row.end_ms <= last_ms)

    def _of_key(self, key: Any, earliest_end: Time, latest_start: Time) -> list[tuple[Windowed, Any]]:
        rows = self._engine.find_sessions(self._raw_key(key), epoch_ms(earliest_end), epoch_ms(latest_start))
        return list(self._shown(rows))

    def _of_keys(
        self, key_from: Any, key_to: Any, earliest_end: Time, latest_start: Time, *, reverse: bool
    ) -> Iterator[tuple[Windowed, Any]]:
        rows = self._engine.in_time(epoch_ms(earliest_end), epoch_ms(latest_start), reverse=reverse)
        return self._shown(self._between(rows, key_from, key_to))

    def _shown(self, rows: Iterable[SessionRow]) -> Iterator[tuple[Windowed, Any]]:
        for row in rows:
            key = from_bytes(row.key, self._key_serde)
            yield Windowed(key, row.start_ms, row.end_ms), self._seen(row.row)

    def _kept(self, aggregate: Any) -> Any:
        """An aggregate as it is stored."""
        return aggregate

    def _seen(self, row: bytes | None) -> Any:
        """What a reader gets of a row."""
        return from_bytes(row, self._value_serde)


class SessionStoreWithHeaders(SessionStore):
    """As `SessionStore`, but its aggregates are `AggregationWithHeaders` (KIP-1271).

    Made by ``Stores.session_store_with_headers_builder(...).build()``.
    """

    def _kept(self, aggregate: Any) -> Any:
        return kept_aggregation(aggregate, self.name)

    def _seen(self, row: bytes | None) -> Any:
        return shown_aggregation(from_bytes(row, self._value_serde))
