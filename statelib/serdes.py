"""How keys and values become bytes and back, a whole Arrow array at a time.

`serde_for` picks by type. Plain types get Kafka's own bytes (``org.apache.kafka.common.serialization``), so that keys
land in the partitions, and changelogs have the bytes, of the live application::

    int8..int64, float32, float64, timestamps, dates, times    big-endian, in the type's width
    boolean                                                    0x01 or 0x00
    string                                                     UTF-8
    binary                                                     as it is
    decimals                                                   big-endian two's complement, in the type's width
    struct, list, map, null                                    the native row format (`statelib.row_format`)

Null always stays null, which is a tombstone where it is a value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from statelib.arrow_buffers import (
    binary_array,
    fixed_array,
    fixed_dtype,
    fixed_values,
    fixed_width,
    offsets_of,
    spans_of,
    valid_of,
)
from statelib.errors import ConfigurationError, HindstreamError, InputError
from statelib.row_format import decode_rows, encode_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

_BINARY = pa.binary()
_STRING = pa.string()


class Lenient(NamedTuple):
    """What could be decoded, and what could not.

    Attributes:
        values: Of the serde's Arrow type; null where undecodable.
        bad: bool[n]: undecodable.
        reasons: string[n]: why; null where decoded.
    """

    values: pa.Array
    bad: NDArray[np.bool_]
    reasons: pa.Array


class Serde(Protocol):
    """A serialiser and its deserialiser; immutable and picklable."""

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of the values."""

    def serialize(self, values: pa.Array) -> pa.BinaryArray:
        """The values' bytes; null stays null."""

    def deserialize(self, data: pa.BinaryArray) -> pa.Array:
        """The values.

        Raises:
            InputError: One cannot be decoded; ``place["row"]`` is its index.
        """

    def deserialize_lenient(self, data: pa.BinaryArray) -> Lenient:
        """The values that can be decoded, and why the others cannot."""

    def describe(self) -> Mapping[str, object]:
        """Kind and type as plain data (JSON), for fingerprints and for people."""


def serialized(values: pa.Array) -> pa.BinaryArray:
    """The bytes of values by `serde_for` their type."""
    return serde_for(values.type).serialize(values)


def serde_for(arrow_type: pa.DataType) -> Serde:
    """The serde of an Arrow type: see the module's docstring.

    Raises:
        ConfigurationError: The type has none.
    """
    if pa.types.is_dictionary(arrow_type):
        return DictionarySerde(arrow_type)
    if pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type) or pa.types.is_string_view(arrow_type):
        return StringSerde(arrow_type)
    if pa.types.is_binary(arrow_type) or pa.types.is_large_binary(arrow_type) or pa.types.is_binary_view(arrow_type):
        return BytesSerde(arrow_type)
    if fixed_width(arrow_type) is not None:
        return FixedWidthSerde(arrow_type)
    if pa.types.is_null(arrow_type) or (pa.types.is_nested(arrow_type) and not pa.types.is_union(arrow_type)):
        return RowSerde(arrow_type)
    raise ConfigurationError(
        f"there is no serde for values of type {arrow_type}", next_step="map them to another type, or name a serde"
    )


class StrictSerde(ABC):
    """`Serde.deserialize` by way of `deserialize_lenient`."""

    def deserialize(self, data: pa.BinaryArray) -> pa.Array:
        """See `Serde`."""
        values, bad, reasons = self.deserialize_lenient(data)
        if bad.any():
            row = int(bad.argmax())
            raise InputError(f"a value cannot be decoded: {reasons[row].as_py()}", row=row)
        return values

    @abstractmethod
    def deserialize_lenient(self, data: pa.BinaryArray) -> Lenient:
        """See `Serde`."""


