"""The bytes of a versioned store; all integers big-endian.

Family ``<store>.latest``: the latest version of each key, unless it is a tombstone::

    key    key bytes
    value  +--------------------+----------------------+--------------+
           | timestamp i64, ms  | flags u8             | value bytes  |
           +--------------------+----------------------+--------------+
             flags bit 0: remembered (`statelib.operators.versioned.store`, rule 4)

Family ``<store>.segments``: older versions, by the segment (time // segment interval) in which they ended::

    key    +------------------+-----------+
           | segment id i64   | key bytes |
           +------------------+-----------+
    value  +---------------+-----------+--------------------+--------------+-----------------------+
           | end i64, ms   | count u32 | valid_from i64 * n | size i32 * n | value bytes, in order |
           +---------------+-----------+--------------------+--------------+-----------------------+

A row holds the versions of one key in order of time, each valid until the next one; the last until ``end``. A value
lies in the segment of the time at which it ended. A tombstone has ``size`` -1 and lies in the segment of its own
timestamp, as if it ended at once: it marks an end, and may go with its segment, because by then nothing older can be
put.

The header, under the empty key, which comes before all segments::

    +-------------+-----------------------+-----------------+
    | version u8  | segment interval i64  | stream time i64 |
    +-------------+-----------------------+-----------------+
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from statelib.columns.arrow_buffers import binary_array, offsets_of, spans_of, valid_of
from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.stores.byte_columns import cut, grouped, joined, packed, spans_of_rows, times, unpacked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.stores.byte_columns import Column, Spans

FORMAT_VERSION = 1
HEADER_KEY = b""
BEFORE, COVERS, AFTER = -1, 0, 1
"""Where a row lies as seen from a time: it ended by then, holds what is valid then, begins later."""

_LATEST = struct.Struct(">qB")
_SEGMENT_ID = struct.Struct(">q")
_ROW = struct.Struct(">qI")
_ROW_OF_ONE = struct.Struct(">qIqi")  # what most rows hold; and longer ones begin with
_HEADER = struct.Struct(">Bqq")
_HEAD_OF_LATEST, _HEAD_OF_ROW_OF_ONE = _LATEST.size, _ROW_OF_ONE.size
_FEW_VERSIONS = 64  # decoded one by one
_REMEMBERED = 1
_TOMBSTONE = -1
_TIME, _SIZE = np.dtype(">i8"), np.dtype(">i4")
_FIXED_BYTES_PER_VERSION = _TIME.itemsize + _SIZE.itemsize
_LATEST_HEADS = np.dtype([("timestamp", ">i8"), ("flags", "u1")])
_ROW_HEADS = np.dtype([("end", ">i8"), ("count", ">u4")])


class Interval(NamedTuple):
    """A version and when it ended, in milliseconds; a tombstone has value None and ``valid_to == valid_from``."""

    valid_from: int
    valid_to: int
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Header:
    """What the store knows about itself; see the module's docstring."""

    segment_interval_ms: int
    stream_time: int


def encode_latest(timestamp: int, value: bytes, *, remembered: bool) -> bytes:
    """A value of the latest family."""
    return _LATEST.pack(timestamp, _REMEMBERED if remembered else 0) + value


def decode_latest(raw: bytes, store: str) -> tuple[int, bytes, bool]:
    """(timestamp, value, remembered).

    Raises:
        CorruptedDataError: It is too short.
    """
    try:
        timestamp, flags = _LATEST.unpack_from(raw)
    except struct.error:
        raise CorruptedDataError(f"a latest value has {len(raw)} bytes", store=store) from None
    return timestamp, raw[_HEAD_OF_LATEST:], flags & _REMEMBERED != 0


def encode_latests(timestamp: NDArray[np.int64], values: Column, remembered: NDArray[np.bool_]) -> Column:
    """As `encode_latest`, of many keys."""
    heads = np.empty(len(timestamp), _LATEST_HEADS)
    heads["timestamp"] = timestamp
    heads["flags"] = np.where(remembered, _REMEMBERED, 0)
    return joined(packed(heads), values)


