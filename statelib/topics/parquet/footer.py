"""The footer of an archive's Parquet file, and the seal by which damage to it is noticed.

Pages carry checksums of their own. The footer says where they are, of which type, and which row groups can be skipped;
Parquet has no checksum for it, and its readers crash or skip records where it is damaged. So the writer puts a seal
between the last page and the footer, where readers that do not know it never look::

    +---------------------------------+------------------------------------+----------------+-------------+--------+
    | pages; "PAR1" before the first  | seal: "hsfooter" + SHA-256 (32 B)  | footer, Thrift | length u32  | "PAR1" |
    +---------------------------------+------------------------------------+----------------+-------------+--------+

The SHA-256 is that of all that follows the seal. A file without a seal was written by others, or before there was one:
its footer is believed.
"""

from __future__ import annotations

import hashlib
import io
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from typing_extensions import Buffer

SEAL = b"hsfooter"
"""Another version of the seal gets another name, and this one stays readable."""

_SEAL_BYTES = len(SEAL) + hashlib.sha256().digest_size
_END_BYTES = 8  # length and "PAR1"
_TAIL_BYTES = 64 << 10  # one request, which has the whole footer of nearly every file


class SealingOutput(io.RawIOBase):
    """What a Parquet writer writes to: passes bytes on to ``target``, and seals the footer in `end`.

    The writer closes between `hold` and `end`; with that it writes the footer.
    """

    def __init__(self, target: io.RawIOBase) -> None:
        self._target = target
        self._position = 0
        self._held: bytearray | None = None

    def writable(self) -> bool:
        """Yes."""
        return True

    def tell(self) -> int:
        """How many bytes have been written, a seal not counted."""
        return self._position

    def write(self, data: Buffer, /) -> int:
        """Writes all of ``data``."""
        if self._held is None:
            self._target.write(data)
        else:
            self._held += data
        written: int = memoryview(data).nbytes
        self._position += written
        return written

    def hold(self) -> None:
        """Keeps what is written from now on, until `end`."""
        self._held = bytearray()

    def end(self) -> None:
        """Passes on what was kept, which ends with the footer, with the seal before that."""
        held = bytes(self._held or b"")
        start = len(held) - _END_BYTES - _footer_length(held)
        self._target.write(held[:start] + SEAL + hashlib.sha256(held[start:]).digest() + held[start:])
        self._held = None


def read_footer(source: pa.NativeFile) -> pq.FileMetaData:
    """A file's footer, if it is the one that was written.

    Raises:
        ArrowInvalid: It is not, or it is none.
    """
    return read_sealed_footer(source)[0]


def read_sealed_footer(source: pa.NativeFile) -> tuple[pq.FileMetaData, bool]:
    """As `read_footer`, and whether there is a seal, so that the file is one of this package's writer."""
    size = source.size()
    tail = _tail(source, min(size, _TAIL_BYTES))
    length = _footer_length(tail) + _END_BYTES
    if length > size:
        raise pa.ArrowInvalid("it does not end as a Parquet file does")
    if length + _SEAL_BYTES > len(tail) and len(tail) < size:
        tail = _tail(source, min(size, length + _SEAL_BYTES))
    footer = tail[len(tail) - length :]
    seal = tail[max(len(tail) - length - _SEAL_BYTES, 0) : len(tail) - length].to_pybytes()
    is_sealed = seal.startswith(SEAL)
    if is_sealed and seal[len(SEAL) :] != hashlib.sha256(footer).digest():
        raise pa.ArrowInvalid("its footer is damaged: its SHA-256 is not that of what was written")
    return pq.read_metadata(pa.BufferReader(footer)), is_sealed


def _tail(source: pa.NativeFile, length: int) -> pa.Buffer:
    source.seek(source.size() - length)
    return source.read_buffer(length)


def _footer_length(tail: pa.Buffer | bytes) -> int:
    return int.from_bytes(bytes(tail[len(tail) - _END_BYTES : len(tail) - 4]), "little")
