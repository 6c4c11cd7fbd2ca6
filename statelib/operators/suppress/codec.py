"""The bytes of a suppression buffer at rest.

A *buffer key* is Kafka's: the key's bytes and 0, 1 or 2 suffix words (nothing, a window's start, or a session's end and
start). All integers are big-endian, times in ms and never negative.

Family ``<store>``, one entry a buffered key::

    key    +-------------+--------------------------+
           | key bytes   | suffix words, i64 each   |
           +-------------+--------------------------+
    value  +------------------+--------------+-----------------+------------+---------------------------------+
           | buffer time i64  | updated i64  | window end i64  | bytes i64  | row: timestamp, value and more  |
           +------------------+--------------+-----------------+------------+---------------------------------+

Updated is the stream time at the key's latest record; in format 3, of which nobody asks it, the buffer time once more.
The window's end is 0 for keys without windows; bytes is what the key counts against the buffer's bound.

Family ``<store>.by-time``, the same keys in the order in which they leave, so that a buffer can be read from its oldest
key on::

    key    +--------------------+-------------+     value  format 2: (empty)
           | buffer time i64    | buffer key  |            format 3: as that in family <store>, which has no entries
           +--------------------+-------------+

the store's header (`statelib.stores.header`) with the types of a row, and behind that, as long as there is a header,
the totals, so that a buffer need not be read to know its size::

    key    00 00                                    value  +--------------+------------+
                                                           | records i64  | bytes i64  |
                                                           +--------------+------------+

and in format 4 the reference::

    key    00 00 00    value  +-------------------------+-----------------------+------------------------+
                              | started after i64, ms   | ended after i64, ms   | aggregation: JSON      |
                              +-------------------------+-----------------------+------------------------+

The windows of that aggregation which start and end later wait too, with the results that its store has for them, but
for those that have a row here; -1: all do. The JSON names its store and says what it aggregates, so that nobody needs
the topology to read them.

Format 2 (`BY_KEY`) is that of buffers whose keys may change their buffer time. Where a key has one buffer time only, as
a window has, the index by time has the rows themselves: format 3 (`BY_TIME`). They are read in the order in which they
lie, and removed as a range. A store that was written in format 2 stays in it. Format 4 (`BY_REFERENCE`) is format 3
with a reference: a store has one as long as the aggregation in front of it keeps what waits. Format 1 had neither
``updated`` nor the totals.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import spans_of
from statelib.errors.kinds import CorruptedDataError
from statelib.operators.suppress.layout_kernel import buffer_keys
from statelib.stores.byte_columns import cut, joined, packed, times, unpacked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from statelib.stores.byte_columns import Column

BY_KEY, BY_TIME, BY_REFERENCE = 2, 3, 4
"""Versions of the format."""
TOTALS_KEY = b"\x00\x00"
REFERENCE_KEY = b"\x00\x00\x00"

_WORD = struct.Struct(">q")
_TOTALS = struct.Struct(">qq")
_REFERENCE = struct.Struct(">qq")
_HEAD_WORDS = 4
_HEAD_BYTES = 8 * _HEAD_WORDS


@dataclass(frozen=True, slots=True)
class BufferedRow:
    """What the store holds of one key: its window and all times in ms (0 without a window), its serialised row."""

    key: bytes
    start_ms: int
    end_ms: int
    time_ms: int
    updated_ms: int
    counted_bytes: int
    row: bytes


@dataclass(frozen=True, slots=True)
class BufferedRows:
    """The same of many keys, as columns of one length.

    Attributes:
        key: Serialised record keys; binary.
        start: int64, ms, as all times.
        end: int64.
        time: int64, buffer time.
        updated: int64, stream time at the latest record; in format 3 the buffer time.
        counted_bytes: int64.
        row: Serialised rows; binary.
    """

    key: pa.Array
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    time: NDArray[np.int64]
    updated: NDArray[np.int64]
    counted_bytes: NDArray[np.int64]
    row: pa.Array

    def __len__(self) -> int:
        return len(self.time)

    @property
    def nbytes(self) -> int:
        """What the columns take."""
        numbers = (self.start, self.end, self.time, self.updated, self.counted_bytes)
        return int(self.key.nbytes + self.row.nbytes + sum(column.nbytes for column in numbers))

    def __iter__(self) -> Iterator[BufferedRow]:
        numbers = (self.start, self.end, self.time, self.updated, self.counted_bytes)
        return map(BufferedRow, self.key.to_pylist(), *(column.tolist() for column in numbers), self.row.to_pylist())

    @classmethod
    def concat(cls, parts: Sequence[BufferedRows]) -> BufferedRows:
        """All rows of ``parts``, of which there is at least one."""
        if len(parts) == 1:
            return parts[0]
        joined = ([getattr(part, field.name) for part in parts] for field in fields(cls))
        return cls(
            *(pa.concat_arrays(some) if isinstance(some[0], pa.Array) else np.concatenate(some) for some in joined)
        )

    def filter(self, keep: NDArray[np.bool_]) -> BufferedRows:
        """Those for which ``keep`` is true."""
        return self.take(np.flatnonzero(keep))

    def take(self, some: NDArray[np.int64]) -> BufferedRows:
        """Those with these indices, in this order."""
        return BufferedRows(
            key=self.key.take(pa.array(some)),
            start=self.start[some],
            end=self.end[some],
            time=self.time[some],
            updated=self.updated[some],
            counted_bytes=self.counted_bytes[some],
            row=self.row.take(pa.array(some)),
        )


@dataclass(frozen=True, slots=True)
class Reference:
    """Windows that wait in the store of their aggregation.

    Attributes:
        started_after_ms: They start later, ms.
        ended_after_ms: And end later, ms.
        aggregation: See `statelib.operators.windows.stored_windows.WindowsInStore`; plain data.
    """

    started_after_ms: int
    ended_after_ms: int
    aggregation: Mapping[str, Any]


def encode_keys(rows: BufferedRows, suffix_words: int) -> Column:
    """The keys in the main family."""
    return buffer_keys(rows.key, rows.start, rows.end, suffix_words)


def decode_keys(raw_keys: Column, suffix_words: int) -> tuple[Column, NDArray[np.int64]]:
    """Keys of the main family that have windows: the key's bytes, and int64, the windows' starts, ms."""
    keys, at, size = spans_of(raw_keys)
    suffix = 8 * suffix_words
    start = unpacked(cut(keys, at + size - 8, np.full(len(raw_keys), 8)), np.dtype(">i8")).astype(np.int64)
    return cut(keys, at, size - suffix), start


def encode_values(rows: BufferedRows, *, by_time: bool = False) -> Column:
    """The values in the main family, or (``by_time``) in the index by time in format 3."""
    heads = np.stack([rows.time, rows.time if by_time else rows.updated, rows.end, rows.counted_bytes], axis=1)
    return joined(packed(heads.astype(">i8")), rows.row)


def decode(
    raw_keys: Sequence[bytes], raw_values: Sequence[bytes], suffix_words: int, store: str, *, by_time: bool = False
) -> BufferedRows:
    """Entries of the main family, or (``by_time``) of the index by time in format 3.

    Raises:
        CorruptedDataError: A key or a value is too short.
    """
    suffix, prefix = 8 * suffix_words, _WORD.size * by_time
    keys, key_at, key_bytes = spans_of(pa.array(raw_keys, pa.large_binary()))
    key_at, key_bytes = key_at + prefix, key_bytes - prefix
    values, value_at, value_bytes = spans_of(pa.array(raw_values, pa.large_binary()))
    damaged = np.flatnonzero((key_bytes < suffix) | (value_bytes < _HEAD_BYTES))
    if len(damaged):
        first = damaged[0]
        raise CorruptedDataError(
            f"a buffered record has a key of {key_bytes[first]} and a value of {value_bytes[first]} bytes", store=store
        )
    count = len(raw_keys)
    heads = _words(cut(values, value_at, np.full(count, _HEAD_BYTES))).reshape(count, _HEAD_WORDS)
    time, updated, end, counted_bytes = heads.T
    words = _words(cut(keys, key_at + key_bytes - suffix, np.full(count, suffix))).reshape(count, suffix_words)
    start = words[:, -1] if suffix else np.zeros(count, dtype=np.int64)
    rows = cut(values, value_at + _HEAD_BYTES, value_bytes - _HEAD_BYTES)
    return BufferedRows(cut(keys, key_at, key_bytes - suffix), start, end, time, updated, counted_bytes, rows)


def _words(column: Column) -> NDArray[np.int64]:
    return unpacked(column, np.dtype(">i8")).astype(np.int64)


def encode_time_key(time_ms: int, raw_key: bytes) -> bytes:
    """The key in the index by time."""
    return _WORD.pack(time_ms) + raw_key


def encode_time_keys(time: NDArray[np.int64], raw_keys: Column) -> Column:
    """As `encode_time_key`, of many keys; ``time``: int64, ms."""
    return joined(times(time), raw_keys)


def decode_time_key(raw: bytes, store: str) -> tuple[int, bytes]:
    """Buffer time in ms and buffer key.

    Raises:
        CorruptedDataError: It is too short.
    """
    if len(raw) < _WORD.size:
        raise CorruptedDataError(f"a key of a suppression buffer's index has {len(raw)} bytes", store=store)
    return _WORD.unpack_from(raw)[0], raw[_WORD.size :]


def decode_time_keys(raws: Sequence[bytes], store: str) -> list[bytes]:
    """The buffer keys of many keys of the index by time.

    Raises:
        CorruptedDataError: One is too short.
    """
    if raws and min(map(len, raws)) < _WORD.size:
        decode_time_key(min(raws, key=len), store)
    return [raw[_WORD.size :] for raw in raws]


def encode_totals(records: int, size: int) -> bytes:
    """How many records a buffer holds, and what they count."""
    return _TOTALS.pack(records, size)


def decode_totals(raw: bytes, store: str) -> tuple[int, int]:
    """Records and bytes.

    Raises:
        CorruptedDataError: It is not what was written.
    """
    if len(raw) != _TOTALS.size:
        raise CorruptedDataError(f"the totals of a suppression buffer have {len(raw)} bytes", store=store)
    records, size = _TOTALS.unpack(raw)
    return records, size


def encode_reference(reference: Reference) -> bytes:
    """Which windows wait elsewhere."""
    aggregation = json.dumps(reference.aggregation, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return _REFERENCE.pack(reference.started_after_ms, reference.ended_after_ms) + aggregation.encode()


def decode_reference(raw: bytes, store: str) -> Reference:
    """The inverse of `encode_reference`.

    Raises:
        CorruptedDataError: It is not what was written.
    """
    try:
        aggregation = json.loads(raw[_REFERENCE.size :])
        started_after_ms, ended_after_ms = _REFERENCE.unpack_from(raw)
        return Reference(started_after_ms, ended_after_ms, {**aggregation, "store": aggregation["store"]})
    except (struct.error, ValueError, KeyError, TypeError) as error:
        raise CorruptedDataError(
            f"the reference of a suppression buffer cannot be read: {error!r}", store=store
        ) from error
