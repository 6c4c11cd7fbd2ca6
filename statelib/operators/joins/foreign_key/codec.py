"""The bytes of a subscription store: which rows of one table refer to a key of another.

Family ``<store>``, one entry a subscription; all integers big-endian::

    key    +------------------------+-----------------+-----------------+
           | length i32 of the      | foreign key,    | primary key,    |
           | foreign key            | serialised      | serialised      |
           +------------------------+-----------------+-----------------+

    value  +------------------------+------------------------------------+
           | number i64             | row: the referring row, serialised |
           +------------------------+-----------------------------------+

The key is that of Kafka's subscription store (``CombinedKeySchema``), so the subscriptions of a foreign key lie
together, in the order of primary keys. The number counts the changes of the referring table's partition. The store's
header (`statelib.stores.header`), with the type of a row, is in a family of its own, ``<store>.header``.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from statelib.errors.kinds import CorruptedDataError
from statelib.stores.byte_columns import joined, packed, split_framed, split_head

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.stores.byte_columns import Column

FORMAT_VERSION = 1

_LENGTH = struct.Struct(">i")
_NUMBER = struct.Struct(">q")


def encode_prefix(foreign_key: bytes) -> bytes:
    """What the keys of all subscriptions of a foreign key begin with, and no others."""
    return _LENGTH.pack(len(foreign_key)) + foreign_key


def encode_key(foreign_key: bytes, primary_key: bytes) -> bytes:
    """The key of a subscription."""
    return encode_prefix(foreign_key) + primary_key


def decode_key(raw: bytes, store: str) -> tuple[bytes, bytes]:
    """(foreign key, primary key) of a key.

    Raises:
        CorruptedDataError: It is too short.
    """
    length = _LENGTH.unpack_from(raw)[0] if len(raw) >= _LENGTH.size else -1
    if not 0 <= length <= len(raw) - _LENGTH.size:
        raise CorruptedDataError(f"a subscription's key has {len(raw)} bytes, less than it says", store=store)
    return raw[_LENGTH.size : _LENGTH.size + length], raw[_LENGTH.size + length :]


def encode_value(number: int, row: bytes) -> bytes:
    """The value of a subscription."""
    return _NUMBER.pack(number) + row


def decode_value(raw: bytes, store: str) -> tuple[int, bytes]:
    """(number, row) of a value.

    Raises:
        CorruptedDataError: It is too short.
    """
    if len(raw) < _NUMBER.size:
        raise CorruptedDataError(f"a subscription has {len(raw)} bytes, less than its number", store=store)
    return _NUMBER.unpack_from(raw)[0], raw[_NUMBER.size :]


def encode_values(numbers: NDArray[np.int64], rows: Column) -> Column:
    """As `encode_value`, of many."""
    return joined(packed(numbers.astype(">i8")), rows)


def decode_keys(raws: Column, store: str) -> tuple[Column, Column]:
    """As `decode_key`, of many: foreign keys, and primary keys.

    Raises:
        CorruptedDataError: One is shorter than it says.
    """
    return split_framed(raws, np.dtype(">i4"), store)


def decode_values(raws: Column, store: str) -> tuple[NDArray[np.int64], Column]:
    """As `decode_value`, of many: int64 numbers, and rows.

    Raises:
        CorruptedDataError: One is too short.
    """
    number, rows = split_head(raws, np.dtype(">i8"), store)
    return number.astype(np.int64), rows
