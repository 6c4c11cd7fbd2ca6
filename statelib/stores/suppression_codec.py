"""The bytes of a suppression buffer at rest.

A *buffer key* is Kafka's: the key's bytes and 0, 1 or 2 suffix words (nothing, a window's start, or a session's end and
start). All integers are big-endian, times in ms and never negative.

Family ``<store>``, one entry a buffered key::

    key    +-------------+--------------------------+
           | key bytes   | suffix words, i64 each   |
           +-------------+--------------------------+
    value  +------------------+-----------------+------------+---------------------------------+
           | buffer time i64  | window end i64  | bytes i64  | row: timestamp, value and more  |
           +------------------+-----------------+------------+---------------------------------+

The window's end is 0 for keys without windows; bytes is what the key counts against the buffer's bound.

Family ``<store>.by-time``, the same keys in the order in which they leave, so that a buffer can be read from its oldest
key on::

    key    +--------------------+-------------+     value  (empty)
           | buffer time i64    | buffer key  |
           +--------------------+-------------+

and the store's header (`statelib.stores.header`) with the types of a row.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from statelib.errors import CorruptedDataError

FORMAT_VERSION = 1

_WORD = struct.Struct(">q")
_VALUE = struct.Struct(">qqq")


@dataclass(frozen=True, slots=True)
class BufferKey:
    """A serialised record key with its window: start and end in ms, 0 without one."""

    key: bytes
    start_ms: int = 0
    end_ms: int = 0


@dataclass(frozen=True, slots=True)
class BufferedRow:
    """What the store holds of one key: buffer time in ms, what it counts in bytes, serialised row."""

    key: BufferKey
    time_ms: int
    counted_bytes: int
    row: bytes


def encode_key(key: BufferKey, suffix_words: int) -> bytes:
    """The key in the main family."""
    if suffix_words == 0:
        return key.key
    if suffix_words == 1:
        return key.key + _WORD.pack(key.start_ms)
    return key.key + _WORD.pack(key.end_ms) + _WORD.pack(key.start_ms)


def encode_value(buffered: BufferedRow) -> bytes:
    """The value in the main family."""
    return _VALUE.pack(buffered.time_ms, buffered.key.end_ms, buffered.counted_bytes) + buffered.row


def decode(raw_key: bytes, raw_value: bytes, suffix_words: int, store: str) -> BufferedRow:
    """An entry of the main family.

    Raises:
        CorruptedDataError: Key or value are too short.
    """
    suffix = suffix_words * _WORD.size
    if len(raw_key) < suffix or len(raw_value) < _VALUE.size:
        raise CorruptedDataError(
            f"a buffered record has a key of {len(raw_key)} and a value of {len(raw_value)} bytes", store=store
        )
    start_ms = _WORD.unpack_from(raw_key, len(raw_key) - _WORD.size)[0] if suffix_words else 0
    time_ms, end_ms, counted_bytes = _VALUE.unpack_from(raw_value)
    key = BufferKey(raw_key[: len(raw_key) - suffix], start_ms, end_ms)
    return BufferedRow(key, time_ms, counted_bytes, raw_value[_VALUE.size :])


def encode_time_key(time_ms: int, raw_key: bytes) -> bytes:
    """The key in the index by time."""
    return _WORD.pack(time_ms) + raw_key