def decode_latests(raws: Column, store: str) -> tuple[NDArray[np.int64], Column, NDArray[np.bool_]]:
    """As `decode_latest`, of many keys: timestamps (ms), values, remembered.

    Raises:
        CorruptedDataError: One is too short.
    """
    content, start, length = spans_of(raws)
    if length.min(initial=_LATEST.size) < _LATEST.size:
        raise CorruptedDataError(f"a latest value has {length.min()} bytes", store=store)
    heads = unpacked(cut(content, start, np.full(len(start), _LATEST.size)), _LATEST_HEADS)
    values = cut(content, start + _LATEST.size, length - _LATEST.size)
    return heads["timestamp"].astype(np.int64), values, (heads["flags"] & _REMEMBERED).astype(np.bool_)


def encode_segment_key(segment_id: int, key: bytes = b"") -> bytes:
    """A key of the segments family; without ``key``, what comes before all rows of the segment."""
    return _SEGMENT_ID.pack(segment_id) + key


def encode_segment_keys(segment_id: NDArray[np.int64], keys: Column) -> Column:
    """As `encode_segment_key`, of many rows."""
    return joined(times(segment_id), keys)


def decode_segment_id(raw: bytes) -> int:
    """The segment of a key of the segments family."""
    segment_id: int = _SEGMENT_ID.unpack_from(raw)[0]
    return segment_id


def decode_segment_key(raw: bytes) -> bytes:
    """The record's key in a key of the segments family."""
    return raw[_SEGMENT_ID.size :]


def encode_row(versions: Sequence[Interval]) -> bytes:
    """A value of the segments family: ``versions`` in order of time, at least one, without gaps."""
    count = len(versions)
    times = [version.valid_from for version in versions]
    sizes = [_TOMBSTONE if version.value is None else len(version.value) for version in versions]
    fixed = struct.pack(f">qI{count}q{count}i", versions[-1].valid_to, count, *times, *sizes)
    return fixed + b"".join(version.value for version in versions if version.value is not None)


def decode_row(raw: bytes, store: str) -> list[Interval]:
    """The versions of a row, in order of time.

    Raises:
        CorruptedDataError: The bytes are no row.
    """
    begins, end, values = decode_versions(raw, store)
    ends = (*begins[1:], end)
    return [
        Interval(start, start if value is None else end, value)
        for start, end, value in zip(begins, ends, values, strict=True)
    ]


def decode_versions(raw: bytes, store: str) -> tuple[tuple[int, ...], int, list[bytes | None]]:
    """The same as when each version begins, when the last one ends, and the values.

    Raises:
        CorruptedDataError: The bytes are no row.
    """
    times, sizes, position = _decode_fixed(raw, store)
    values: list[bytes | None] = []
    for size in sizes:
        if size == _TOMBSTONE:
            values.append(None)
        else:
            end = position + size
            values.append(raw[position:end])
            position = end
    return times[:-1], times[-1], values


def extend_row(raw: bytes, later: Sequence[Interval], store: str) -> bytes:
    """What `encode_row` makes of the versions of ``raw`` and, after them, ``later``: copied, not decoded.

    Raises:
        CorruptedDataError: The bytes are no row.
    """
    count = _ROW.unpack_from(raw)[1] if len(raw) >= _ROW.size else 0
    sizes, values = _ROW.size + count * _TIME.itemsize, _ROW.size + count * _FIXED_BYTES_PER_VERSION
    if not count or len(raw) < values:
        raise _no_row(count, raw, store)
    added = encode_row(later)
    more = len(later)
    added_sizes, added_values = _ROW.size + more * _TIME.itemsize, _ROW.size + more * _FIXED_BYTES_PER_VERSION
    return b"".join((
        _ROW.pack(later[-1].valid_to, count + more),
        raw[_ROW.size : sizes], added[_ROW.size : added_sizes],
        raw[sizes:values], added[added_sizes:added_values],
        raw[values:], added[added_values:],
    ))  # fmt: skip


