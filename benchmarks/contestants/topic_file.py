"""Files that hold a partition for Java peers, with keys and values in a compact binary form.

A file is blocks of records; the reader and writer in Java is ``TopicFile``. A block is the number of records, the
number of bytes of all keys and of all values (int32), then the timestamps (int64 milliseconds), the end of each key
among the keys and of each value among the values (int32), the keys, the values; all big-endian.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray


@dataclass(frozen=True)
class Cells:
    """Byte strings one after the other.

    Attributes:
        data: uint8: all of them.
        ends: int64: where each ends.
    """

    data: NDArray[np.uint8]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, array: pa.Array) -> Cells:
        """Those of an array of strings or binaries without nulls."""
        offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]
        data = np.frombuffer(array.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
        return cls(data, (offsets[1:] - offsets[0]).astype(np.int64))

    @classmethod
    def concat(cls, parts: Iterable[Cells]) -> Cells:
        """Those of all parts."""
        parts = [cls(np.empty(0, np.uint8), np.empty(0, np.int64)), *parts]
        begins = np.cumsum([0, *(len(part.data) for part in parts)])
        ends = [part.ends + begin for part, begin in zip(parts, begins, strict=False)]
        return cls(np.concatenate([part.data for part in parts]), np.concatenate(ends))

    @property
    def begins(self) -> NDArray[np.int64]:
        """Where each begins."""
        return np.concatenate([[0], self.ends[:-1]]) if len(self.ends) else self.ends

    def int64(self, begins: NDArray[np.int64]) -> pa.Array:
        """The big-endian numbers that begin there."""
        return self._numbers(begins, ">i8")

    def int32(self, begins: NDArray[np.int64]) -> pa.Array:
        """The big-endian numbers that begin there."""
        return self._numbers(begins, ">i4")

    def text(self, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> pa.Array:
        """The strings between."""
        offsets = np.concatenate([[0], np.cumsum(ends - begins)])
        places = np.arange(offsets[-1]) + np.repeat(begins - offsets[:-1], ends - begins)
        buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(self.data[places])]
        return pa.Array.from_buffers(pa.string(), len(ends), buffers)

    def _numbers(self, begins: NDArray[np.int64], dtype: str) -> pa.Array:
        places = begins[:, None] + np.arange(np.dtype(dtype).itemsize)
        return pa.array(self.data[places].view(dtype).reshape(-1).astype(dtype[1:]))


@dataclass(frozen=True)
class Records:
    """Records of a partition, keys and values serialised; timestamps are int64 milliseconds."""

    timestamp: NDArray[np.int64]
    keys: Cells
    values: Cells


def write(path: Path, blocks: Iterable[Records]) -> None:
    """Writes a partition."""
    with path.open("wb") as file:
        for block in blocks:
            file.write(
                np.array([len(block.timestamp), len(block.keys.data), len(block.values.data)], ">i4").tobytes()
                + block.timestamp.astype(">i8").tobytes()
                + block.keys.ends.astype(">i4").tobytes()
                + block.values.ends.astype(">i4").tobytes()
            )
            file.write(block.keys.data)
            file.write(block.values.data)


def read(path: Path) -> Records:
    """Reads a partition, all at once."""
    content, position = path.read_bytes(), 0

    def take(count: int, dtype: str) -> NDArray[np.generic]:
        nonlocal position
        taken = np.frombuffer(content, dtype, count, position)
        position += taken.nbytes
        return taken

    timestamps, keys, values = [np.empty(0, np.int64)], [], []
    while position < len(content):
        records, key_bytes, value_bytes = map(int, take(3, ">i4"))
        timestamps.append(take(records, ">i8").astype(np.int64))
        key_ends, value_ends = (take(records, ">i4").astype(np.int64) for _ in range(2))
        keys.append(Cells(take(key_bytes, "u1"), key_ends))
        values.append(Cells(take(value_bytes, "u1"), value_ends))
    return Records(np.concatenate(timestamps), Cells.concat(keys), Cells.concat(values))


def big_endian(numbers: pa.Array, dtype: str) -> pa.Array:
    """Each number as a binary: ``>i8`` or ``>i4``."""
    content = np.asarray(numbers).astype(dtype)
    fixed = pa.Array.from_buffers(pa.binary(content.itemsize), len(content), [None, pa.py_buffer(content.tobytes())])
    return fixed.cast(pa.binary())


def joined(*parts: pa.Array) -> pa.Array:
    """Binaries, one after the other, row by row."""
    return pc.binary_join_element_wise(*(part.cast(pa.binary()) for part in parts), b"")
