"""What Kafka Streams logs of a record that waits in a buffer (``BufferValue``, ``ContextualRecord``).

All integers are big-endian, times in ms::

    +----------------+-------------+-------------+--------+----------------+-----------------+
    | timestamp i64  | offset i64  | length i32  | topic  | partition i32  | headers: count  |  header * count
    +----------------+-------------+-------------+--------+----------------+-----------------+
    | prior: length i32, bytes  | old: length i32, bytes  | new: length i32, bytes  | buffer time i64  |
    +---------------------------+-------------------------+-------------------------+------------------+
    header: length i32, key, length i32, value

Timestamp to headers are those of the record that was put last; *prior* is the value that is known downstream, *old* the
one that the record replaces upstream, *new* its own. A length of -1 is null, and of ``old`` -2: the same as ``prior``.
A count of 0 stands for no headers; -1, which Kafka reads as none too, for a list of none.

The layout is Kafka's and has no version of its own; suppress tells it by a record header ``v`` = 03.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import spans_of, valid_of
from statelib.errors.kinds import CorruptedDataError
from statelib.stores.byte_columns import joined, packed, times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.stores.byte_columns import Column

HEADERS_TYPE = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
VERSION_HEADER = ("v", b"\x03")
"""The record header of suppress."""

_NULL, _SAME = -1, -2
_HEAD = struct.Struct(">qqi")
_INT = struct.Struct(">i")
_TIME = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class BufferValues:
    """Records that wait, as columns of one length.

    Attributes:
        timestamp: int64, ms.
        offset: int64.
        topic: Where each is from, string.
        partition: int32.
        headers: See `HEADERS_TYPE`.
        prior: binary, null; as the next two.
        old: What each replaces.
        new: Its value.
        time: int64, buffer time, ms.
    """

    timestamp: NDArray[np.int64]
    offset: NDArray[np.int64]
    topic: pa.Array
    partition: NDArray[np.int32]
    headers: pa.Array
    prior: pa.Array
    old: pa.Array
    new: pa.Array
    time: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.timestamp)


def encode(values: BufferValues) -> Column:
    """The bytes of each."""
    topic = values.topic.cast(pa.binary())
    heads = np.empty(len(values), [("timestamp", ">i8"), ("offset", ">i8"), ("length", ">i4")])
    heads["timestamp"], heads["offset"], heads["length"] = values.timestamp, values.offset, spans_of(topic)[2]
    is_same = np.asarray(pc.fill_null(pc.equal(values.prior, values.old), False))
    return joined(
        packed(heads),
        topic,
        packed(values.partition.astype(">i4")),
        _encode_headers(values.headers),
        *_framed(values.prior),
        *_framed(values.old, is_same),
        *_framed(values.new),
        times(values.time),
    )


def decode(raws: Sequence[bytes], store: str) -> BufferValues:
    """The inverse of `encode`.

    Raises:
        CorruptedDataError: One has another length than it says.
    """
    try:
        rows = [_decode(raw) for raw in raws]
    except (struct.error, UnicodeDecodeError, ValueError) as error:
        raise CorruptedDataError(
            f"a record of the changelog is not what was written: {error}",
            store=store,
            next_step="restore the archive of the changelog from a copy",
        ) from error
    columns: list[Any] = [list(column) for column in zip(*rows, strict=True)] or [[]] * 9
    timestamp, offset, topic, partition, headers, prior, old, new, time = columns
    return BufferValues(
        np.array(timestamp, np.int64),
        np.array(offset, np.int64),
        pa.array(topic, pa.string()),
        np.array(partition, np.int32),
        pa.array(headers, HEADERS_TYPE),
        pa.array(prior, pa.binary()),
        pa.array(old, pa.binary()),
        pa.array(new, pa.binary()),
        np.array(time, np.int64),
    )


def _framed(column: pa.Array, is_same: NDArray[np.bool_] | None = None) -> tuple[Column, Column]:
    """Lengths and contents; ``is_same``: which have none, since they are the same as others."""
    column = column.cast(pa.large_binary())
    valid = valid_of(column)
    if is_same is not None:
        column = pc.if_else(pa.array(is_same), pa.scalar(b"", pa.large_binary()), column)
    content = pc.fill_null(column, b"")
    length = np.where(valid, spans_of(content)[2], _NULL)
    if is_same is not None:
        length = np.where(is_same, _SAME, length)
    return packed(length.astype(">i4")), content


def _encode_headers(headers: pa.Array) -> Column:
    if headers.null_count == len(headers):
        return packed(np.zeros(len(headers), ">i4"))
    return pa.array([_encode_header(some) for some in headers.to_pylist()], pa.binary())


def _encode_header(headers: Sequence[dict[str, Any]] | None) -> bytes:
    if not headers:
        return _INT.pack(0 if headers is None else _NULL)
    parts = [_INT.pack(len(headers))]
    for header in headers:
        parts += [_bytes(header["key"].encode()), _bytes(header["value"])]
    return b"".join(parts)


def _bytes(value: bytes | None) -> bytes:
    return _INT.pack(_NULL) if value is None else _INT.pack(len(value)) + value


def _decode(raw: bytes) -> tuple[Any, ...]:
    timestamp, offset, length = _HEAD.unpack_from(raw)
    at = _HEAD.size + length
    topic = raw[_HEAD.size : at].decode()
    (partition,), (count,) = _INT.unpack_from(raw, at), _INT.unpack_from(raw, at + 4)
    at += 8
    headers: list[tuple[str, bytes | None]] | None = [] if count else None
    for _ in range(count):
        key, at = _cut(raw, at)
        value, at = _cut(raw, at)
        headers = [*(headers or []), ((key or b"").decode(), value)]
    prior, at = _cut(raw, at)
    old, at = _cut(raw, at, prior)
    new, at = _cut(raw, at)
    (time,) = _TIME.unpack_from(raw, at)
    if at + _TIME.size != len(raw):
        raise ValueError(f"it has {len(raw)} bytes instead of {at + _TIME.size}")
    return timestamp, offset, topic, partition, headers, prior, old, new, time


def _cut(raw: bytes, at: int, prior: bytes | None = None) -> tuple[bytes | None, int]:
    """What begins with its length at ``at``, and where it ends."""
    (length,) = _INT.unpack_from(raw, at)
    at += _INT.size
    if length < 0:
        return (None if length == _NULL else prior), at
    return raw[at : at + length], at + length
