"""The bytes of a processor's scheduled calls, in the order of its queue; all integers big-endian.

Family ``<node>.punctuation``, one entry, under the key 0x00::

    value  +-------------+------------+------------------------------------------+
           | format u8   | count u32  | call * count                             |
           +-------------+------------+------------------------------------------+
    call   +--------------+------------------+----------+-------------+----------+
           | due i64, ms  | interval i64, ms | flags u8 | length u16  | callback |
           +--------------+------------------+----------+-------------+----------+
             flags bit 0: cancelled
             flags bit 1: by the wall clock (format 2)
             flags bit 2: made before the clock began: due is its start, -1 without one (format 2)
             callback: UTF-8; "#n": the n-th call that ``init`` schedules; else the name of a method of the processor;
                       of another processor that has the same queue: its node and a colon before that

Format 1 has calls by stream time only, and is what is written of such.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from statelib.errors.kinds import ConfigurationError, CorruptedDataError

if TYPE_CHECKING:
    from collections.abc import Sequence

FORMAT_VERSION = 2
_BY_STREAM_TIME = 1  # the format that has these alone
KEY = b"\x00"

_HEAD = struct.Struct(">BI")
_CALL = struct.Struct(">qqBH")
_CANCELLED, _WALL_CLOCK, _WAITING = 1, 2, 4


class StoredCall(NamedTuple):
    """A scheduled call; times in ms. See above."""

    due_ms: int
    interval_ms: int
    cancelled: bool
    callback: str
    by_wall_clock: bool = False
    waits: bool = False

    @property
    def flags(self) -> int:
        """As they are written."""
        return self.cancelled * _CANCELLED | self.by_wall_clock * _WALL_CLOCK | self.waits * _WAITING


def encode_calls(calls: Sequence[StoredCall]) -> bytes:
    """The entry's value."""
    version = FORMAT_VERSION if any(call.by_wall_clock for call in calls) else _BY_STREAM_TIME
    parts = [_HEAD.pack(version, len(calls))]
    for call in calls:
        callback = call.callback.encode()
        parts.append(_CALL.pack(call.due_ms, call.interval_ms, call.flags, len(callback)))
        parts.append(callback)
    return b"".join(parts)


def decode_calls(raw: bytes, node: str) -> list[StoredCall]:
    """The scheduled calls.

    Raises:
        ConfigurationError: They were written in another format.
        CorruptedDataError: They cannot be read.
    """
    if raw and not _BY_STREAM_TIME <= raw[0] <= FORMAT_VERSION:
        raise ConfigurationError(
            f"scheduled calls are written in format {raw[0]}, and this release reads formats 1 to {FORMAT_VERSION}",
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
            of_flags = (bool(flags & flag) for flag in (_CANCELLED, _WALL_CLOCK, _WAITING))
            cancelled, by_wall_clock, waits = of_flags
            callback = raw[at - length : at].decode()
            calls.append(StoredCall(due_ms, interval_ms, cancelled, callback, by_wall_clock, waits))
    except (struct.error, UnicodeDecodeError) as error:
        raise CorruptedDataError(f"scheduled calls cannot be read: {error}", node=node) from error
    if at != len(raw):
        raise CorruptedDataError(f"scheduled calls have {len(raw)} bytes, not {at}", node=node)
    return calls
