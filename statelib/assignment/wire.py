"""Kafka's primitives in the metadata of assignments, big-endian.

=========  ==========================================================================
number     int32
uuid       16 bytes, the more significant half first
bytes      int32 length, then these
text       uint16 length in bytes, then UTF-8 (Java's ``writeUTF``, where the two agree)
array      int32 count, then as many elements
=========  ==========================================================================
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING
from uuid import UUID

from statelib.assignment.model import TaskId
from statelib.errors.kinds import ConfigurationError, CorruptedDataError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import TypeVar

    Element = TypeVar("Element")

_NUMBER = struct.Struct(">i")
_LENGTH = struct.Struct(">H")
_LONGEST_TEXT = 0xFFFF
_LAST_OF_BMP = "\uffff"


def number(value: int) -> bytes:
    """An int32."""
    return _NUMBER.pack(value)


def text(value: str) -> bytes:
    """A text of at most 65,535 bytes.

    Raises:
        ConfigurationError: It is longer, or has characters that Java writes otherwise: NUL, or beyond U+FFFF.
    """
    data = value.encode()
    if len(data) > _LONGEST_TEXT or "\0" in value or max(value, default="") > _LAST_OF_BMP:
        raise ConfigurationError(f"{value[:50]!r} cannot be written as Java's DataOutput.writeUTF does")
    return _LENGTH.pack(len(data)) + data


def array(elements: Collection[Element], encoded: Callable[[Element], bytes]) -> bytes:
    """Elements after their number."""
    return number(len(elements)) + b"".join(map(encoded, elements))


def task(task_id: TaskId) -> bytes:
    """Two int32: sub-topology, partition."""
    return number(task_id.sub_topology) + number(task_id.partition)


class Reader:
    """Reads what is in ``data`` one after the other.

    Args:
        data: All bytes.
        what: They are, for errors.

    Raises (all methods):
        CorruptedDataError: They end too early, or cannot be.
    """

    def __init__(self, data: bytes, what: str) -> None:
        self._data = data
        self._at = 0
        self._what = what

    def number(self) -> int:
        """An int32."""
        value: int = _NUMBER.unpack(self._take(_NUMBER.size))[0]
        return value

    def uuid(self) -> UUID:
        """16 bytes."""
        return UUID(bytes=self._take(16))

    def data(self) -> bytes:
        """Bytes after their number."""
        return self._take(self.number())

    def text(self) -> str:
        """Of a text after its length."""
        return self._decoded(self._take(_LENGTH.unpack(self._take(_LENGTH.size))[0]))

    def text_of_data(self) -> str:
        """Of UTF-8 in ``bytes``."""
        return self._decoded(self.data())

    def array(self, element: Callable[[], Element]) -> list[Element]:
        """Elements after their number."""
        count = self.number()
        if not 0 <= count <= len(self._data):
            raise self._damaged(f"an array of {count} elements")
        return [element() for _ in range(count)]

    def task(self) -> TaskId:
        """Two int32."""
        return TaskId(self.number(), self.number())

    def end(self) -> None:
        """Nothing follows."""
        if self._at < len(self._data):
            raise self._damaged(f"{len(self._data) - self._at} bytes too many")

    def _take(self, size: int) -> bytes:
        if not 0 <= size <= len(self._data) - self._at:
            raise self._damaged(f"{size} bytes where {len(self._data) - self._at} are left")
        self._at += size
        return self._data[self._at - size : self._at]

    def _decoded(self, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise self._damaged("no UTF-8") from None

    def _damaged(self, why: str) -> CorruptedDataError:
        return CorruptedDataError(f"{self._what} cannot be read: {why}, at byte {self._at} of {len(self._data)}")
