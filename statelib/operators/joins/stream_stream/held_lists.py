"""What Kafka Streams logs of the records of a stream-stream join that wait for a match (``ListValueStore``).

The records of one key, side and time are one list; all integers are big-endian::

    key    +----------------------+-----------+------------+
           | timestamp i64, ms    | side u8   | key bytes  |     side: 0 right, 1 left (``TimestampedKeyAndJoinSide``)
           +----------------------+-----------+------------+
    value  +-----------------+------------+
           | strategy u8 = 1 | count i32  |  entry * count           strategy: of ``ListSerializer``, any length
           +-----------------+------------+
    entry  +--------------+----------+--------------+
           | length i32   | side u8  | value bytes  |               (``LeftOrRightValue``)
           +--------------+----------+--------------+

The layouts are Kafka's and have no version of their own.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_KEY = struct.Struct(">qB")
_LIST = struct.Struct(">Bi")
_ENTRY = struct.Struct(">iB")
_ANY_LENGTH = 1


def encode_key(timestamp_ms: int, key: bytes, *, is_left: bool) -> bytes:
    """The key of a list."""
    return _KEY.pack(timestamp_ms, is_left) + key


def encode_values(values: Sequence[bytes], *, is_left: bool) -> bytes:
    """A list."""
    entries = (_ENTRY.pack(len(value) + 1, is_left) + value for value in values)
    return _LIST.pack(_ANY_LENGTH, len(values)) + b"".join(entries)
