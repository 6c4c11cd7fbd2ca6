"""Kafka's serdes of single values: bytes, strings, and types of a fixed width."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import (
    binary_array,
    fixed_array,
    fixed_dtype,
    fixed_values,
    fixed_width,
    offsets_of,
    spans_of,
    valid_of,
)
from statelib.serdes.base import Lenient, StrictSerde, all_good, without_bad

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

_BINARY = pa.binary()
_STRING = pa.string()


@dataclass(frozen=True, slots=True)
class BytesSerde(StrictSerde):
    """Kafka's ``ByteArraySerializer``: bytes as they are."""

    arrow_type: pa.DataType = _BINARY

    def serialize(self, values: pa.Array) -> pa.BinaryArray:
        """See `Serde`."""
        return values.cast(pa.binary())

    def deserialize_lenient(self, data: pa.BinaryArray) -> Lenient:
        """See `Serde`."""
        return all_good(data.cast(self.arrow_type))

    def describe(self) -> Mapping[str, object]:
        """See `Serde`."""
        return {"serde": "bytes", "type": str(self.arrow_type)}


@dataclass(frozen=True, slots=True)
class StringSerde(StrictSerde):
    """Kafka's ``StringSerializer`` with its default encoding, UTF-8."""

    arrow_type: pa.DataType = _STRING

    def serialize(self, values: pa.Array) -> pa.BinaryArray:
        """See `Serde`."""
        return values.cast(pa.binary())

    def deserialize_lenient(self, data: pa.BinaryArray) -> Lenient:
        """See `Serde`; bytes that are no UTF-8 are undecodable (Kafka's deserialiser would replace them)."""
        try:
            return all_good(data.cast(self.arrow_type))
        except pa.ArrowInvalid:
            reasons = [_utf8_problem(value) for value in data.to_pylist()]
            good, bad = without_bad(data, reasons)
            return Lenient(good.cast(self.arrow_type), bad, pa.array(reasons, pa.string()))

    def describe(self) -> Mapping[str, object]:
        """See `Serde`."""
        return {"serde": "string", "type": str(self.arrow_type)}


def _utf8_problem(value: bytes | None) -> str | None:
    try:
        if value is not None:
            value.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"not UTF-8 at byte {error.start}"
    return None


@dataclass(frozen=True, slots=True)
class FixedWidthSerde(StrictSerde):
    """Kafka's ``IntegerSerializer``, ``LongSerializer``, ``DoubleSerializer``, ``BooleanSerializer`` and their like."""

    arrow_type: pa.DataType

    @property
    def width(self) -> int:
        """Bytes of a value."""
        return fixed_width(self.arrow_type) or 0

    def serialize(self, values: pa.Array) -> pa.BinaryArray:
        """See `Serde`."""
        valid = valid_of(values)
        swapped = self._swap(fixed_values(values))
        if values.null_count:
            swapped = swapped[valid]
        data = np.ascontiguousarray(swapped).view(np.uint8).reshape(-1)
        return binary_array(offsets_of(valid.astype(np.int64) * self.width), data, valid)

    def deserialize_lenient(self, data: pa.BinaryArray) -> Lenient:
        """See `Serde`; bytes of another length are undecodable, and a boolean that is neither 0 nor 1."""
        content, start, length = spans_of(data.cast(pa.binary()))
        valid = valid_of(data)
        bad = valid & (length != self.width)
        good = valid & ~bad
        values = np.zeros(len(data), fixed_dtype(self.width))
        if self.width:
            wanted = start[good][:, None] + np.arange(self.width)
            values[good] = self._swap(content[wanted].view(values.dtype).reshape(-1, *values.shape[1:]))
        reasons = np.full(len(data), None, object)
        reasons[bad] = [f"{size} bytes, expected {self.width} of {self.arrow_type}" for size in length[bad]]
        if pa.types.is_boolean(self.arrow_type) and (neither := values > 1).any():
            reasons[neither] = [f"the byte {value:#04x}, expected 0x00 or 0x01" for value in values[neither]]
            bad, good = bad | neither, good & ~neither
        return Lenient(fixed_array(self.arrow_type, values, good), bad, pa.array(reasons, pa.string()))

    def describe(self) -> Mapping[str, object]:
        """See `Serde`."""
        return {"serde": "fixed-width", "type": str(self.arrow_type)}

    def _swap(self, values: NDArray[Any]) -> NDArray[Any]:
        """Little-endian to big-endian and back."""
        if pa.types.is_fixed_size_binary(self.arrow_type) and not pa.types.is_decimal(self.arrow_type):
            return values
        return values.byteswap() if values.ndim == 1 else values[:, ::-1]
