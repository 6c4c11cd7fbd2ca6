"""Avro's single values that are kept as bytes, made into columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import binary_array, fixed_array, offsets_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.serdes.spans import Spans

_DECIMAL_BYTES = 16
_NO_DECIMAL = "a decimal of no bytes, or of more digits than its type"
_HEX = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), np.uint8).reshape(256, 2)


def texts(spans: Spans, arrow_type: pa.DataType) -> tuple[pa.Array, NDArray[np.bool_], str]:
    """Strings, bool[n]: which are no UTF-8 (and null), and what that is called."""
    data, bad = spans.binary(), np.zeros(len(spans.start), np.bool_)
    try:
        return data.cast(arrow_type), bad, ""
    except pa.ArrowInvalid:
        bad[:] = [not _is_text(value) for value in data.to_pylist()]
        good = data.take(pa.array(np.arange(len(bad)), mask=bad))
        return good.cast(arrow_type), bad, "a string that is not UTF-8"


def _is_text(value: bytes) -> bool:
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def decimals(spans: Spans, arrow_type: pa.DataType) -> tuple[pa.Array, NDArray[np.bool_], str]:
    """Decimals of big-endian two's complement of any length; bool[n]: which do not fit (and are null), and why."""
    content, start, length = spans
    number = np.zeros((len(start), _DECIMAL_BYTES), np.uint8)  # little-endian
    bad = length == 0
    for size in np.unique(length[~bad]):
        rows = np.flatnonzero(length == size)
        data = content[start[rows][:, None] + np.arange(size)][:, ::-1]
        sign = np.where(data[:, -1] >= 0x80, np.uint8(0xFF), np.uint8(0))  # noqa: PLR2004 - the sign bit
        number[rows] = sign[:, None]
        number[rows, :size] = data[:, :_DECIMAL_BYTES]
        if size > _DECIMAL_BYTES:
            top = np.where(number[rows, -1] >= 0x80, 0xFF, 0)  # noqa: PLR2004 - the sign bit
            bad[rows] = (data[:, _DECIMAL_BYTES:] != top[:, None]).any(axis=1)
    wide = fixed_array(pa.decimal128(38, arrow_type.scale), number, ~bad)
    try:
        return wide.cast(arrow_type), bad, _NO_DECIMAL
    except pa.ArrowInvalid:
        limit = 10**arrow_type.precision
        whole = [int.from_bytes(row.tobytes(), "little", signed=True) for row in number]
        bad |= np.array([not -limit < one < limit for one in whole], np.bool_)
        fitting = fixed_array(pa.decimal128(38, arrow_type.scale), number, ~bad).cast(arrow_type)
        return fitting, bad, _NO_DECIMAL


def uuids(spans: Spans) -> pa.StringArray:
    """The text of UUIDs of 16 bytes."""
    content, start, _ = spans
    digits = _HEX[content[start[:, None] + np.arange(16)]].reshape(-1, 32)
    text = np.insert(digits, [8, 12, 16, 20], ord("-"), axis=1)
    count = len(start)
    return binary_array(offsets_of(np.full(count, 36)), text.reshape(-1), np.ones(count, np.bool_)).cast(pa.string())
