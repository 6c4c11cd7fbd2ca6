"""The suppression buffer's store: what suppress holds back and is not in memory, by key and in order of buffer time.

The main family answers what waits under a key, the index by time what has to leave next. Between two flushes the store
may lag behind memory, which counts where it has the key.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from statelib.batch import NO_TIMESTAMP
from statelib.errors import CorruptedDataError
from statelib.kernels.suppression_layout import NOT_STORED
from statelib.stores.byte_columns import empty_values, joined, times
from statelib.stores.header import Header
from statelib.stores.suppression_codec import (
    FORMAT_VERSION,
    TOTALS_KEY,
    BufferedRow,
    BufferedRows,
    decode,
    decode_time_key,
    decode_time_keys,
    decode_totals,
    encode_keys,
    encode_time_key,
    encode_totals,
    encode_values,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from statelib.stores.backend import Backend, WriteBatch
    from statelib.stores.byte_columns import Column

Item = TypeVar("Item")

_READ_AT_ONCE = 1 << 14


class SuppressionBufferStore:
    """See the module's docstring.

    Args:
        backend: Where the families are.
        name: Of the store; its families are ``families(name)``.
        suffix_words: How many integers follow the key's bytes in a buffer key.

    Raises:
        ConfigurationError: The store was written in another format.
        CorruptedDataError: Its header cannot be read.
    """

    def __init__(self, backend: Backend, name: str, *, suffix_words: int) -> None:
        self._backend = backend
        self._name = name
        self._rows, self._by_time = self.families(name)
        self._suffix_words = suffix_words
        self.header = Header(backend, self._by_time, FORMAT_VERSION, name)

    @staticmethod
    def families(name: str) -> tuple[str, str]:
        """The backend families of the store called ``name``: the rows, and their index by time."""
        return name, f"{name}.by-time"

    def totals(self) -> tuple[int, int]:
        """How many keys the buffer held at the last flush, in memory or not, and what they counted."""
        raw = self._backend.get(self._by_time, TOTALS_KEY)
        return (0, 0) if raw is None else decode_totals(raw, self._name)

    def newest_time(self) -> int:
        """The largest buffer time, ms; `NO_TIMESTAMP` if there is none."""
        for raw, _ in self._backend.scan(self._by_time, encode_time_key(0, b""), reverse=True):
            return decode_time_key(raw, self._name)[0]
        return NO_TIMESTAMP

    def all(self) -> Iterator[BufferedRow]:
        """All that is held, by buffer key."""
        return (row for rows in self.everything() for row in rows)

    def oldest(self) -> Iterator[BufferedRow]:
        """All that is held, in the order in which it leaves."""
        return (row for rows in self.due(-1, None) for row in rows)

    def everything(self) -> Iterator[BufferedRows]:
        """All that is held, by buffer key, some thousand at a time."""
        for some in _some_at_once(self._backend.scan(self._rows)):
            yield decode([key for key, _ in some], [value for _, value in some], self._suffix_words, self._name)

    def due(self, after_ms: int, until_ms: int | None) -> Iterator[BufferedRows]:
        """What has a buffer time above ``after_ms`` and up to ``until_ms`` (None: any), the oldest first."""
        end = None if until_ms is None else encode_time_key(until_ms + 1, b"")
        index = self._backend.scan(self._by_time, encode_time_key(after_ms + 1, b""), end)
        for some in _some_at_once(index):
            raw_keys = decode_time_keys([raw for raw, _ in some], self._name)
            raw_values = self._backend.multi_get(self._rows, raw_keys)
            if None in raw_values:
                raise CorruptedDataError("a suppression buffer's index names a key that is not there", store=self._name)
            yield decode(raw_keys, [raw for raw in raw_values if raw is not None], self._suffix_words, self._name)

    def load(self, raw_keys: Iterable[bytes]) -> Iterator[BufferedRows]:
        """What waits under these buffer keys, some at a time; those that are not there are left out."""
        for some in _some_at_once(raw_keys):
            pairs = zip(some, self._backend.multi_get(self._rows, some), strict=True)
            found = [(key, value) for key, value in pairs if value is not None]
            yield decode([key for key, _ in found], [value for _, value in found], self._suffix_words, self._name)

    def store(self, rows: BufferedRows, stored_time: NDArray[np.int64], schema: pa.Schema, write: WriteBatch) -> None:
        """Adds keys that are new or have changed to ``write``.

        Args:
            rows: After all changes.
            stored_time: int64, the buffer time under which the store has each, ms; `NOT_STORED`: it does not have it.
            schema: The types of a row.
            write: The batch.
        """
        self.header.write(schema, write)
        raw_keys = encode_keys(rows, self._suffix_words)
        write.put_columns(self._rows, raw_keys, encode_values(rows))
        indexed = np.flatnonzero(rows.time != stored_time)
        index_keys = joined(times(rows.time[indexed]), raw_keys.take(pa.array(indexed)))
        write.put_columns(self._by_time, index_keys, empty_values(len(indexed)))
        moved = indexed[stored_time[indexed] != NOT_STORED]
        write.delete_columns(self._by_time, joined(times(stored_time[moved]), raw_keys.take(pa.array(moved))))

    def remove(self, raw_keys: Column, stored_time: NDArray[np.int64], write: WriteBatch) -> None:
        """Adds the removal of keys to ``write``, given the buffer times (ms) under which they are stored."""
        write.delete_columns(self._rows, raw_keys)
        write.delete_columns(self._by_time, joined(times(stored_time), raw_keys))

    def store_totals(self, records: int, size: int, schema: pa.Schema, write: WriteBatch) -> None:
        """Adds the size of the whole buffer to ``write``."""
        self.header.write(schema, write)
        write.put(self._by_time, TOTALS_KEY, encode_totals(records, size))


def _some_at_once(items: Iterable[Item]) -> Iterator[list[Item]]:
    remaining = iter(items)
    while some := list(islice(remaining, _READ_AT_ONCE)):
        yield some
