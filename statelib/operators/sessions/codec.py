"""The bytes of a session store.

Family ``<store>``, one entry a session; all integers big-endian, times in ms and never negative::

    key    +-------------+---------------------+-----------------------+     value  +----------------------------+
           | key bytes   | session end i64     | session start i64     |            | row: serialised aggregate  |
           +-------------+---------------------+-----------------------+            +----------------------------+

The key is Kafka's session store key, and that of its changelog (``SessionKeySchema``); both bounds are timestamps of
records. The sessions of a key lie in order of their ends, so those that reach into a range of time begin at its first
end; sessions of a key that is a prefix of another key may lie between those of the other, so a scan of one key's
sessions checks the length.

Family ``<store>.by-end``, the same sessions in order of time, for expiry::

    key    +---------------------+-----------------------+-------------+     value  (empty)
           | session end i64     | session start i64     | key bytes   |
           +---------------------+-----------------------+-------------+

and the store's header (`statelib.stores.header`) with the types of a row.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from statelib.errors.kinds import CorruptedDataError
from statelib.stores.byte_columns import joined, split_head, split_tail, times

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.stores.byte_columns import Column

FORMAT_VERSION = 1

BOUNDS = np.dtype([("end", ">i8"), ("start", ">i8")])
_BOUNDS = struct.Struct(">qq")

BOUNDS_BYTES = _BOUNDS.size


def encode_key(key: bytes, start_ms: int, end_ms: int) -> bytes:
    """The key of a session in the main family."""
    return key + _BOUNDS.pack(end_ms, start_ms)


def encode_keys(keys: Column, start: NDArray[np.int64], end: NDArray[np.int64]) -> Column:
    """As `encode_key`, of many sessions."""
    return joined(keys, times(end), times(start))


def decode_key(raw: bytes, store: str) -> tuple[bytes, int, int]:
    """(key, start, end) of a key of the main family; times in ms.

    Raises:
        CorruptedDataError: It is too short.
    """
    end_ms, start_ms = _bounds(raw, len(raw) - BOUNDS_BYTES, store)
    return raw[:-BOUNDS_BYTES], start_ms, end_ms


def decode_keys(raws: Column, store: str) -> tuple[Column, NDArray[np.int64], NDArray[np.int64]]:
    """As `decode_key`, of many: keys, int64 starts and ends.

    Raises:
        CorruptedDataError: One is too short.
    """
    keys, bounds = split_tail(raws, BOUNDS, store)
    return keys, bounds["start"].astype(np.int64), bounds["end"].astype(np.int64)


def encode_end_key(end_ms: int, start_ms: int = 0, key: bytes = b"") -> bytes:
    """The key of a session in the index by end; with ``end_ms`` alone, what comes before all sessions of that end."""
    return _BOUNDS.pack(end_ms, start_ms) + key


def encode_end_keys(keys: Column, start: NDArray[np.int64], end: NDArray[np.int64]) -> Column:
    """As `encode_end_key`, of many sessions."""
    return joined(times(end), times(start), keys)


def decode_end_key(raw: bytes, store: str) -> tuple[bytes, int, int]:
    """(key, start, end) of a key of the index by end; times in ms.

    Raises:
        CorruptedDataError: It is too short.
    """
    end_ms, start_ms = _bounds(raw, 0, store)
    return raw[BOUNDS_BYTES:], start_ms, end_ms


def decode_end_keys(raws: Column, store: str) -> tuple[Column, NDArray[np.int64], NDArray[np.int64]]:
    """As `decode_end_key`, of many: keys, int64 starts and ends.

    Raises:
        CorruptedDataError: One is too short.
    """
    bounds, keys = split_head(raws, BOUNDS, store)
    return keys, bounds["start"].astype(np.int64), bounds["end"].astype(np.int64)


def _bounds(raw: bytes, at: int, store: str) -> tuple[int, int]:
    if len(raw) < BOUNDS_BYTES:
        raise CorruptedDataError(f"a session's key has {len(raw)} bytes", store=store)
    end_ms, start_ms = _BOUNDS.unpack_from(raw, at)
    return end_ms, start_ms
