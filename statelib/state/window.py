"""Window stores: plain, and with the timestamp of each value (Kafka's ``WindowStore``, ``TimestampedWindowStore``).

The store has its own clock: the largest window start put. A window is retained while ``start > clock - retention``.
Later it is refused by `put`, not visible, and removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, overload

import pyarrow as pa

from statelib.columns.windowed import Windowed
from statelib.errors.kinds import InputError
from statelib.operators.tables.value_and_timestamp import ValueAndTimestamp
from statelib.operators.windows import store as engine
from statelib.operators.windows.codec import encode_key
from statelib.operators.windows.store_clock import StoreClock
from statelib.records.batch import NO_TIMESTAMP
from statelib.serdes import serde_for
from statelib.serdes.single_values import as_struct, from_bytes, to_bytes
from statelib.state.epoch_time import epoch_ms
from statelib.state.expiring import ExpiringStore
from statelib.state.timestamped_values import with_timestamp
from statelib.state.values_with_headers import kept, shown
from statelib.stores.backend import WriteBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from statelib.operators.windows.store import WindowRow
    from statelib.serdes import Serde
    from statelib.state.epoch_time import Time
    from statelib.state.suppliers import WindowBytesStoreSupplier
    from statelib.stores.spec import StoreKind

_END_OF_TIME = (1 << 63) - 2


class WindowStore(ExpiringStore[engine.WindowStore]):
    """The last value put for each key and window (Kafka's ``WindowStore``); see `WindowStoreWithDuplicates`.

    Times are milliseconds, or a `datetime` with a time zone. Bounds of times and keys are inclusive. Windows of several
    keys are ordered by start, then by the bytes of the key. Every method raises `ConfigurationError` while the store is
    not open, and `InputError` for a null key or one of another type.

    Made by ``Stores.window_store_builder(...).build()``.
    """

    store_kind: ClassVar[StoreKind] = "window"
    _engine_class: ClassVar[type[engine.WindowStore]] = engine.WindowStore

    @staticmethod
    def family_names(name: str) -> tuple[str, ...]:
        """The backend families of the store called ``name``."""
        return *engine.WindowStore.families(name), StoreClock.family(name)

    def __init__(self, supplier: WindowBytesStoreSupplier, key_serde: Serde, value_serde: Serde) -> None:
        super().__init__(supplier, key_serde, value_serde)
        self.window_size_ms = supplier.window_size_ms

    def put(self, key: Any, value: Any, window_start: Time) -> None:
        """Sets the value of a key and window; None removes it. A window out of retention is refused and counted.

        Raises:
            InputError: The key is null, a type is wrong, or the start is negative.
        """
        start_ms = epoch_ms(window_start)
        if start_ms < 0:
            raise InputError(f"window start {start_ms} is negative", store=self.name)
        stored, timestamp = self._kept(value)
        raw_key, row = self._raw_key(key), to_bytes(stored, self._value_serde)
        self.put_bytes(raw_key, row, start_ms, timestamp)
        self._logged(encode_key(raw_key, start_ms), row, timestamp)

    def put_bytes(self, raw_key: bytes, row: bytes | None, start_ms: int, timestamp: int) -> None:
        """As `put`, of serialised keys and values, without a log; ``timestamp``: the value's, ms, or `NO_TIMESTAMP`."""
        store, write = self._engine, WriteBatch()
        store.header.write(self._value_schema, write)
        store.put(raw_key, start_ms, row, timestamp, write)
        self._carry_out(write, start_ms)

    @overload
    def fetch(self, key: Any, time_from: Time) -> Any: ...
    @overload
    def fetch(self, key: Any, time_from: Time, time_to: Time) -> Iterator[tuple[int, Any]]: ...
    def fetch(self, key: Any, time_from: Time, time_to: Time | None = None) -> Any:
        """The value of the window that starts at ``time_from``, or None.

        With ``time_to``: (start, value) of all windows that start in the range, earliest first.
        """
        if time_to is not None:
            return iter(self._of_key(key, time_from, time_to))
        found = self._engine.fetch(self._raw_key(key), epoch_ms(time_from))
        return None if found is None else self._shown(found)

    def backward_fetch(self, key: Any, time_from: Time, time_to: Time) -> Iterator[tuple[int, Any]]:
        """As `fetch` of a range, latest first."""
        return iter(self._of_key(key, time_from, time_to)[::-1])

    def fetch_range(self, key_from: Any, key_to: Any, time_from: Time, time_to: Time) -> Iterator[tuple[Windowed, Any]]:
        """The windows of a range of keys (Kafka's ``fetch(keyFrom, keyTo, timeFrom, timeTo)``); None: no bound."""
        return self._of_keys(key_from, key_to, time_from, time_to, reverse=False)

    def backward_fetch_range(
        self, key_from: Any, key_to: Any, time_from: Time, time_to: Time
    ) -> Iterator[tuple[Windowed, Any]]:
        """As `fetch_range`, the latest first."""
        return self._of_keys(key_from, key_to, time_from, time_to, reverse=True)

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

    def _of_key(self, key: Any, time_from: Time, time_to: Time) -> list[tuple[int, Any]]:
        last_ms = min(epoch_ms(time_to), _END_OF_TIME)
        rows = self._engine.fetch_range(self._raw_key(key), epoch_ms(time_from), last_ms)
        return [(row.start_ms, self._shown(row)) for row in rows]

    def _of_keys(
        self, key_from: Any, key_to: Any, time_from: Time, time_to: Time, *, reverse: bool
    ) -> Iterator[tuple[Windowed, Any]]:
        rows = self._engine.in_time(epoch_ms(time_from), epoch_ms(time_to), reverse=reverse)
        return self._shown_windows(self._between(rows, key_from, key_to))

    def _shown_windows(self, rows: Iterable[WindowRow]) -> Iterator[tuple[Windowed, Any]]:
        for row in rows:
            yield self._window(row), self._shown(row)

    def _window(self, row: WindowRow) -> Windowed:
        return Windowed(from_bytes(row.key, self._key_serde), row.start_ms, row.start_ms + self.window_size_ms)

    def _kept(self, value: Any) -> tuple[Any, int]:
        """(value, timestamp) as they are stored."""
        return value, NO_TIMESTAMP

    def _shown(self, row: WindowRow) -> Any:
        """What a reader gets of a row."""
        return from_bytes(row.row, self._value_serde)


class WindowStoreWithDuplicates(WindowStore):
    """All values put for each key and window, in the order of the puts (Kafka's ``retainDuplicates``).

    A put adds a value; one of None changes nothing, as in Kafka. `fetch` of a single window gives the value put last.
    Each window's values are one list in the store, and as data: see `list_serde`.
    """

    def put(self, key: Any, value: Any, window_start: Time) -> None:
        """Adds a value to a key and window. A window out of retention is refused and counted.

        Raises:
            InputError: The key is null, a type is wrong, or the start is negative.
        """
        raw_key, element = self._raw_key(key), self._element(value)
        if element is not None:
            found = self._engine.fetch(raw_key, epoch_ms(window_start))
            super().put(key, [*([] if found is None else self._elements(found)), element], window_start)

    def _of_key(self, key: Any, time_from: Time, time_to: Time) -> list[tuple[int, Any]]:
        last_ms = min(epoch_ms(time_to), _END_OF_TIME)
        rows = self._engine.fetch_range(self._raw_key(key), epoch_ms(time_from), last_ms)
        return [(row.start_ms, value) for row in rows for value in self._values(row)]

    def _of_keys(
        self, key_from: Any, key_to: Any, time_from: Time, time_to: Time, *, reverse: bool
    ) -> Iterator[tuple[Windowed, Any]]:
        rows = self._engine.in_time(epoch_ms(time_from), epoch_ms(time_to), reverse=reverse)
        for row in self._between(rows, key_from, key_to):
            window = self._window(row)
            for value in self._values(row)[:: -1 if reverse else 1]:
                yield window, value

    def _shown(self, row: WindowRow) -> Any:
        return self._values(row)[-1]

    def _values(self, row: WindowRow) -> list[Any]:
        return list(map(self._shown_element, self._elements(row)))

    def _elements(self, row: WindowRow) -> list[Any]:
        elements: list[Any] = from_bytes(row.row, self._value_serde)
        return elements

    def _element(self, value: Any) -> Any:
        """What a window's list has of a value; None: nothing."""
        return value

    def _shown_element(self, element: Any) -> Any:
        """What a reader gets of it."""
        return element


def list_serde(value_serde: Serde) -> Serde:
    """The serde of the values of a window that has several."""
    return serde_for(pa.list_(value_serde.arrow_type))


def list_serde_with_timestamps(value_serde: Serde) -> Serde:
    """The same, where each value has a timestamp."""
    return serde_for(pa.list_(pa.struct([("value", value_serde.arrow_type), ("timestamp", pa.int64())])))


class TimestampedWindowStore(WindowStore):
    """As `WindowStore`, but its values are `ValueAndTimestamp` (Kafka's ``TimestampedWindowStore``).

    Made by ``Stores.timestamped_window_store_builder(...).build()``.
    """

    def _kept(self, value: Any) -> tuple[Any, int]:
        return with_timestamp(value, self.name)

    def _shown(self, row: WindowRow) -> Any:
        return ValueAndTimestamp(from_bytes(row.row, self._value_serde), row.timestamp_ms)


class TimestampedWindowStoreWithHeaders(WindowStore):
    """As `WindowStore`, but its values are `ValueTimestampHeaders` (KIP-1271).

    Made by ``Stores.timestamped_window_store_with_headers_builder(...).build()``.
    """

    def _kept(self, value: Any) -> tuple[Any, int]:
        return kept(value, self.name)

    def _shown(self, row: WindowRow) -> Any:
        return shown(from_bytes(row.row, self._value_serde), row.timestamp_ms)


class TimestampedWindowStoreWithDuplicates(WindowStoreWithDuplicates, TimestampedWindowStore):
    """As `WindowStoreWithDuplicates`, but its values are `ValueAndTimestamp`: each has a timestamp of its own.

    Made by ``Stores.timestamped_window_store_builder(...).build()``.
    """

    def _kept(self, value: Any) -> tuple[Any, int]:
        return value, value[-1]["timestamp"]

    def _element(self, value: Any) -> Any:
        stored, timestamp = self._parts(value)
        return None if stored is None else {"value": as_struct(stored), "timestamp": timestamp}

    def _shown_element(self, element: Any) -> Any:
        return ValueAndTimestamp(element["value"], element["timestamp"])

    def _parts(self, value: Any) -> tuple[Any, int]:
        """What is stored of a value, and its timestamp in ms."""
        return with_timestamp(value, self.name)


class TimestampedWindowStoreWithHeadersAndDuplicates(
    TimestampedWindowStoreWithDuplicates, TimestampedWindowStoreWithHeaders
):
    """As `TimestampedWindowStoreWithDuplicates`, but its values are `ValueTimestampHeaders` (KIP-1271).

    Made by ``Stores.timestamped_window_store_with_headers_builder(...).build()``.
    """

    def _parts(self, value: Any) -> tuple[Any, int]:
        return kept(value, self.name)

    def _shown_element(self, element: Any) -> Any:
        return shown(element["value"], element["timestamp"])