@dataclass(frozen=True, slots=True)
class BytesSerde(StrictSerde):
    """Kafka's ``ByteArraySerializer``: bytes as they are."""

    arrow_type: pa.DataType = _BINARY

    def serialize(self, values: pa.Array) -> pa.BinaryArray:
        """See `Serde`."""
        return values.cast(pa.binary())

    def deserialize_lenient(self, data: pa.BinaryArray) -> Lenient:
        """See `Serde`."""
        return _all_good(data.cast(self.arrow_type))

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
            return _all_good(data.cast(self.arrow_type))
        except pa.ArrowInvalid:
            reasons = [_utf8_problem(value) for value in data.to_pylist()]
            good, bad = _without_bad(data, reasons)
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
        """See `Serde`; bytes of another length are undecodable."""
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
        return Lenient(fixed_array(self.arrow_type, values, good), bad, pa.array(reasons, pa.string()))

    def describe(self) -> Mapping[str, object]:
        """See `Serde`."""
        return {"serde": "fixed-width", "type": str(self.arrow_type)}

    def _swap(self, values: NDArray[Any]) -> NDArray[Any]:
        """Little-endian to big-endian and back."""
        if pa.types.is_fixed_size_binary(self.arrow_type) and not pa.types.is_decimal(self.arrow_type):
            return values
        return values.byteswap() if values.ndim == 1 else values[:, ::-1]


@dataclass(frozen=True, slots=True)
class DictionarySerde(StrictSerde):
    """A dictionary-encoded column has the bytes of its values."""

    arrow_type: pa.DataType

    def serialize(self, values: pa.Array) -> pa.BinaryArray:
        """See `Serde`."""
        return self._inner.serialize(values.dictionary_decode())

    def deserialize_lenient(self, data: pa.BinaryArray) -> Lenient:
        """See `Serde`."""
        values, bad, reasons = self._inner.deserialize_lenient(data)
        return Lenient(values.dictionary_encode().cast(self.arrow_type), bad, reasons)

    def describe(self) -> Mapping[str, object]:
        """See `Serde`."""
        return {"serde": "dictionary", "type": str(self.arrow_type)}

    @property
    def _inner(self) -> Serde:
        return serde_for(self.arrow_type.value_type)


@dataclass(frozen=True, slots=True)
class RowSerde(StrictSerde):
    """The native row format: for state, not for other applications."""

    arrow_type: pa.DataType

    def serialize(self, values: pa.Array) -> pa.BinaryArray:
        """See `Serde`."""
        if pa.types.is_struct(self.arrow_type):
            return encode_rows(values)
        mask = values.is_null() if values.null_count else None
        return encode_rows(pa.StructArray.from_arrays([values], names=["value"], mask=mask))

    def deserialize(self, data: pa.BinaryArray) -> pa.Array:
        """See `Serde`, except that bad bytes are damaged state.

        Raises:
            ConfigurationError: A row is written in another version of the format.
            CorruptedDataError: A row's bytes are not a row of this type.
        """
        if pa.types.is_struct(self.arrow_type):
            return decode_rows(data, self.arrow_type)
        return decode_rows(data, pa.struct([("value", self.arrow_type)])).flatten()[0]

    def deserialize_lenient(self, data: pa.BinaryArray) -> Lenient:
        """See `Serde`."""
        try:
            return _all_good(self.deserialize(data))
        except HindstreamError:
            reasons = [self._problem(data[row : row + 1]) for row in range(len(data))]
            good, bad = _without_bad(data, reasons)
            return Lenient(self.deserialize(good), bad, pa.array(reasons, pa.string()))

    def describe(self) -> Mapping[str, object]:
        """See `Serde`."""
        return {"serde": "row", "type": str(self.arrow_type)}

    def _problem(self, row: pa.BinaryArray) -> str | None:
        try:
            self.deserialize(row)
        except HindstreamError as error:
            return error.what
        return None


def _all_good(values: pa.Array) -> Lenient:
    return Lenient(values, np.zeros(len(values), np.bool_), pa.nulls(len(values), pa.string()))


def _without_bad(data: pa.Array, reasons: list[str | None]) -> tuple[pa.Array, NDArray[np.bool_]]:
    """``data`` with null for each value that has a reason, and bool[n]: those."""
    bad = np.array([reason is not None for reason in reasons], np.bool_)
    rows = pa.array(np.arange(len(data)), mask=bad)
    return data.take(rows), bad