def find_in_row(raw: bytes, time: int, store: str) -> tuple[int, tuple[int, int, bytes] | None]:
    """`BEFORE`, `COVERS` or `AFTER`, and the fields of the `Interval` of a row's value that is valid at ``time``.

    Raises:
        CorruptedDataError: The bytes are no row.
    """
    if len(raw) >= _HEAD_OF_ROW_OF_ONE:
        end, count, valid_from, size = _ROW_OF_ONE.unpack_from(raw)
        if end <= time:
            return BEFORE, None
        if valid_from > time:
            return AFTER, None
        if count == 1 and len(raw) == _HEAD_OF_ROW_OF_ONE + size:
            return COVERS, (valid_from, end, raw[_HEAD_OF_ROW_OF_ONE:])
        if count > _FEW_VERSIONS:
            return COVERS, _found_among_many(raw, count, end, time, store)
    times, sizes, position = _decode_fixed(raw, store)
    at = bisect_right(times, time) - 1
    if sizes[at] == _TOMBSTONE:
        return COVERS, None
    position += sum(sizes[:at]) + sizes[:at].count(_TOMBSTONE)
    return COVERS, (times[at], times[at + 1], raw[position : position + sizes[at]])


def _found_among_many(raw: bytes, count: int, end: int, time: int, store: str) -> tuple[int, int, bytes] | None:
    """What of a row is valid at ``time``, which it covers: as arrays, a third of the time with 400 versions."""
    position = _ROW.size + count * _FIXED_BYTES_PER_VERSION
    if len(raw) < position:
        raise _no_row(count, raw, store)
    begins = np.frombuffer(raw, _TIME, count, _ROW.size)
    sizes = np.frombuffer(raw, _SIZE, count, _ROW.size + count * _TIME.itemsize)
    ends = np.maximum(sizes, 0).cumsum()
    if position + int(ends[-1]) != len(raw):
        raise _no_row(count, raw, store)
    at = int(begins.searchsorted(time, "right")) - 1
    size, to = int(sizes[at]), position + int(ends[at])
    if size == _TOMBSTONE:
        return None
    return int(begins[at]), int(begins[at + 1]) if at + 1 < count else end, raw[to - size : to]


