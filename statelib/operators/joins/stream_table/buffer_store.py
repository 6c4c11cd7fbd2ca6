"""The buffer of a stream-table join with a grace period: stream records that wait, in order of time.

Family ``<store>``, one entry a record; all integers big-endian::

    key    +--------------------+------------------+
           | timestamp i64, ms  | arrival i64      |      arrival: a running number, so equal records stay apart
           +--------------------+------------------+
    value  +------------------+-----------+------------------------------+
           | key length i32   | key bytes | row: serialised value, headers |
           +------------------+-----------+------------------------------+

and the store's header (`statelib.stores.header`) with the types of a row. Whatever has a timestamp up to stream time
minus grace has left, so that one range is removed at a time. (Kafka: ``RocksDBTimeOrderedKeyValueBuffer``.)
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from statelib.errors.kinds import CorruptedDataError
from statelib.stores.byte_columns import split_framed, split_head
from statelib.stores.header import Header

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

    from statelib.stores.backend import Backend, WriteBatch
    from statelib.stores.byte_columns import Column

FORMAT_VERSION = 1

_PLACE = struct.Struct(">qq")
_LENGTH = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class WaitingRow:
    """A record that waits: when, the how manieth, its serialised key and row."""

    timestamp_ms: int
    arrival: int
    key: bytes
    row: bytes


def encode_place(timestamp_ms: int, arrival: int = 0) -> bytes:
    """The key of an entry; without ``arrival``, what comes before all entries of that time."""
    return _PLACE.pack(timestamp_ms, arrival)


def encode_value(waiting: WaitingRow) -> bytes:
    """The value of an entry."""
    return _LENGTH.pack(len(waiting.key)) + waiting.key + waiting.row


def decode(raw_place: bytes, raw_value: bytes, store: str) -> WaitingRow:
    """An entry.

    Raises:
        CorruptedDataError: It has another length than it says.
    """
    if len(raw_place) != _PLACE.size or len(raw_value) < _LENGTH.size:
        raise CorruptedDataError("an entry of a join's buffer is too short", store=store)
    timestamp_ms, arrival = _PLACE.unpack(raw_place)
    (length,) = _LENGTH.unpack_from(raw_value)
    row_at = _LENGTH.size + length
    if not 0 <= length <= len(raw_value) - _LENGTH.size:
        raise CorruptedDataError(f"an entry of a join's buffer has a key of {length} bytes", store=store)
    return WaitingRow(timestamp_ms, arrival, raw_value[_LENGTH.size : row_at], raw_value[row_at:])


def decode_columns(
    raw_places: Column, raw_values: Column, store: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], Column, Column]:
    """As `decode`, of many entries: int64 timestamps (ms), int64 arrivals, keys, and rows.

    Raises:
        CorruptedDataError: One has another length than it says.
    """
    places, _ = split_head(raw_places, np.dtype([("timestamp", ">i8"), ("arrival", ">i8")]), store)
    timestamp, arrival = (places[name].astype(np.int64) for name in ("timestamp", "arrival"))
    return timestamp, arrival, *split_framed(raw_values, np.dtype(">i4"), store)


class JoinBufferStore:
    """See the module's docstring.

    Args:
        backend: Where the family is.
        name: Of the store and of its family.

    Raises:
        ConfigurationError: The store was written in another format.
        CorruptedDataError: Its header cannot be read.
    """

    def __init__(self, backend: Backend, name: str) -> None:
        self._backend = backend
        self._name = name
        self.header = Header(backend, name, FORMAT_VERSION, name)

    def all(self) -> Iterator[WaitingRow]:
        """All records that wait, by time and arrival."""
        for raw_place, raw_value in self._backend.scan(self._name, encode_place(0)):
            yield decode(raw_place, raw_value, self._name)

    def remove(self, places: Iterable[tuple[int, int]], write: WriteBatch) -> None:
        """Adds the removal of records to ``write``, given their timestamps (ms) and arrivals."""
        for timestamp_ms, arrival in places:
            write.delete(self._name, encode_place(timestamp_ms, arrival))

    def store(self, left_until_ms: int, added: Iterable[WaitingRow], schema: pa.Schema, write: WriteBatch) -> None:
        """Adds what has changed to ``write``.

        Args:
            left_until_ms: Everything with this timestamp or an earlier one has left.
            added: Records that are new and still wait.
            schema: The types of a row.
            write: The batch that also carries the task's position.
        """
        self.header.write(schema, write)
        if left_until_ms >= 0:
            write.delete_range(self._name, encode_place(0), encode_place(left_until_ms + 1))
        for waiting in added:
            write.put(self._name, encode_place(waiting.timestamp_ms, waiting.arrival), encode_value(waiting))
