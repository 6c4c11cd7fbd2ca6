"""Objects as files, for readers and writers that want a file."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from statelib.storage.local_files import sync_directory

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from obstore import WritableFile
    from typing_extensions import Buffer


class RangedInput(io.RawIOBase):
    """An object as a file for random access: each read is one request for a range.

    Args:
        length: The object's size in bytes.
        read_range: Gives ``length`` bytes from a position on.
    """

    def __init__(self, length: int, read_range: Callable[[int, int], bytes]) -> None:
        self._length = length
        self._read_range = read_range
        self._position = 0

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Moves the position; nothing is read."""
        origin = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._length}[whence]
        self._position = origin + offset
        return self._position

    def tell(self) -> int:
        """The position."""
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        """Up to ``size`` bytes (None, -1: all that are left), in one request."""
        left = max(self._length - self._position, 0)
        length = left if size is None or size < 0 else min(size, left)
        data = self._read_range(self._position, length) if length else b""
        self._position += len(data)
        return data

    def readinto(self, buffer: Buffer, /) -> int:
        """As `read`, for a buffer that lies over it."""
        into = memoryview(buffer).cast("B")
        data = self.read(len(into))
        into[: len(data)] = data
        return len(data)


class Output(io.RawIOBase):
    """A new object as a file; if it is a local file, it is on the disk when it is closed.

    Args:
        target: Takes the bytes.
        errors: Makes the context in which ``target`` is used.
    """

    def __init__(self, target: io.FileIO | WritableFile, errors: Callable[[], AbstractContextManager[None]]) -> None:
        self._target = target
        self._errors = errors

    def writable(self) -> bool:
        """Yes."""
        return True

    def write(self, data: Buffer, /) -> int:
        """Writes all of ``data``."""
        with self._errors():
            return self._target.write(memoryview(data).cast("B"))  # obstore takes no other format; Arrow's is signed

    def close(self) -> None:
        """Ends the object."""
        if self.closed:
            return
        super().close()
        with self._errors():
            if isinstance(self._target, io.FileIO):
                os.fsync(self._target.fileno())
                sync_directory(Path(str(self._target.name)).parent)
            self._target.close()
