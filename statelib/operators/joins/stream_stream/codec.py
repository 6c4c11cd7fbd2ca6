"""The bytes of a stream-stream join's stores; all integers big-endian.

A side's records, as long as others may meet them. Family ``<store>``, one entry a record, in its value the record's
value, serialised::

    key    +------------+----------------------+---------------+
           | key bytes  | timestamp i64, ms    | arrival i64   |     arrival: a running number, so that records of one
           +------------+----------------------+---------------+     time stay apart and in order

Timestamps are never negative, so the records of a key lie in order of time; those of a key that is a prefix of another
may lie between those of the other, so a scan of one key's records checks the length. (Kafka's window store has a
sequence number of 32 bits in the place of the arrival.)

Family ``<store>.by-time``, the same records in order of time, for expiry::

    key    +----------------------+---------------+------------+      value  (empty)
           | timestamp i64, ms    | arrival i64   | key bytes  |
           +----------------------+---------------+------------+

The records of both sides that have met nobody yet and whose windows are open. Family ``<store>``, one entry a record,
in its value the record's value, serialised::

    key    +----------------------+-----------+---------------+------------+
           | timestamp i64, ms    | side u8   | arrival i64   | key bytes  |     side: 0 right, 1 left
           +----------------------+-----------+---------------+------------+

In the index by time and in the store of both sides is the store's header (`statelib.stores.header`) with the types of
values.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from statelib.errors.kinds import CorruptedDataError
from statelib.stores.byte_columns import joined, spans_of_rows, split_head, split_tail

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.stores.byte_columns import Column

FORMAT_VERSION = 1

_PLACE = struct.Struct(">qq")
_HELD = struct.Struct(">qBq")
_PLACES = np.dtype([("timestamp", ">i8"), ("arrival", ">i8")])
_HEADS = np.dtype([("timestamp", ">i8"), ("side", "u1"), ("arrival", ">i8")])

FIRST_HELD_KEY = _HELD.pack(0, 0, 0)
"""Comes before all records that have met nobody, and behind the header."""

PLACE_BYTES = _PLACE.size


def encode_key(key: bytes, timestamp_ms: int, arrival: int) -> bytes:
    """The key of a record in the main family."""
    return key + _PLACE.pack(timestamp_ms, arrival)


def encode_keys(keys: Column, timestamp_ms: NDArray[np.int64], arrival: NDArray[np.int64]) -> Column:
    """As `encode_key`, of many."""
    return joined(keys, spans_of_rows(_places(timestamp_ms, arrival)))


def decode_key(raw: bytes, store: str) -> tuple[bytes, int, int]:
    """(key, timestamp in ms, arrival) of a key of the main family.

    Raises:
        CorruptedDataError: It is too short.
    """
    if len(raw) < PLACE_BYTES:
        raise CorruptedDataError(f"the key of a record to be joined has {len(raw)} bytes", store=store)
    return raw[:-PLACE_BYTES], *_PLACE.unpack_from(raw, len(raw) - PLACE_BYTES)


def decode_keys(raws: Column, store: str) -> tuple[Column, NDArray[np.int64], NDArray[np.int64]]:
    """As `decode_key`, of many: keys, int64 timestamps, and int64 arrivals.

    Raises:
        CorruptedDataError: One is too short.
    """
    keys, places = split_tail(raws, _PLACES, store)
    return keys, places["timestamp"].astype(np.int64), places["arrival"].astype(np.int64)


def encode_time_key(timestamp_ms: int, arrival: int = 0, key: bytes = b"") -> bytes:
    """The key of a record in the index by time; of a time alone, what comes before all its records."""
    return _PLACE.pack(timestamp_ms, arrival) + key


def encode_time_keys(keys: Column, timestamp_ms: NDArray[np.int64], arrival: NDArray[np.int64]) -> Column:
    """As `encode_time_key`, of many."""
    return joined(spans_of_rows(_places(timestamp_ms, arrival)), keys)


def decode_time_key(raw: bytes, store: str) -> tuple[int, int, bytes]:
    """(timestamp in ms, arrival, key) of a key of the index by time.

    Raises:
        CorruptedDataError: It is too short.
    """
    if len(raw) < PLACE_BYTES:
        raise CorruptedDataError(f"the index key of a record to be joined has {len(raw)} bytes", store=store)
    timestamp_ms, arrival = _PLACE.unpack_from(raw)
    return timestamp_ms, arrival, raw[PLACE_BYTES:]


def decode_time_keys(raws: Column, store: str) -> tuple[NDArray[np.int64], NDArray[np.int64], Column]:
    """As `decode_time_key`, of many: int64 timestamps, int64 arrivals, and keys.

    Raises:
        CorruptedDataError: One is too short.
    """
    places, keys = split_head(raws, _PLACES, store)
    return places["timestamp"].astype(np.int64), places["arrival"].astype(np.int64), keys


def encode_held_key(timestamp_ms: int, *, is_left: bool, arrival: int, key: bytes) -> bytes:
    """The key of a record that has met nobody."""
    return _HELD.pack(timestamp_ms, is_left, arrival) + key


def encode_held_keys(
    keys: Column, timestamp_ms: NDArray[np.int64], arrival: NDArray[np.int64], *, is_left: bool
) -> Column:
    """As `encode_held_key`, of many of one side."""
    heads = np.empty(len(arrival), _HEADS)
    heads["timestamp"], heads["side"], heads["arrival"] = timestamp_ms, is_left, arrival
    return joined(spans_of_rows(heads), keys)


def decode_held_key(raw: bytes, store: str) -> tuple[int, bool, int, bytes]:
    """(timestamp in ms, whether it is a left record, arrival, key) of the key of a record that has met nobody.

    Raises:
        CorruptedDataError: It is too short, or of no side.
    """
    if len(raw) < _HELD.size:
        raise CorruptedDataError(f"the key of a record without a match has {len(raw)} bytes", store=store)
    timestamp_ms, side, arrival = _HELD.unpack_from(raw)
    if side > 1:
        raise CorruptedDataError(f"a record without a match is of side {side}", store=store)
    return timestamp_ms, side == 1, arrival, raw[_HELD.size :]


def decode_held_keys(
    raws: Column, store: str
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64], Column]:
    """As `decode_held_key`, of many: int64 timestamps, which are left records, int64 arrivals, and keys.

    Raises:
        CorruptedDataError: One is too short, or of no side.
    """
    heads, keys = split_head(raws, _HEADS, store)
    if len(heads) and heads["side"].max() > 1:
        raise CorruptedDataError(f"a record without a match is of side {heads['side'].max()}", store=store)
    return heads["timestamp"].astype(np.int64), heads["side"] == 1, heads["arrival"].astype(np.int64), keys


def _places(timestamp_ms: NDArray[np.int64], arrival: NDArray[np.int64]) -> NDArray[Any]:
    places = np.empty(len(arrival), _PLACES)
    places["timestamp"], places["arrival"] = timestamp_ms, arrival
    return places
