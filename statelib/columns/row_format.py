r"""The native row format: struct values as bytes, for state.

A row of ``struct<a: int64, b: string, c: struct<d: bool>>``::

    +---------+--------+------------------+------------------+------------+ +------------------+
    | version | bitmap | a: int64, 8      | b: length u32, 4 | d: bool, 1 | | b: its bytes     |
    | u8 = 1  | ...    |                  |                  |            | |                  |
    +---------+--------+------------------+------------------+------------+ +------------------+
     \_________________ head: the same size in every row ________________/   \_ tail, by field _/

* Little-endian throughout (it is read by numpy, not compared by RocksDB).
* Fields are numbered depth-first, a struct before its fields: a, b, c, c.d. Bit ``i % 8`` of bitmap byte ``i // 8`` is
  set iff field ``i`` is not null. Below a null struct everything is null.
* A field of fixed width takes its width in the head (bool: 1 byte, decimals: their two's complement), one of variable
  length a u32. Null takes the same space, all zero, so equal values are equal bytes.
* The tail has the bytes of strings and binaries in the order of their fields; a list or map is

      +-----------+----------------------+------------------------------------------+
      | count u32 | length u32 per item  | items, each a row of ``struct<item: T>`` |
      +-----------+----------------------+------------------------------------------+

  and goes a slower way, item by item.
* A null row has no bytes of its own: null in, null out. The types are not in the row; whoever stores rows stores them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import (
    binary_array,
    bitmap_of,
    fixed_array,
    fixed_dtype,
    fixed_values,
    fixed_width,
    is_any_list,
    offsets_of,
    spans_of,
    valid_of,
)
from statelib.columns.spans import copy_spans
from statelib.errors.kinds import ConfigurationError, CorruptedDataError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

FORMAT_VERSION = 1

_LENGTH = np.dtype("<u4")


def encode_rows(rows: pa.StructArray) -> pa.BinaryArray:
    """The rows' bytes, one value a row; null stays null.

    Raises:
        InternalError: The batch takes more than 2 GiB.
    """
    layout = _Layout.of(rows.type)
    valid = valid_of(rows)
    columns = list(_columns(rows, valid))
    head = np.zeros(len(rows), layout.head)
    head["version"] = FORMAT_VERSION
    if layout.fields:
        bits = np.stack([column.valid for column in columns], axis=1)
        head["bitmap"] = np.packbits(bits, axis=1, bitorder="little")
    tails = []
    for name, column in zip(layout.names, columns, strict=True):
        if name is not None:
            head[name] = column.fixed
        if column.tail is not None:
            tails.append((column.tail, column.fixed.astype(np.int64)))
    lengths = sum((length for _, length in tails), np.full(len(rows), layout.head.itemsize)) * valid
    offsets = offsets_of(lengths)
    if not tails and valid.all():
        return binary_array(offsets, head.view(np.uint8).reshape(-1), valid)
    data = np.empty(offsets[-1], np.uint8)
    head_length = layout.head.itemsize * valid.astype(np.int64)
    head_start = np.arange(len(rows)) * layout.head.itemsize
    copy_spans(head.view(np.uint8).reshape(-1), head_start, head_length, data, offsets[:-1])
    position = offsets[:-1] + head_length
    for (tail, start), length in tails:
        copy_spans(tail, start, length, data, position)
        position = position + length
    return binary_array(offsets, data, valid)


def decode_rows(data: pa.BinaryArray, row_type: pa.StructType) -> pa.StructArray:
    """The rows that `encode_rows` made from an array of ``row_type``.

    Raises:
        ConfigurationError: A row is written in another version of the format.
        CorruptedDataError: A row's bytes are not a row of that type.
    """
    layout = _Layout.of(row_type)
    valid = valid_of(data)
    content, start, length = spans_of(data)
    head = _heads(layout, content, start, length, valid)
    bits = np.unpackbits(head["bitmap"], axis=1, bitorder="little", count=layout.fields).astype(np.bool_)
    position = start + layout.head.itemsize * valid
    fields: list[_Column] = []
    for number, (name, column_type) in enumerate(zip(layout.names, layout.types, strict=True)):
        fixed = None if name is None else head[name]
        if fixed is not None and _is_variable(column_type):
            field_length = fixed.astype(np.int64)
            fields.append(_Column(bits[:, number], fixed, (content, position)))
            position = position + field_length
        else:
            fields.append(_Column(bits[:, number], fixed, None))
    wrong = np.flatnonzero(valid & (position != start + length))
    if len(wrong):
        raise CorruptedDataError(
            f"a serialised row has {length[wrong[0]]} bytes, which do not fit its head", row=int(wrong[0])
        )
    return _assemble(row_type, valid, iter(fields))


@dataclass(frozen=True, slots=True)
class _Column:
    """One field of all rows.

    Attributes:
        valid: bool[n].
        fixed: What stands in the head: [n] of the head's dtype for it; None where only a bit does.
        tail: Of a field of variable length: (bytes, int64[n] where each row's begin in them); the head has the lengths.
    """

    valid: NDArray[np.bool_]
    fixed: Any
    tail: tuple[NDArray[np.uint8], NDArray[np.int64]] | None


@dataclass(frozen=True, slots=True)
class _Layout:
    """The head of a struct type: a name and a type for each field in depth-first order; no name: only a bit."""

    head: np.dtype[np.void]
    names: list[str | None]
    types: list[pa.DataType]

    @property
    def fields(self) -> int:
        return len(self.types)

    @staticmethod
    def of(row_type: pa.StructType) -> _Layout:
        types = list(_depth_first(row_type))
        names = [None if _is_only_a_bit(field) else f"field {i}" for i, field in enumerate(types)]
        parts: list[tuple[Any, ...]] = [("version", "u1"), ("bitmap", "u1", ((len(types) + 7) // 8,))]
        parts += [(name, _head_dtype(field)) for name, field in zip(names, types, strict=True) if name is not None]
        return _Layout(np.dtype(parts), names, types)


def _depth_first(struct: pa.StructType) -> Iterator[pa.DataType]:
    for field in struct:
        yield field.type
        if pa.types.is_struct(field.type):
            yield from _depth_first(field.type)


def _is_only_a_bit(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_struct(data_type) or pa.types.is_null(data_type))


def _is_variable(data_type: pa.DataType) -> bool:
    return not _is_only_a_bit(data_type) and fixed_width(data_type) is None


def _head_dtype(data_type: pa.DataType) -> np.dtype[Any]:
    width = fixed_width(data_type)
    return _LENGTH if width is None else fixed_dtype(width)


def _columns(struct: pa.StructArray, parent_valid: NDArray[np.bool_]) -> Iterator[_Column]:
    """The fields of ``struct``, depth-first; null wherever the struct is."""
    for column in struct.flatten():  # applies the struct's own nulls to its fields
        valid = valid_of(column) & parent_valid
        if pa.types.is_struct(column.type):
            yield _Column(valid, None, None)
            yield from _columns(column, valid)
        elif pa.types.is_null(column.type):
            yield _Column(valid, None, None)
        elif fixed_width(column.type) is not None:
            yield _Column(valid, fixed_values(column), None)
        else:
            content, start, length = spans_of(_as_binary(column))
            yield _Column(valid, length, (content, start))


def _as_binary(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _as_binary(column.dictionary_decode())
    if _is_text(kind):
        return column.cast(pa.binary())
    return _encode_lists(_as_list(column, kind))


def _is_text(kind: pa.DataType) -> bool:
    tests = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")
    return any(getattr(pa.types, f"is_{test}")(kind) for test in tests)


def _as_list(column: pa.Array, kind: pa.DataType) -> pa.ListArray:
    item = _item_type(kind)
    return column.cast(pa.list_(item))


def _item_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_map(kind):
        return pa.struct([kind.key_field, kind.item_field])
    if is_any_list(kind):
        return kind.value_type
    raise ConfigurationError(
        f"values of type {kind} cannot be kept in state", next_step="map them to structs, lists and plain values"
    )


def _encode_lists(lists: pa.ListArray) -> pa.Array:
    if lists.null_count == len(lists):  # headers mostly are
        return pa.nulls(len(lists), pa.binary())
    valid = valid_of(lists)
    counts = np.where(valid, np.diff(lists.offsets.to_numpy()), 0)
    items = lists.flatten()  # only what lies in non-null lists
    rows = encode_rows(pa.StructArray.from_arrays([items], names=["item"])).to_pylist()
    encoded: list[bytes | None] = []
    end = 0
    for count, there in zip(counts.tolist(), valid.tolist(), strict=True):
        start, end = end, end + count
        sizes = np.array([count, *map(len, rows[start:end])], _LENGTH)
        encoded.append(sizes.tobytes() + b"".join(rows[start:end]) if there else None)
    return pa.array(encoded, pa.binary())


def _decode_lists(data: pa.Array, kind: pa.DataType) -> pa.Array:
    if data.null_count == len(data):
        return pa.nulls(len(data), kind)
    rows: list[bytes] = []
    offsets = [0]
    for raw in data.to_pylist():
        if raw is not None:
            rows += _split_list(raw)
        offsets.append(len(rows))
    item = _item_type(kind)
    items = decode_rows(pa.array(rows, pa.binary()), pa.struct([("item", item)])).field(0)
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items, mask=data.is_null())
    if pa.types.is_map(kind):  # the same memory, but Arrow has no such cast
        return pa.Array.from_buffers(kind, len(lists), lists.buffers()[:2], children=[lists.values])
    return lists.cast(kind)


def _split_list(raw: bytes) -> list[bytes]:
    width = _LENGTH.itemsize
    count = int.from_bytes(raw[:width], "little")
    if len(raw) < width * (1 + count):
        raise CorruptedDataError(f"a serialised list of {count} items has {len(raw)} bytes")
    ends = width * (1 + count) + np.frombuffer(raw, _LENGTH, count, width).cumsum(dtype=np.int64)
    if (int(ends[-1]) if count else width) != len(raw):
        raise CorruptedDataError(f"a serialised list of {count} items has {len(raw)} bytes")
    starts = [width * (1 + count), *ends.tolist()]
    return [raw[start:end] for start, end in zip(starts, ends.tolist(), strict=False)]


def _heads(
    layout: _Layout,
    content: NDArray[np.uint8],
    start: NDArray[np.int64],
    length: NDArray[np.int64],
    valid: NDArray[np.bool_],
) -> NDArray[np.void]:
    size = layout.head.itemsize
    short = np.flatnonzero(valid & (length < size))
    if len(short):
        raise CorruptedDataError(
            f"a serialised row has {length[short[0]]} bytes, its head alone takes {size}", row=int(short[0])
        )
    head = np.zeros(len(valid), layout.head)
    copied = size * valid.astype(np.int64)
    copy_spans(content, start, copied, head.view(np.uint8).reshape(-1), np.arange(len(valid)) * size)
    other = np.flatnonzero(valid & (head["version"] != FORMAT_VERSION))
    if len(other):
        raise ConfigurationError(
            f"a row is written in format {head['version'][other[0]]}, and this release reads format {FORMAT_VERSION}",
            row=int(other[0]),
            next_step="use the release that wrote it, or migrate the state",
        )
    return head


def _assemble(struct: pa.StructType, valid: NDArray[np.bool_], columns: Iterator[_Column]) -> pa.StructArray:
    children = []
    for field in struct:
        column = next(columns)
        if pa.types.is_struct(field.type):
            children.append(_assemble(field.type, column.valid, columns))
        elif pa.types.is_null(field.type):
            children.append(pa.nulls(len(valid)))
        elif column.tail is None:
            children.append(fixed_array(field.type, column.fixed, column.valid))
        else:
            children.append(_gather(field.type, column))
    return pa.Array.from_buffers(struct, len(valid), [bitmap_of(valid)], children=children)


def _gather(kind: pa.DataType, column: _Column) -> pa.Array:
    content, start = column.tail  # type: ignore[misc]
    length = column.fixed.astype(np.int64)
    if len(length) and (start + length).max() > len(content):
        raise CorruptedDataError("a serialised row is shorter than its head says")
    offsets = offsets_of(length)
    data = np.empty(offsets[-1], np.uint8)
    copy_spans(content, start, length, data, offsets[:-1])
    raw = binary_array(offsets, data, column.valid)
    if pa.types.is_dictionary(kind):
        return _gathered(raw, kind.value_type).cast(kind)
    return _gathered(raw, kind)


def _gathered(raw: pa.BinaryArray, kind: pa.DataType) -> pa.Array:
    return raw.cast(kind) if _is_text(kind) else _decode_lists(raw, kind)
