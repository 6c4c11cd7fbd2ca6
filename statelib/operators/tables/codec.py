"""The bytes of a timestamped key-value store.

Family ``<store>``, one entry a key; the key is the serialised key as it is::

    value  +------------------------+-------------------------+
           | timestamp i64 BE, ms   | row: serialised value   |
           +------------------------+-------------------------+

as in Kafka's timestamped store (``ValueAndTimestampSerializer``). A row may be empty; a key without a value has no
entry. Any byte string can be a key, so the store's header (`statelib.stores.header`), with the types of a row, is in a
family of its own, ``<store>.header``.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from statelib.errors.kinds import CorruptedDataError
from statelib.stores.byte_columns import joined, split_head, times

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.stores.byte_columns import Column

FORMAT_VERSION = 1

_TIMESTAMP = struct.Struct(">q")


def encode_value(timestamp_ms: int, row: bytes) -> bytes:
    """The value of an entry."""
    return _TIMESTAMP.pack(timestamp_ms) + row


def encode_values(timestamp: NDArray[np.int64], rows: Column) -> Column:
    """As `encode_value`, of many entries."""
    return joined(times(timestamp), rows)


def decode_value(raw: bytes, store: str) -> tuple[int, bytes]:
    """(timestamp in ms, row) of an entry.

    Raises:
        CorruptedDataError: It is too short.
    """
    if len(raw) < _TIMESTAMP.size:
        raise CorruptedDataError(f"a value has {len(raw)} bytes, less than a timestamp", store=store)
    (timestamp_ms,) = _TIMESTAMP.unpack_from(raw)
    return timestamp_ms, raw[_TIMESTAMP.size :]


def decode_values(raws: Column, store: str) -> tuple[NDArray[np.int64], Column]:
    """As `decode_value`, of many entries: timestamps (ms) and rows.

    Raises:
        CorruptedDataError: One is too short.
    """
    timestamp, rows = split_head(raws, np.dtype(">i8"), store)
    return timestamp.astype(np.int64), rows
