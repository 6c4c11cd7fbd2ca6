r"""Streams that snappy-java's ``SnappyOutputStream`` compressed: its own frame around blocks of Snappy.

::

    +-------------------------+---------------+------------------+   +------------------+-------------------+
    | 82 'S' 'N' 'A' 'P''P''Y' 00 | version i32 | compatible i32 |   | block length i32 | block of Snappy   | ...
    +-------------------------+---------------+------------------+   +------------------+-------------------+

Numbers are big-endian. A block begins with its length when it is decompressed, a varint. Streams may follow one
another.

Sources: ``SnappyCodec`` and ``SnappyInputStream`` of snappy-java; Google's "Snappy compressed format description".
"""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from typing import IO

MAGIC = b"\x82SNAPPY\0"
_HEAD_BYTES = len(MAGIC) + 8
_LENGTH = struct.Struct(">i")
_MOST_BYTES = 1 << 30
"""Of a block; the writer makes blocks of 32 KiB unless it was told otherwise."""


class SnappyJavaStream(io.RawIOBase):
    """What was compressed.

    Args:
        opened: The file.
    """

    def __init__(self, opened: IO[bytes] | pa.NativeFile) -> None:
        self._opened = opened
        self._block = b""
        head = self._exactly(_HEAD_BYTES)
        if not head.startswith(MAGIC):
            raise ValueError("it is no stream of snappy-java: other frames of Snappy are not read")

    def readable(self) -> bool:
        """It is."""
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """See `io.RawIOBase`.

        Raises:
            ValueError: It ends within a block, or a block is damaged.
        """
        parts = []
        left = _MOST_BYTES if size is None or size < 0 else size
        while left > 0:
            if not self._block and not self._next():
                break
            part, self._block = self._block[:left], self._block[left:]
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def _next(self) -> bool:
        head = bytes(self._opened.read(_LENGTH.size))
        if not head:
            return False
        if head == MAGIC[: _LENGTH.size]:  # another stream
            self._exactly(_HEAD_BYTES - _LENGTH.size)
            return self._next()
        if len(head) < _LENGTH.size:
            raise ValueError("it ends within a block")
        (length,) = _LENGTH.unpack(head)
        if not 0 < length < _MOST_BYTES:
            raise ValueError(f"a block of {length} bytes")
        block = self._exactly(length)
        self._block = pa.decompress(block, decompressed_size=_varint(block), codec="snappy", asbytes=True)
        return True

    def _exactly(self, count: int) -> bytes:
        data = bytes(self._opened.read(count))
        if len(data) < count:
            raise ValueError("it ends within a block")
        return data


def _varint(block: bytes) -> int:
    number = 0
    for place, byte in enumerate(block[:5]):
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:  # noqa: PLR2004 - the last one
            return number
    raise ValueError("a block without a length")
