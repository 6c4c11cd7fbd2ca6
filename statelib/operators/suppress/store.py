"""The suppression buffer's store: what suppress holds back and is not in memory, by key and in order of buffer time.

It answers what waits under a key, and what has to leave next. Between two flushes the store may lag behind memory,
which counts where it has the key.

The rows lie by key, beside an index by time, or (format 3) in order of time: see `statelib.operators.suppress.codec`.
Windows may wait in the store of their aggregation, beside this one in the backend (`SuppressionBufferStore.reference`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa

from statelib.errors.kinds import CorruptedDataError
from statelib.operators.suppress.codec import (
    BY_KEY,
    BY_REFERENCE,
    BY_TIME,
    REFERENCE_KEY,
    TOTALS_KEY,
    BufferedRow,
    BufferedRows,
    Reference,
    decode,
    decode_keys,
    decode_reference,
    decode_time_key,
    decode_time_keys,
    decode_totals,
    encode_keys,
    encode_reference,
    encode_time_key,
    encode_time_keys,
    encode_totals,
    encode_values,
)
from statelib.operators.suppress.layout_kernel import NOT_STORED
from statelib.operators.suppress.waiting_windows import (
    held_windows,
    merged,
    referred_windows,
    stored_windows,
    suffix_words_of,
)
from statelib.records.batch import NO_TIMESTAMP
from statelib.stores.backend import Rows, WriteBatch
from statelib.stores.byte_columns import empty_values
from statelib.stores.column_scan import look_up
from statelib.stores.header import Header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from statelib.stores.backend import Backend, ColumnOf
    from statelib.stores.byte_columns import Column

_READ_AT_ONCE = 1 << 14


@dataclass(frozen=True, slots=True)
class BufferChanges:
    """Keys that are new or have changed. The store makes columns of them some at a time: not all are in memory twice.

    Attributes:
        time: int64, the buffer time of each, ms.
        stored_time: int64, that under which the store has each, ms; `NOT_STORED`: it does not have it.
        raw_keys: Gives the buffer keys of some, given their indices (int64).
        rows: Gives what is held of some.
    """

    time: NDArray[np.int64]
    stored_time: NDArray[np.int64]
    raw_keys: ColumnOf
    rows: Callable[[NDArray[np.int64]], BufferedRows]

    @classmethod
    def of(cls, raw_keys: Column, rows: BufferedRows) -> Self:
        """Those of columns that are there; the store has none of these keys."""
        stored_time = np.full(len(rows), NOT_STORED)
        return cls(rows.time, stored_time, lambda some: raw_keys.take(pa.array(some)), rows.take)


class SuppressionBufferStore:
    """See the module's docstring.

    Args:
        backend: Where the families are.
        name: Of the store; its families are ``families(name)``.
        suffix_words: How many integers follow the key's bytes in a buffer key; a reference tells, too.
        time_is_of_key: Whether a key can have one buffer time only, as a window has. A store that is new has its rows
            in order of time then.

    Raises:
        ConfigurationError: The store was written in another format.
        CorruptedDataError: Its header cannot be read.
    """

    def __init__(self, backend: Backend, name: str, *, suffix_words: int, time_is_of_key: bool = False) -> None:
        self._backend = backend
        self._name = name
        self._rows, self._by_time = self.families(name)
        self._suffix_words = suffix_words
        version = BY_TIME if time_is_of_key else BY_KEY
        self.header = Header(backend, self._by_time, version, name, others=(BY_KEY, BY_TIME, BY_REFERENCE))
        raw = backend.get(self._by_time, REFERENCE_KEY) if self.header.version == BY_REFERENCE else None
        self.reference = None if raw is None else decode_reference(raw, name)
        """What waits elsewhere; None: all that waits has its row here."""
        if self.reference is not None:
            self._suffix_words = suffix_words_of(self.reference)

    @staticmethod
    def families(name: str) -> tuple[str, str]:
        """The backend families of the store called ``name``: the rows, and their index by time."""
        return name, f"{name}.by-time"

    @property
    def is_by_time(self) -> bool:
        """Whether the rows lie in order of time: `remove_until` removes them, else `remove`."""
        return self.header.version != BY_KEY

    def totals(self) -> tuple[int, int]:
        """How many keys the buffer held at the last flush, in memory or not, and what they counted."""
        raw = self._backend.get(self._by_time, TOTALS_KEY)
        return (0, 0) if raw is None else decode_totals(raw, self._name)

    def newest_time(self) -> int:
        """The largest buffer time of a row, ms; `NO_TIMESTAMP` if there is none."""
        for raw, _ in self._backend.scan(self._by_time, encode_time_key(0, b""), reverse=True):
            return decode_time_key(raw, self._name)[0]
        return NO_TIMESTAMP

    def all(self) -> Iterator[BufferedRow]:
        """All that is held, in the order in which it lies."""
        return (row for rows in self.everything() for row in rows)

    def oldest(self) -> Iterator[BufferedRow]:
        """All that is held, in the order in which it leaves."""
        return (row for rows in self.due(-1, None) for row in rows)

    def everything(self, after_ms: int = -1) -> Iterator[BufferedRows]:
        """All that is held in the order in which it lies, some thousand at a time.

        Args:
            after_ms: What has a buffer time up to this, ms, has left: a store in order of time may have it yet.
        """
        if self.is_by_time:
            yield from self.due(after_ms, None)
            return
        for raw_keys, raw_values in self._backend.scan_lists(self._rows):
            yield self._decoded(raw_keys, raw_values)

    def due(self, after_ms: int, until_ms: int | None) -> Iterator[BufferedRows]:
        """What has a buffer time above ``after_ms`` and up to ``until_ms`` (None: any), the oldest first."""
        rows, reference, schema = self.rows_due(after_ms, until_ms), self.reference, self.header.schema
        if reference is None or schema is None:
            yield from rows
            return
        referred = referred_windows(self._backend, reference, schema, after_ms, until_ms)
        yield from merged(rows, referred, self._suffix_words)

    def rows_due(self, after_ms: int, until_ms: int | None) -> Iterator[BufferedRows]:
        """As `due`, without what waits elsewhere."""
        end = None if until_ms is None else encode_time_key(until_ms + 1, b"")
        for raw_keys, raw_values in self._backend.scan_lists(self._by_time, encode_time_key(after_ms + 1, b""), end):
            yield self._decoded(raw_keys, raw_values) if self.is_by_time else self._indexed(raw_keys)

    def _indexed(self, time_keys: Sequence[bytes]) -> BufferedRows:
        """The rows that an index by time names."""
        raw_keys = decode_time_keys(time_keys, self._name)
        raw_values = self._backend.multi_get(self._rows, raw_keys)
        if None in raw_values:
            raise CorruptedDataError("a suppression buffer's index names a key that is not there", store=self._name)
        return self._decoded(raw_keys, [raw for raw in raw_values if raw is not None])

    def load(self, raw_keys: Column, time: NDArray[np.int64]) -> Iterator[BufferedRows]:
        """What waits under these buffer keys, some at a time; those that are not there are left out.

        Args:
            raw_keys: Each once.
            time: int64, ms, the buffer time of each, where that is of the key.
        """
        first = 0
        for keys, values in self._looked_up(raw_keys, time):
            there = np.array([value is not None for value in values], np.bool_)
            yield self._decoded(keys.filter(pa.array(there)).to_pylist(), [raw for raw in values if raw is not None])
            asked = slice(first, first + len(keys))
            missing = raw_keys[asked].filter(pa.array(~there))
            yield from self._elsewhere(missing, time[asked][~there])
            first += len(keys)

    def _elsewhere(self, raw_keys: Column, time: NDArray[np.int64]) -> Iterator[BufferedRows]:
        """Those that wait in the store of their aggregation; arguments as of `load`."""
        reference, schema = self.reference, self.header.schema
        if reference is None or schema is None or len(raw_keys) == 0:
            return
        waits = time > reference.ended_after_ms
        keys, start = decode_keys(raw_keys.filter(pa.array(waits)), self._suffix_words)
        found = stored_windows(self._backend, reference.aggregation).at(keys, start, time[waits])
        if found is not None:
            yield held_windows(found, schema, self._suffix_words)

    def counted_bytes(self, raw_keys: Column, time: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64, what the rows under these buffer keys count, 0 where there is none; arguments as of `load`."""
        parts = [np.zeros(0, np.int64)]
        for keys, values in self._looked_up(raw_keys, time):
            there = np.array([value is not None for value in values], np.bool_)
            found = self._decoded(keys.filter(pa.array(there)).to_pylist(), [raw for raw in values if raw is not None])
            part = np.zeros(len(keys), np.int64)
            part[there] = found.counted_bytes
            parts.append(part)
        return np.concatenate(parts)

    def _looked_up(self, raw_keys: Column, time: NDArray[np.int64]) -> Iterator[tuple[Column, Sequence[bytes | None]]]:
        """Keys of the family that has the rows and, if they are there, the values; some at a time."""
        family, keys = (self._by_time, encode_time_keys(time, raw_keys)) if self.is_by_time else (self._rows, raw_keys)
        for first in range(0, len(keys), _READ_AT_ONCE):
            some = keys.slice(first, _READ_AT_ONCE)
            yield some, look_up(self._backend, family, some)

    def _decoded(self, raw_keys: Sequence[bytes], raw_values: Sequence[bytes]) -> BufferedRows:
        return decode(raw_keys, raw_values, self._suffix_words, self._name, by_time=self.is_by_time)

    def store(self, changes: BufferChanges, schema: pa.Schema, write: WriteBatch) -> None:
        """Adds keys that are new or have changed to ``write``.

        Args:
            changes: The keys.
            schema: The types of a row.
            write: The batch.
        """
        self.header.write(schema, write)
        raw_keys, time, stored_time = changes.raw_keys, changes.time, changes.stored_time

        def values(some: NDArray[np.int64]) -> Column:
            return encode_values(changes.rows(some), by_time=self.is_by_time)

        if self.is_by_time:
            write.put_rows(self._by_time, Rows(len(time), _time_keys(time, raw_keys, np.arange(len(time))), values))
            return
        write.put_rows(self._rows, Rows(len(time), raw_keys, values))
        indexed = np.flatnonzero(time != stored_time)
        index_keys = _time_keys(time, raw_keys, indexed)
        write.put_rows(self._by_time, Rows(len(indexed), index_keys, lambda some: empty_values(len(some))))
        moved = indexed[stored_time[indexed] != NOT_STORED]
        write.put_rows(self._by_time, Rows(len(moved), _time_keys(stored_time, raw_keys, moved), None))

    def remove(self, raw_keys: Column, stored_time: NDArray[np.int64], write: WriteBatch) -> None:
        """Adds the removal of keys to ``write``, given the buffer times (ms) under which they are stored."""
        write.delete_columns(self._rows, raw_keys)
        write.delete_columns(self._by_time, encode_time_keys(stored_time, raw_keys))

    def remove_from_time(self, raw_keys: Column, time: NDArray[np.int64], write: WriteBatch) -> None:
        """Adds the removal of keys to ``write``, from a store in order of time; ``time``: int64, their times, ms."""
        write.delete_columns(self._by_time, encode_time_keys(time, raw_keys))

    def remove_until(self, time_ms: int, write: WriteBatch) -> None:
        """Adds the removal of all keys with a buffer time up to ``time_ms`` from a store in order of time."""
        write.expire_range(self._by_time, encode_time_key(0, b""), encode_time_key(time_ms + 1, b""))

    def store_totals(self, records: int, size: int, schema: pa.Schema, write: WriteBatch) -> None:
        """Adds the size of the whole buffer to ``write``."""
        self.header.write(schema, write)
        write.put(self._by_time, TOTALS_KEY, encode_totals(records, size))

    def refer(self, reference: Reference | None, schema: pa.Schema, write: WriteBatch) -> None:
        """Adds to ``write`` what waits elsewhere from now on; None: nothing. For a store in order of time."""
        if reference != self.reference:
            self.header.change(BY_TIME if reference is None else BY_REFERENCE, schema, write)
            if reference is None:
                write.delete(self._by_time, REFERENCE_KEY)
            else:
                write.put(self._by_time, REFERENCE_KEY, encode_reference(reference))
            self.reference = reference

    def resolve(self) -> None:
        """Writes rows for all that waits elsewhere: what is there may change or go from now on."""
        reference, schema = self.reference, self.header.schema
        if reference is None or schema is None:
            return
        write, newest = WriteBatch(passed_to=self._backend), self.newest_time()
        for rows in referred_windows(self._backend, reference, schema):
            raw_keys, has_row = encode_keys(rows, self._suffix_words), rows.time <= newest
            has_row[has_row] = self.counted_bytes(raw_keys.filter(pa.array(has_row)), rows.time[has_row]) > 0
            added = BufferChanges.of(raw_keys.filter(pa.array(~has_row)), rows.filter(~has_row))
            self.store(added, schema, write)
        self.refer(None, schema, write)
        self._backend.write(write)


def resolve_references(backend: Backend, names: Iterable[str]) -> None:
    """Gives the buffers of these names, as far as they are there, rows for all that waits in stores beside them."""
    for name in names:
        SuppressionBufferStore(backend, name, suffix_words=1, time_is_of_key=True).resolve()


def _time_keys(time: NDArray[np.int64], raw_keys: ColumnOf, chosen: NDArray[np.int64]) -> ColumnOf:
    """Gives keys of the index by time: of the indices ``chosen`` of all buffer times and keys."""
    return lambda some: encode_time_keys(time[chosen[some]], raw_keys(chosen[some]))
