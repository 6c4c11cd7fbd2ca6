"""The bytes of a processor's scheduled calls, in the order of its queue; all integers big-endian.

Family ``<node>.punctuation``, one entry, under the key 0x00::

    value  +-------------+------------+------------------------------------------+
           | format u8   | count u32  | call * count                             |
           +-------------+------------+------------------------------------------+
    call   +--------------+------------------+----------+-------------+----------+
           | due i64, ms  | interval i64, ms | flags u8 | length u16  | callback |
           +--------------+------------------+----------+-------------+----------+
             flags bit 0: cancelled
             callback: UTF-8; "#n": the n-th call that ``init`` schedules; else the name of a method of the processor;
                       of another processor that has the same queue: its node and a colon before that
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from statelib.errors.kinds import ConfigurationError, CorruptedDataError

if TYPE_CHECKING:
    from collections.abc import Sequence

FORMAT_VERSION = 1
KEY = b"\x00"

_HEAD = struct.Struct(">BI")
_CALL = struct.Struct(">qqBH")
_CANCELLED = 1


class StoredCall(NamedTuple):
    """A scheduled call; times in ms."""

    due_ms: int
    interval_ms: int
    cancelled: bool
    callback: str


def encode_calls(calls: Sequence[StoredCall]) -> bytes:
    """The entry's value."""
    parts = [_HEAD.pack(FORMAT_VERSION, len(calls))]
    for call in calls:
        callback = call.callback.encode()
        parts.append(_CALL.pack(call.due_ms, call.interval_ms, _CANCELLED if call.cancelled else 0, len(callback)))
        parts.append(callback)
    return b"".join(parts)


def decode_calls(raw: bytes, node: str) -> list[StoredCall]:
    """The scheduled calls.

    Raises:
        ConfigurationError: They were written in another format.
        CorruptedDataError: They cannot be read.
    """
    if raw and raw[0] != FORMAT_VERSION:
        raise ConfigurationError(
            f"scheduled calls are written in format {raw[0]}, and this release reads format {FORMAT_VERSION}",
            node=node,
            next_step="use the release that wrote them, or start the job over",
        )
    calls = []
    try:
        _, count = _HEAD.unpack_from(raw)
        at = _HEAD.size
        for _ in range(count):
            due_ms, interval_ms, flags, length = _CALL.unpack_from(raw, at)
            at += _CALL.size + length
            calls.append(StoredCall(due_ms, interval_ms, bool(flags & _CANCELLED), raw[at - length : at].decode()))
    except (struct.error, UnicodeDecodeError) as error:
        raise CorruptedDataError(f"scheduled calls cannot be read: {error}", node=node) from error
    if at != len(raw):
        raise CorruptedDataError(f"scheduled calls have {len(raw)} bytes, not {at}", node=node)
    return calls
