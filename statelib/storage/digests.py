"""The SHA-256 of files: of what is written on the way, of what is read before it is used."""

from __future__ import annotations

import hashlib
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from typing_extensions import Buffer

_PIECE_BYTES = 1 << 20


class DigestingOutput(io.RawIOBase):
    """Passes bytes on to ``target``, counting and hashing them on the way.

    Attributes:
        size: How many bytes there were.
    """

    def __init__(self, target: io.RawIOBase) -> None:
        self.size = 0
        self._target = target
        self._hash = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """Of all bytes so far, in hex."""
        return self._hash.hexdigest()

    def writable(self) -> bool:
        """Yes."""
        return True

    def tell(self) -> int:
        """How many bytes have been written."""
        return self.size

    def write(self, data: Buffer, /) -> int:
        """Writes all of ``data``."""
        self._target.write(data)
        self._hash.update(data)
        written: int = memoryview(data).nbytes
        self.size += written
        return written

    def close(self) -> None:
        """Closes the target too."""
        if not self.closed:
            super().close()
            self._target.close()


def sha256_of_file(path: Path) -> str:
    """Of a local file, in hex."""
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def sha256_of(opened: pa.NativeFile) -> str:
    """Of a whole file, in hex; it is at its beginning after it."""
    digest = hashlib.sha256()
    opened.seek(0)
    while piece := opened.read_buffer(_PIECE_BYTES):
        digest.update(piece)
    opened.seek(0)
    return digest.hexdigest()
