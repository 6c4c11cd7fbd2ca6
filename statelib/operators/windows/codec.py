"""The bytes of a window store.

All integers are big-endian, times in ms and never negative.

Format 1. Family ``<store>``, one entry a (key, window)::

    key    +----------------+----------------------+-----------+
           | key bytes      | window start i64, ms | seq i32   |
           +----------------+----------------------+-----------+
    value  +----------------------+----------------------------+
           | timestamp i64, ms    | row: serialised aggregate  |
           +----------------------+----------------------------+

The value is that of a timestamped key-value store (`statelib.operators.tables.codec`). The key is Kafka's window store
key, and that of its changelog (``WindowKeySchema``); ``seq`` is 0 (stores that keep duplicates count it up). The
windows of a key lie in order of time; windows of a key that is a prefix of another key may lie between those of the
other, so a scan of one key's windows checks the length.

Family ``<store>.by-start``, the same windows in order of time, for expiry::

    key    +----------------------+----------------+      value  (empty)
           | window start i64, ms | key bytes      |
           +----------------------+----------------+

and the store's header (`statelib.stores.header`) with the types of a row.

Format 2, of windows on a grid, has the values of family ``<store>`` in family ``<store>.by-start``, and nothing in
family ``<store>``. A store that was written in format 1 stays in it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from statelib.errors.kinds import CorruptedDataError
from statelib.stores.byte_columns import joined, packed, split_head, split_tail, times

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.stores.byte_columns import Column

BY_KEY, BY_START = 1, 2
"""Versions of the format."""

_SUFFIX = struct.Struct(">qi")
SUFFIXES = np.dtype([("start", ">i8"), ("sequence", ">i4")])
_START = struct.Struct(">q")

SUFFIX_BYTES = _SUFFIX.size


def encode_key(key: bytes, start_ms: int) -> bytes:
    """The key of a window in the main family."""
    return key + _SUFFIX.pack(start_ms, 0)


def encode_keys(keys: Column, start: NDArray[np.int64]) -> Column:
    """As `encode_key`, of many windows."""
    suffixes = np.zeros(len(start), SUFFIXES)
    suffixes["start"] = start
    return joined(keys, packed(suffixes))


def decode_key(raw: bytes, store: str) -> tuple[bytes, int]:
    """(key, start in ms) of a key of the main family.

    Raises:
        CorruptedDataError: It is too short.
    """
    if len(raw) < SUFFIX_BYTES:
        raise CorruptedDataError(f"a window's key has {len(raw)} bytes", store=store)
    start_ms, _ = _SUFFIX.unpack_from(raw, len(raw) - SUFFIX_BYTES)
    return raw[:-SUFFIX_BYTES], start_ms


def decode_keys(raws: Column, store: str) -> tuple[Column, NDArray[np.int64]]:
    """As `decode_key`, of many: keys, and int64 starts.

    Raises:
        CorruptedDataError: One is too short.
    """
    keys, suffixes = split_tail(raws, SUFFIXES, store)
    return keys, suffixes["start"].astype(np.int64)


def encode_start_key(start_ms: int, key: bytes = b"") -> bytes:
    """The key of a window in the index by start; without ``key``, what comes before all windows of that start."""
    return _START.pack(start_ms) + key


def encode_start_keys(keys: Column, start: NDArray[np.int64]) -> Column:
    """As `encode_start_key`, of many windows."""
    return joined(times(start), keys)


def decode_start_key(raw: bytes, store: str) -> tuple[int, bytes]:
    """(start in ms, key) of a key of the index by start.

    Raises:
        CorruptedDataError: It is too short.
    """
    if len(raw) < _START.size:
        raise CorruptedDataError(f"a window's index key has {len(raw)} bytes", store=store)
    (start_ms,) = _START.unpack_from(raw)
    return start_ms, raw[_START.size :]


def decode_start_keys(raws: Column, store: str) -> tuple[Column, NDArray[np.int64]]:
    """As `decode_start_key`, of many: keys, and int64 starts.

    Raises:
        CorruptedDataError: One is too short.
    """
    start, keys = split_head(raws, np.dtype(">i8"), store)
    return keys, start.astype(np.int64)
