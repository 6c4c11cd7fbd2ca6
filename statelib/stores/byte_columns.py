"""Keys and values of a backend as columns: put together from their parts, and put into order, many at once.

A column is a binary Arrow array without nulls; large_binary beyond 2 GiB.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from statelib.arrow_buffers import spans_of
from statelib.kernels.bytes_order import sort_order
from statelib.kernels.spans import copy_spans

if TYPE_CHECKING:
    from numpy.typing import NDArray

Column: TypeAlias = pa.BinaryArray | pa.LargeBinaryArray


def packed(rows: NDArray[Any]) -> Column:
    """The bytes of each row of an array: of numbers (``">i8"``), of records, or of two dimensions."""
    width = rows.dtype.itemsize * int(np.prod(rows.shape[1:]))
    data = np.ascontiguousarray(rows).view(np.uint8).reshape(-1) if len(rows) else np.empty(0, np.uint8)
    return _column(np.arange(len(rows) + 1) * width, data)


def times(milliseconds: NDArray[np.int64]) -> Column:
    """Times as keys begin or end with them: eight bytes each, big-endian."""
    return packed(milliseconds.astype(">i8"))


def joined(*parts: Column) -> Column:
    """The parts of each row, one after the other."""
    spans = [spans_of(part) for part in parts]
    offsets = np.zeros(len(parts[0]) + 1, np.int64)
    np.cumsum(np.sum([length for _, _, length in spans], axis=0), out=offsets[1:])
    data = np.empty(offsets[-1], np.uint8)
    position = offsets[:-1]
    for content, start, length in spans:
        copy_spans(content, start, length, data, position)
        position = position + length
    return _column(offsets, data)


def empty_values(count: int) -> Column:
    """Values of no bytes, for an index that has keys only."""
    return _column(np.zeros(count + 1, np.int64), np.empty(0, np.uint8))


def in_order(keys: Column) -> pa.Array:
    """The indices that put ``keys`` into bytewise order."""
    return pa.array(sort_order(*spans_of(keys)))


def _column(offsets: NDArray[np.int64], data: NDArray[np.uint8]) -> Column:
    small = offsets[-1] <= np.iinfo(np.int32).max
    buffers = [None, pa.py_buffer(offsets.astype(np.int32) if small else offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary() if small else pa.large_binary(), len(offsets) - 1, buffers)
