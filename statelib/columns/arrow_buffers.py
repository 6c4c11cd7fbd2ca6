"""Arrow arrays as numpy arrays over the same memory, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.errors.kinds import InternalError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_MAX_ARRAY_BYTES = (1 << 31) - 1


def fixed_width(data_type: pa.DataType) -> int | None:
    """The bytes that a value of ``data_type`` takes, None where that differs from value to value."""
    if pa.types.is_boolean(data_type):
        return 1
    if pa.types.is_primitive(data_type) or pa.types.is_decimal(data_type) or pa.types.is_fixed_size_binary(data_type):
        return int(data_type.bit_width) // 8
    return None


def is_any_list(data_type: pa.DataType) -> bool:
    """Whether it is a list of any layout: plain, large or of a fixed size."""
    return bool(
        pa.types.is_list(data_type) or pa.types.is_large_list(data_type) or pa.types.is_fixed_size_list(data_type)
    )


def fixed_dtype(width: int) -> np.dtype[Any]:
    """A numpy type for values of ``width`` bytes: an unsigned little-endian number where there is one."""
    return np.dtype(f"<u{width}") if width in {1, 2, 4, 8} else np.dtype(("u1", (width,)))


def fixed_values(array: pa.Array) -> NDArray[Any]:
    """The values of an array of fixed width as `fixed_dtype`, zero where null: [n], or uint8[n, width]."""
    width = fixed_width(array.type)
    if width is None:
        raise InternalError(f"{array.type} has no fixed width")
    dtype = fixed_dtype(width)
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    data = array.buffers()[-1]
    if data is None:
        return np.zeros(len(array), dtype)
    values = np.frombuffer(data, np.uint8)[array.offset * width : (array.offset + len(array)) * width]
    numbers = values.reshape(-1, width) if dtype.subdtype else values.view(dtype)
    if array.null_count:
        valid = valid_of(array)
        numbers = np.where(valid[:, None] if dtype.subdtype else valid, numbers, np.zeros((), numbers.dtype))
    return numbers


def fixed_array(data_type: pa.DataType, values: NDArray[Any], valid: NDArray[np.bool_]) -> pa.Array:
    """The inverse of `fixed_values`."""
    if pa.types.is_boolean(data_type):
        bits = pa.py_buffer(np.packbits(values != 0, bitorder="little"))
        return pa.Array.from_buffers(data_type, len(valid), [bitmap_of(valid), bits])
    buffer = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(data_type, len(valid), [bitmap_of(valid), buffer])


def valid_of(array: pa.Array) -> NDArray[np.bool_]:
    """bool[n]: not null."""
    if array.null_count == 0:
        return np.ones(len(array), np.bool_)
    bits = array.is_valid()  # pyarrow would hand them over one by one
    packed = np.frombuffer(bits.buffers()[1], np.uint8)
    return np.unpackbits(packed, count=bits.offset + len(bits), bitorder="little")[bits.offset :].view(np.bool_)


def bitmap_of(valid: NDArray[np.bool_]) -> pa.Buffer | None:
    """The inverse of `valid_of`: a validity buffer, None where nothing is null."""
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))


def from_zero(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[n + 1]: where each begins that lie one behind the other, and where the last one ends."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def offsets_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[n + 1]: where values of these lengths begin and end, one after the other.

    Raises:
        InternalError: They take more than 2 GiB, the bound of an Arrow array with 32-bit offsets.
    """
    offsets = from_zero(lengths)
    if offsets[-1] > _MAX_ARRAY_BYTES:
        raise InternalError(
            f"one batch takes {offsets[-1]} serialised bytes, more than 2 GiB", next_step="lower the batch size"
        )
    return offsets


def binary_array(offsets: NDArray[np.int64], data: NDArray[np.uint8], valid: NDArray[np.bool_]) -> pa.BinaryArray:
    """An Arrow array over these bytes; ``offsets`` as from `offsets_of`."""
    buffers = [bitmap_of(valid), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(valid), buffers)


