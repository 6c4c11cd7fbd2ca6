"""Where the rows of a window store lie: by key, beside an index by start, or in order of the start (formats 1 and 2).

See `statelib.operators.windows.codec` for the bytes. Windows on a grid, as those of a time-windowed aggregation, have
few different starts: their rows lie in order of the start, so that what expires is one range, and a key's windows are
found by going from start to start. Sliding windows and those of custom processors may start at any time: their rows lie
by key.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from statelib.operators.windows.codec import (
    SUFFIX_BYTES,
    decode_key,
    decode_keys,
    decode_start_key,
    decode_start_keys,
    encode_key,
    encode_keys,
    encode_start_key,
    encode_start_keys,
)
from statelib.stores.backend import Rows
from statelib.stores.byte_columns import empty_values, raw_column
from statelib.stores.column_scan import look_up, scan_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from statelib.stores.backend import Backend, ColumnOf, WriteBatch
    from statelib.stores.byte_columns import Column

Entry = tuple[bytes, int, bytes]
"""Key, start in ms, and value as it is stored."""

Columns: TypeAlias = "tuple[Column, NDArray[np.int64], Column]"
"""The same of many windows."""

_READ_AT_ONCE = 1 << 14


class WindowLayout(Protocol):
    """Reads and writes the rows of one store; values are as they are stored."""

    def get(self, key: bytes, start_ms: int) -> bytes | None:
        """The value of a window, or None."""

    def get_many(self, keys: Column, start: NDArray[np.int64]) -> list[bytes | None]:
        """The values of many windows."""

    def of_key(self, key: bytes, from_ms: int, to_ms: int) -> Iterator[Entry]:
        """The windows of ``key`` that start from ``from_ms`` to ``to_ms``, both included, in order of time."""

    def all(self) -> Iterator[Entry]:
        """All windows, in the order in which they lie."""

    def in_time(self, from_ms: int, end_ms: int, *, reverse: bool) -> Iterator[Entry]:
        """Windows of all keys that start from ``from_ms`` to before ``end_ms``, by start and key bytes."""

    def columns(self, key: bytes | None, from_ms: int, end_ms: int) -> Iterator[Columns]:
        """Windows in the order in which they lie, some at a time.

        Where the layout allows it, only those of ``key`` that start from ``from_ms`` to before ``end_ms``; there may be
        others among them.
        """

    def starting(self, from_ms: int, end_ms: int) -> Iterator[Columns]:
        """Windows that start from ``from_ms`` to before ``end_ms``, by start and key bytes, some at a time."""

    def put(self, key: bytes, start_ms: int, value: bytes, write: WriteBatch) -> None:
        """Adds a window to ``write``."""

    def delete(self, key: bytes, start_ms: int, write: WriteBatch) -> None:
        """Adds the removal of a window to ``write``."""

    def put_rows(
        self,
        keys: ColumnOf,
        start: NDArray[np.int64],
        values: ColumnOf,
        put: NDArray[np.int64],
        new: NDArray[np.int64],
        write: WriteBatch,
    ) -> None:
        """Adds many windows to ``write``.

        Args:
            keys: Gives the keys of windows, by their indices.
            start: int64, ms, of all windows.
            values: Gives the values of windows, by their indices.
            put: int64, indices of those that are added.
            new: int64, indices of those of them that the store does not have.
            write: The batch.
        """

    def delete_rows(self, keys: ColumnOf, start: NDArray[np.int64], gone: NDArray[np.int64], write: WriteBatch) -> None:
        """Adds the removal of many windows, those of the indices ``gone``, to ``write``."""

    def delete_until(self, start_ms: int, write: WriteBatch) -> None:
        """Adds the removal of all windows that start at ``start_ms`` or before to ``write``."""


class RowsByKey:
    """Format 1.

    Args:
        backend: Where the families are.
        windows: The family of the rows.
        by_start: The family of the index.
        name: Of the store, for errors.
    """

    def __init__(self, backend: Backend, windows: str, by_start: str, name: str) -> None:
        self._backend = backend
        self._windows = windows
        self._by_start = by_start
        self._index = RowsByStart(backend, by_start, name)  # of rows without values
        self._name = name

    def get(self, key: bytes, start_ms: int) -> bytes | None:
        """See `WindowLayout`."""
        return self._backend.get(self._windows, encode_key(key, start_ms))

    def get_many(self, keys: Column, start: NDArray[np.int64]) -> list[bytes | None]:
        """See `WindowLayout`."""
        return look_up(self._backend, self._windows, encode_keys(keys, start))

    def of_key(self, key: bytes, from_ms: int, to_ms: int) -> Iterator[Entry]:
        """See `WindowLayout`."""
        entries = self._backend.scan(self._windows, encode_key(key, from_ms), encode_key(key, to_ms) + b"\x00")
        for raw, value in entries:
            if len(raw) == len(key) + SUFFIX_BYTES:  # else a window of a key that begins with this one
                yield *decode_key(raw, self._name), value

    def all(self) -> Iterator[Entry]:
        """See `WindowLayout`."""
        for raw, value in self._backend.scan(self._windows):
            yield *decode_key(raw, self._name), value

    def columns(self, key: bytes | None, from_ms: int, end_ms: int) -> Iterator[Columns]:
        """See `WindowLayout`."""
        first, end = (b"", None) if key is None else (encode_key(key, from_ms), encode_key(key, end_ms))
        for raw_keys, values in scan_columns(self._backend, self._windows, first, end):
            yield *decode_keys(raw_keys, self._name), values

    def starting(self, from_ms: int, end_ms: int) -> Iterator[Columns]:
        """See `WindowLayout`."""
        for keys, start, _ in self._index.starting(from_ms, end_ms):
            yield keys, start, raw_column(self.get_many(keys, start))

    def in_time(self, from_ms: int, end_ms: int, *, reverse: bool) -> Iterator[Entry]:
        """See `WindowLayout`."""
        for key, start_ms, _ in self._index.in_time(from_ms, end_ms, reverse=reverse):
            value = self.get(key, start_ms)
            if value is not None:
                yield key, start_ms, value

    def put(self, key: bytes, start_ms: int, value: bytes, write: WriteBatch) -> None:
        """See `WindowLayout`."""
        write.put(self._windows, encode_key(key, start_ms), value)
        self._index.put(key, start_ms, b"", write)

    def delete(self, key: bytes, start_ms: int, write: WriteBatch) -> None:
        """See `WindowLayout`."""
        write.delete(self._windows, encode_key(key, start_ms))
        self._index.delete(key, start_ms, write)

    def put_rows(
        self,
        keys: ColumnOf,
        start: NDArray[np.int64],
        values: ColumnOf,
        put: NDArray[np.int64],
        new: NDArray[np.int64],
        write: WriteBatch,
    ) -> None:
        """See `WindowLayout`."""
        write.put_rows(self._windows, _rows(encode_keys, keys, start, put, values))
        self._index.put_rows(keys, start, lambda rows: empty_values(len(rows)), new, new, write)

    def delete_rows(self, keys: ColumnOf, start: NDArray[np.int64], gone: NDArray[np.int64], write: WriteBatch) -> None:
        """See `WindowLayout`."""
        write.put_rows(self._windows, _rows(encode_keys, keys, start, gone))
        self._index.delete_rows(keys, start, gone, write)

    def delete_until(self, start_ms: int, write: WriteBatch) -> None:
        """See `WindowLayout`."""
        first, end = encode_start_key(0), encode_start_key(start_ms + 1)
        for expired in _some_at_once(raw for raw, _ in self._backend.scan(self._by_start, first, end)):
            write.delete_columns(
                self._windows, encode_keys(*decode_start_keys(pa.array(expired, pa.binary()), self._name))
            )
        write.delete_range(self._by_start, first, end)


class RowsByStart:
    """Format 2.

    Args:
        backend: Where the families are.
        by_start: The family of the rows.
        name: Of the store, for errors.
    """

    def __init__(self, backend: Backend, by_start: str, name: str) -> None:
        self._backend = backend
        self._by_start = by_start
        self._name = name

    def get(self, key: bytes, start_ms: int) -> bytes | None:
        """See `WindowLayout`."""
        return self._backend.get(self._by_start, encode_start_key(start_ms, key))

    def get_many(self, keys: Column, start: NDArray[np.int64]) -> list[bytes | None]:
        """See `WindowLayout`."""
        return look_up(self._backend, self._by_start, encode_start_keys(keys, start))

    def of_key(self, key: bytes, from_ms: int, to_ms: int) -> Iterator[Entry]:
        """See `WindowLayout`; looks once or twice for each start that any key has."""
        end = encode_start_key(to_ms + 1)
        at_ms = from_ms
        while at_ms <= to_ms:
            raw, value = next(self._backend.scan(self._by_start, encode_start_key(at_ms, key), end), (None, b""))
            if raw is None:
                return
            start_ms, found = decode_start_key(raw, self._name)
            if (start_ms, found) == (at_ms, key):
                yield key, start_ms, value
            at_ms = start_ms + (start_ms == at_ms)

    def all(self) -> Iterator[Entry]:
        """See `WindowLayout`."""
        return self._entries(encode_start_key(0), None, reverse=False)

    def columns(self, key: bytes | None, from_ms: int, end_ms: int) -> Iterator[Columns]:
        """See `WindowLayout`."""
        if key is not None:
            found = list(self.of_key(key, from_ms, end_ms - 1))
            yield (
                pa.array([key] * len(found), pa.binary()),
                np.array([start_ms for _, start_ms, _ in found], np.int64),
                pa.array([value for _, _, value in found], pa.binary()),
            )
            return
        yield from self.starting(from_ms, end_ms)

    def starting(self, from_ms: int, end_ms: int) -> Iterator[Columns]:
        """See `WindowLayout`."""
        first, end = encode_start_key(from_ms), encode_start_key(end_ms)
        for raw_keys, values in scan_columns(self._backend, self._by_start, first, end):
            yield *decode_start_keys(raw_keys, self._name), values

    def in_time(self, from_ms: int, end_ms: int, *, reverse: bool) -> Iterator[Entry]:
        """See `WindowLayout`."""
        return self._entries(encode_start_key(from_ms), encode_start_key(end_ms), reverse=reverse)

    def _entries(self, first: bytes, end: bytes | None, *, reverse: bool) -> Iterator[Entry]:
        for raw, value in self._backend.scan(self._by_start, first, end, reverse=reverse):
            start_ms, key = decode_start_key(raw, self._name)
            yield key, start_ms, value

    def put(self, key: bytes, start_ms: int, value: bytes, write: WriteBatch) -> None:
        """See `WindowLayout`."""
        write.put(self._by_start, encode_start_key(start_ms, key), value)

    def delete(self, key: bytes, start_ms: int, write: WriteBatch) -> None:
        """See `WindowLayout`."""
        write.delete(self._by_start, encode_start_key(start_ms, key))

    def put_rows(
        self,
        keys: ColumnOf,
        start: NDArray[np.int64],
        values: ColumnOf,
        put: NDArray[np.int64],
        new: NDArray[np.int64],
        write: WriteBatch,
    ) -> None:
        """See `WindowLayout`."""
        del new
        write.put_rows(self._by_start, _rows(encode_start_keys, keys, start, put, values))

    def delete_rows(self, keys: ColumnOf, start: NDArray[np.int64], gone: NDArray[np.int64], write: WriteBatch) -> None:
        """See `WindowLayout`."""
        write.put_rows(self._by_start, _rows(encode_start_keys, keys, start, gone))

    def delete_until(self, start_ms: int, write: WriteBatch) -> None:
        """See `WindowLayout`."""
        write.expire_range(self._by_start, encode_start_key(0), encode_start_key(start_ms + 1))


def _rows(
    encode: Callable[[Column, NDArray[np.int64]], Column],
    keys: ColumnOf,
    start: NDArray[np.int64],
    chosen: NDArray[np.int64],
    values: ColumnOf | None = None,
) -> Rows:
    """The windows of the indices ``chosen`` as they lie; without ``values``: as they are deleted."""

    def keys_of(rows: NDArray[np.int64]) -> Column:
        return encode(keys(chosen[rows]), start[chosen[rows]])

    return Rows(len(chosen), keys_of, values and (lambda rows: values(chosen[rows])))


def _some_at_once(items: Iterable[bytes]) -> Iterator[list[bytes]]:
    remaining = iter(items)
    while some := list(islice(remaining, _READ_AT_ONCE)):
        yield some