def _decode_fixed(raw: bytes, store: str) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Of a row: when each version begins and the last one ends, their sizes, and where the first value lies."""
    end, count = _ROW.unpack_from(raw) if len(raw) >= _ROW.size else (0, 0)
    position = _ROW.size + count * _FIXED_BYTES_PER_VERSION
    if count and len(raw) >= position:
        numbers = struct.unpack_from(f">{count}q{count}i", raw, _ROW.size)
        sizes = numbers[count:]
        if position + sum(sizes) + sizes.count(_TOMBSTONE) == len(raw):  # a tombstone's -1 made up for
            return (*numbers[:count], end), sizes, position
    raise _no_row(count, raw, store)


def _no_row(count: int, raw: bytes, store: str) -> CorruptedDataError:
    return CorruptedDataError(f"a segment's row of {count} versions has {len(raw)} bytes", store=store)


def encode_rows(
    offsets: NDArray[np.int64], end: NDArray[np.int64], valid_from: NDArray[np.int64], values: Column
) -> Column:
    """As `encode_row`, of many rows.

    Args:
        offsets: int64[r + 1]: row ``i`` holds the versions ``offsets[i]`` to ``offsets[i + 1]``.
        end: int64[r], ms: when the last version of each row ended.
        valid_from: int64[m], ms.
        values: binary[m]; null is a tombstone.
    """
    heads = np.empty(len(end), _ROW_HEADS)
    heads["end"], heads["count"] = end, np.diff(offsets)
    sizes = np.where(valid_of(values), spans_of(values)[2], _TOMBSTONE).astype(_SIZE)
    parts = (times(valid_from), packed(sizes), values.fill_null(b""))
    return joined(packed(heads), *[grouped(part, offsets) for part in parts])


def decode_rows(rows: Column, store: str) -> tuple[NDArray[np.int64], NDArray[np.int64], Column]:
    """As `decode_row`, of many rows: how many versions each holds, and of each version valid_from (ms) and value.

    Raises:
        CorruptedDataError: The bytes of one are no row.
    """
    parts, row_length = _split_rows(rows, store), spans_of(rows)[2]
    _check_rows(parts.counts > 0, parts.counts, row_length, store)
    valid_from, sizes = unpacked(cut(*parts.times), _TIME), unpacked(cut(*parts.sizes), _SIZE)
    offsets = offsets_of(np.where(sizes == _TOMBSTONE, 0, sizes).astype(np.int64))
    last, length = np.cumsum(parts.counts), parts.values[2]
    is_right = offsets[last] - offsets[last - parts.counts] == length
    _check_rows(is_right, parts.counts, row_length, store)
    data = unpacked(cut(*parts.values), np.dtype(np.uint8))
    return parts.counts, valid_from.astype(np.int64), binary_array(offsets, data, sizes != _TOMBSTONE)


def extend_rows(rows: Column, later: Column, store: str) -> Column:
    """As `extend_row`, of many rows: each with the versions of another row after its own.

    Args:
        rows: binary[r]; no bytes at all: a row is not there yet.
        later: binary[r].
        store: For messages.

    Raises:
        CorruptedDataError: The bytes of one are no row.
    """
    first, then = _split_rows(rows, store), _split_rows(later, store)
    heads = np.empty(len(later), _ROW_HEADS)
    heads["end"], heads["count"] = then.ends, first.counts + then.counts
    return joined(spans_of_rows(heads), first.times, then.times, first.sizes, then.sizes, first.values, then.values)


class _Parts(NamedTuple):
    """Where the parts of many rows lie; of a row of no bytes all are empty."""

    ends: NDArray[np.int64]
    counts: NDArray[np.int64]
    times: Spans
    sizes: Spans
    values: Spans


def _split_rows(rows: Column, store: str) -> _Parts:
    content, start, length = spans_of(rows)
    there = length > 0
    _check_rows(~there | (length >= _ROW.size), np.zeros_like(length), length, store)
    ends, counts = np.zeros(len(length), np.int64), np.zeros(len(length), np.int64)
    heads = unpacked(cut(content, start[there], np.full(np.count_nonzero(there), _ROW.size)), _ROW_HEADS)
    ends[there], counts[there] = heads["end"], heads["count"]
    head = np.where(there, _ROW.size, 0)
    fixed = head + counts * _FIXED_BYTES_PER_VERSION
    _check_rows(~there | ((counts > 0) & (fixed <= length)), counts, length, store)
    times, sizes = counts * _TIME.itemsize, counts * _SIZE.itemsize
    return _Parts(
        ends,
        counts,
        (content, start + head, times),
        (content, start + head + times, sizes),
        (content, start + fixed, length - fixed),
    )


def _check_rows(is_right: NDArray[np.bool_], counts: NDArray[np.int64], length: NDArray[np.int64], store: str) -> None:
    if not is_right.all():
        row = int(np.argmin(is_right))
        raise CorruptedDataError(f"a segment's row of {counts[row]} versions has {length[row]} bytes", store=store)


def encode_header(header: Header) -> bytes:
    """The header's bytes."""
    return _HEADER.pack(FORMAT_VERSION, header.segment_interval_ms, header.stream_time)


def decode_header(raw: bytes, store: str) -> Header:
    """The header.

    Raises:
        ConfigurationError: The store was written in another format.
        CorruptedDataError: The bytes are no header.
    """
    if raw and raw[0] != FORMAT_VERSION:
        raise ConfigurationError(
            f"the store is written in format {raw[0]}, and this release reads format {FORMAT_VERSION}",
            store=store,
            next_step="use the release that wrote it, or migrate the state",
        )
    if len(raw) != _HEADER.size:
        raise CorruptedDataError(f"a versioned store's header has {len(raw)} bytes", store=store)
    _, segment_interval_ms, stream_time = _HEADER.unpack(raw)
    return Header(segment_interval_ms, stream_time)
