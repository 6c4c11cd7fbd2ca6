"""Values together with the headers of the record that made them, as Kafka Streams' stores with headers have them.

::

    +------------------------------+---------+-------------------------+
    | bytes of the headers, varint | headers | the value, by its serde |
    +------------------------------+---------+-------------------------+

    headers: none if there are none, else their number (varint), and of each
    +-------------------------+-------------+------------------------------------+-------+
    | bytes of its name, varint | UTF-8 | bytes of its value, varint, -1: null | value |
    +-------------------------+-------------+------------------------------------+-------+

A varint is that of Protobuf's sint32. Kafka has the value's timestamp between headers and value, where there is one;
here it stands beside. Source: KIP-1271, ``org.apache.kafka.streams.state.internals.HeadersSerializer``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from statelib.serdes.base import Lenient, StrictSerde, without_bad

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from statelib.serdes.base import Serde

HEADERS_TYPE = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))

_NULL = -1
_MORE = 0x80


@dataclass(frozen=True, slots=True)
class WithHeadersSerde(StrictSerde):
    """Values are ``struct<value, headers>``; see the module's docstring.

    Args:
        value: The serde of the value alone.
    """

    value: Serde

    @property
    def arrow_type(self) -> pa.DataType:
        """See `Serde`."""
        return pa.struct([pa.field("value", self.value.arrow_type), pa.field("headers", HEADERS_TYPE)])

    def serialize(self, values: pa.Array) -> pa.BinaryArray:
        """See `Serde`."""
        plain = self.value.serialize(pc.struct_field(values, "value"))
        return joined(plain, pc.struct_field(values, "headers"))

    def deserialize_lenient(self, data: pa.BinaryArray) -> Lenient:
        """See `Serde`."""
        reasons: list[str | None] = [None] * len(data)
        parts: list[tuple[bytes | None, Any]] = [(None, None)] * len(data)
        for row, raw in enumerate(data.to_pylist()):
            try:
                parts[row] = split(raw)
            except ValueError as error:
                reasons[row] = str(error)
        plain, bad = without_bad(pa.array([value for value, _ in parts], pa.binary()), reasons)
        decoded = self.value.deserialize_lenient(plain)
        said = [mine or others for mine, others in zip(reasons, decoded.reasons.to_pylist(), strict=True)]
        bad |= decoded.bad
        headers = pa.array([headers for _, headers in parts], HEADERS_TYPE)
        fields = list(self.arrow_type)
        mask = pc.or_(data.is_null(), pa.array(bad))
        values = pa.StructArray.from_arrays([decoded.values, headers], fields=fields, mask=mask)
        return Lenient(values, bad, pa.array(said, pa.string()))

    def describe(self) -> Mapping[str, object]:
        """See `Serde`."""
        return {"serde": "with-headers", "type": str(self.arrow_type), "value": self.value.describe()}


def joined(values: pa.Array, headers: pa.Array) -> pa.BinaryArray:
    """Bytes of values with their headers; null stays null.

    Args:
        values: binary.
        headers: `HEADERS_TYPE`; null: none.
    """
    written = [
        None if value is None else header_bytes((header["key"], header["value"]) for header in of or ()) + value
        for value, of in zip(values.to_pylist(), headers.to_pylist(), strict=True)
    ]
    return pa.array(written, pa.binary())


def split(raw: bytes | None) -> tuple[bytes | None, list[tuple[str, bytes | None]] | None]:
    """The value's bytes, and the headers; (None, None) of null.

    Raises:
        ValueError: There are no headers in front, or they are cut off.
    """
    if raw is None:
        return None, None
    size, at = _varint(raw, 0)
    end = at + size
    if size < 0 or end > len(raw):
        raise ValueError(f"headers of {size} bytes in {len(raw)} bytes")
    headers: list[tuple[str, bytes | None]] = []
    count, at = _varint(raw, at) if size else (0, at)
    for _ in range(count):
        name, at = _part(raw, at, end)
        value, at = _part(raw, at, end)
        headers.append(((name or b"").decode(), value))
    if at != end:
        raise ValueError(f"headers of {size} bytes end after {at} of {end}")
    return raw[end:], headers


def _part(raw: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    size, at = _varint(raw, at)
    if size == _NULL:
        return None, at
    if size < 0 or at + size > end:
        raise ValueError(f"a part of {size} bytes in headers that end at {end}")
    return raw[at : at + size], at + size


def header_bytes(headers: Iterable[tuple[str, bytes | None]]) -> bytes:
    """What stands in front of a value, of names and values."""
    parts = [part for name, value in headers for part in (name.encode(), value)]
    if not parts:
        return b"\0"
    written = b"".join(_number(_NULL) if part is None else _number(len(part)) + part for part in parts)
    content = _number(len(parts) // 2) + written
    return _number(len(content)) + content


def _number(number: int) -> bytes:
    """A varint."""
    rest, written = (number << 1) ^ (number >> 31), bytearray()
    while rest >= _MORE:
        written.append(rest & 0x7F | _MORE)
        rest >>= 7
    written.append(rest)
    return bytes(written)


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    """A number, and where what follows begins."""
    number = shift = 0
    while at < len(raw) and shift < 35:  # noqa: PLR2004 - 32 bits, seven at a time
        byte = raw[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < _MORE:
            return (number >> 1) ^ -(number & 1), at
    raise ValueError(f"no number at byte {at} of {len(raw)}")
