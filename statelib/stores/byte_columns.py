"""Keys and values of a backend as columns: put together from their parts, and put into order, many at once.

A column is a binary Arrow array without nulls; large_binary beyond 2 GiB.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from statelib.columns.arrow_buffers import any_binary_array, from_zero, spans_of
from statelib.columns.bytes_order import sort_order
from statelib.columns.spans import append_spans, copy_spans
from statelib.errors.kinds import CorruptedDataError

if TYPE_CHECKING:
    from collections.abc import Sequence

Column: TypeAlias = pa.BinaryArray | pa.LargeBinaryArray
Spans: TypeAlias = tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]
"""Rows where they lie: bytes, and int64 where each begins and how long it is."""


def packed(rows: NDArray[Any]) -> Column:
    """The bytes of each row of an array: of numbers (``">i8"``), of records, or of two dimensions."""
    data, width = _bytes_of(rows)
    return any_binary_array(np.arange(len(rows) + 1) * width, data)


def _bytes_of(rows: NDArray[Any]) -> tuple[NDArray[np.uint8], int]:
    """All bytes of an array, and how many each row has."""
    width = rows.dtype.itemsize * int(np.prod(rows.shape[1:]))
    return np.ascontiguousarray(rows).view(np.uint8).reshape(-1) if len(rows) else np.empty(0, np.uint8), width


def times(milliseconds: NDArray[np.int64]) -> Column:
    """Times as keys begin or end with them: eight bytes each, big-endian."""
    return packed(milliseconds.astype(">i8"))


def joined(*parts: Column | Spans) -> Column:
    """The parts of each row, one after the other."""
    spans = [part if isinstance(part, tuple) else spans_of(part) for part in parts]
    offsets = np.zeros(len(spans[0][1]) + 1, np.int64)
    for _, _, length in spans:
        offsets[1:] += length
    np.cumsum(offsets, out=offsets)
    data = np.empty(offsets[-1], np.uint8)
    end = offsets[:-1].copy()
    for content, start, length in spans:
        append_spans(content, start, length, data, end)
    return any_binary_array(offsets, data)


def spans_of_rows(rows: NDArray[Any]) -> Spans:
    """The bytes of each row of an array, as `packed`."""
    data, width = _bytes_of(rows)
    return data, np.arange(len(rows)) * width, np.full(len(rows), width)


def repeated(value: bytes, count: int) -> Spans:
    """The same bytes in each row."""
    return np.frombuffer(value, np.uint8), np.zeros(count, np.int64), np.full(count, len(value))


def cut(content: NDArray[np.uint8], start: NDArray[np.int64], length: NDArray[np.int64]) -> Column:
    """Of each row the ``length`` bytes of ``content`` from ``start`` on."""
    offsets = from_zero(length)
    data = np.empty(offsets[-1], np.uint8)
    copy_spans(content, start, length, data, offsets[:-1])
    return any_binary_array(offsets, data)


def unpacked(column: Column, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The inverse of `packed`: all bytes of a column that starts at its buffer's first, as an array of ``dtype``."""
    return np.frombuffer(column.buffers()[2], dtype)


def split_head(column: Column, head: np.dtype[Any], store: str) -> tuple[NDArray[Any], Column]:
    """What each row begins with, as an array of ``head``, and the rest of it.

    Raises:
        CorruptedDataError: A row is shorter than that.
    """
    content, start, length = _spans_of_at_least(column, head, store)
    heads = unpacked(cut(content, start, np.full(len(start), head.itemsize)), head)
    return heads, cut(content, start + head.itemsize, length - head.itemsize)


def split_tail(column: Column, tail: np.dtype[Any], store: str) -> tuple[Column, NDArray[Any]]:
    """What comes before, and what each row ends with, as an array of ``tail``.

    Raises:
        CorruptedDataError: A row is shorter than that.
    """
    content, start, length = _spans_of_at_least(column, tail, store)
    before = length - tail.itemsize
    return cut(content, start, before), unpacked(cut(content, start + before, np.full(len(start), tail.itemsize)), tail)


def split_framed(column: Column, length: np.dtype[Any], store: str) -> tuple[Column, Column]:
    """Of rows that begin with a length: as many bytes as it says, and what comes after them.

    Raises:
        CorruptedDataError: A row is shorter than it says.
    """
    lengths, rest = split_head(column, length, store)
    first, (content, start, size) = lengths.astype(np.int64), spans_of(rest)
    if len(first) and ((first < 0) | (first > size)).any():
        raise CorruptedDataError("an entry is shorter than it says", store=store)
    return cut(content, start, first), cut(content, start + first, size - first)


def _spans_of_at_least(
    column: Column, part: np.dtype[Any], store: str
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    content, start, length = spans_of(column)
    if len(length) and length.min() < part.itemsize:
        raise CorruptedDataError(
            f"an entry has {length.min()} bytes where at least {part.itemsize} are needed", store=store
        )
    return content, start, length


def grouped(column: Column, offsets: NDArray[np.int64]) -> Column:
    """Rows made of many: of row ``i`` the bytes of the rows ``offsets[i]`` to ``offsets[i + 1]`` of ``column``."""
    content, start, length = spans_of(column)
    bounds = np.append(start, start[-1:] + length[-1:])
    return any_binary_array(bounds[offsets] if len(bounds) else np.zeros(1, np.int64), content)


def raw_column(values: Sequence[bytes | None]) -> pa.LargeBinaryArray:
    """What a backend gives for many keys, null where it has nothing."""
    return pa.array(values, pa.large_binary())


def empty_values(count: int) -> Column:
    """Values of no bytes, for an index that has keys only."""
    return any_binary_array(np.zeros(count + 1, np.int64), np.empty(0, np.uint8))


def in_order(keys: Column) -> pa.Array:
    """The indices that put ``keys`` into bytewise order."""
    return pa.array(sort_order(*spans_of(keys)))