def any_binary_array(
    offsets: NDArray[np.int64], data: NDArray[np.uint8], valid: NDArray[np.bool_] | None = None
) -> pa.BinaryArray | pa.LargeBinaryArray:
    """As `binary_array`, of any size: large_binary beyond 2 GiB. ``valid``: None: nothing is null."""
    is_small = offsets[-1] <= _MAX_ARRAY_BYTES
    buffers = [
        None if valid is None else bitmap_of(valid),
        pa.py_buffer(offsets.astype(np.int32) if is_small else offsets),
        pa.py_buffer(data),
    ]
    return pa.Array.from_buffers(pa.binary() if is_small else pa.large_binary(), len(offsets) - 1, buffers)


def spans_of(
    array: pa.BinaryArray | pa.LargeBinaryArray,
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """(bytes, int64[n] start, int64[n] length) of a binary array's values; null values have length 0."""
    _, offset_buffer, data_buffer = array.buffers()
    if len(array) == 0:
        return np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.int64)
    kind = np.int64 if pa.types.is_large_binary(array.type) else np.int32
    offsets = np.frombuffer(offset_buffer, kind)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    data = np.empty(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    length = np.diff(offsets)
    if array.null_count:
        length *= valid_of(array)
    return data, offsets[:-1], length


def byte_buffers(array: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.signedinteger[Any]], NDArray[np.bool_]]:
    """(bytes, int32 or int64[n + 1] offsets, bool[n] validity or bool[0] without nulls) of an array of strings.

    Nothing is copied, except of views and of binary of fixed size.
    """
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        kind: type[np.signedinteger[Any]] = np.int32
    else:
        if not (pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)):
            array = array.cast(pa.large_binary())
        kind = np.int64
    _, offset_buffer, data_buffer = array.buffers()
    if offset_buffer is None or len(array) == 0:
        offsets = np.zeros(len(array) + 1, dtype=kind)
    else:
        offsets = np.frombuffer(offset_buffer, kind, len(array) + 1, array.offset * np.dtype(kind).itemsize)
    data = (
        np.frombuffer(data_buffer, np.uint8) if data_buffer is not None and data_buffer.size else np.empty(0, np.uint8)
    )
    return data, offsets, valid_of(array) if array.null_count else np.empty(0, np.bool_)


def indices_of(array: pa.DictionaryArray) -> NDArray[np.signedinteger]:
    """The index of each value in the dictionary, 0 for a null."""
    indices = array.indices
    return np.asarray(indices.fill_null(0) if indices.null_count else indices)


def taken(array: pa.Array, indices: pa.Array) -> pa.Array:
    """The values at ``indices`` (int64), in that order; null where an index is.

    A struct's field by field, which Arrow takes longer for; and if all are null, no more than that many.
    """
    missing = indices.is_null() if indices.null_count else None
    return _by_field(array, lambda values: values.take(indices), len(indices), missing)


def taken_rows(rows: pa.RecordBatch, numbers: NDArray[np.int64]) -> pa.RecordBatch:
    """As `taken`, of all columns."""
    chosen = pa.array(numbers)
    return pa.RecordBatch.from_arrays([taken(column, chosen) for column in rows.columns], schema=rows.schema)


def filtered(array: pa.Array, keep: pa.BooleanArray) -> pa.Array:
    """The values for which ``keep`` is true, as `taken` of many rows in their order, but in a third of the time."""
    return _by_field(array, lambda values: values.filter(keep), keep.true_count, None)


def _by_field(
    array: pa.Array, chosen: Callable[[pa.Array], pa.Array], count: int, missing: pa.BooleanArray | None
) -> pa.Array:
    """The ``count`` values that are ``chosen``; ``missing``: those of them that have no value in ``array``."""
    if array.null_count == len(array):
        return pa.nulls(count, array.type)
    if not pa.types.is_struct(array.type) or not array.type.num_fields:
        return chosen(array)
    fields = [_by_field(array.field(place), chosen, count, missing) for place in range(array.type.num_fields)]
    null = pc.invert(pc.fill_null(chosen(array.is_valid()), fill_value=False)) if array.null_count else missing
    return pa.StructArray.from_arrays(fields, fields=list(array.type), mask=null)
