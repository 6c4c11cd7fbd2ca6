"""The bytes of a deduplication store: which ids were forwarded, when, and from which record (KIP-655).

All integers are big-endian. A *segment* is the timestamps of one width: ``timestamp // width``, the width being half of
the deduplication interval, at least 1 ms.

Family ``<store>.entries``, one entry an id::

    key    +--------------+-----------+
           | segment i64  | id bytes  |
           +--------------+-----------+
    value  +-----------------+--------------------+-------------+-------------+----------------+
           | version u8 = 2  | timestamp i64, ms  | offset i64  | source i16  | partition i32  |
           +-----------------+--------------------+-------------+-------------+----------------+

The id bytes are the serialised key or id; where both count::

    +-----------------------+------------------+-----------------+
    | length u32 of the key | key, serialised  | id, serialised  |
    +-----------------------+------------------+-----------------+

``timestamp`` and ``offset`` are KIP-655's; an offset of -1 is that of a record without one. ``source`` (the topic's
number in the task) and ``partition`` say in which partition the offset counts: streams of several topics may be merged
before deduplication.

Family ``<store>.segments``, the segments that have entries, and how many::

    key    segment i64        value  count i64

This is format 2; `statelib.operators.deduplication.format_1` has the one before.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from statelib.columns.arrow_buffers import spans_of
from statelib.errors.kinds import ConfigurationError, CorruptedDataError
from statelib.stores.byte_columns import joined, packed, repeated, spans_of_rows, split_framed, split_head, times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.stores.byte_columns import Column, Spans

FORMAT_VERSION = 2

_WORD = struct.Struct(">q")
SEGMENT_BYTES = _WORD.size
_VALUE = np.dtype([("version", "u1"), ("timestamp", ">i8"), ("offset", ">i8"), ("source", ">i2"), ("partition", ">i4")])
_COLUMNS = ("timestamp", "offset", "source", "partition")


@dataclass(frozen=True, slots=True)
class Entries:
    """The forwarded records of several ids, as int64 columns of one length: time in ms, and where they are from."""

    timestamp: NDArray[np.int64]
    offset: NDArray[np.int64]
    source: NDArray[np.int64]
    partition: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.timestamp)

    @classmethod
    def of_places(cls, timestamp: NDArray[np.int64], place: NDArray[np.int64], offset: NDArray[np.int64]) -> Self:
        """Entries as `statelib.operators.deduplication.kernel.deduplicate` has them, which says what a place is."""
        return cls(timestamp, offset, place >> 32, place & 0xFFFFFFFF)

    @property
    def places(self) -> NDArray[np.int64]:
        """Source and partition as the kernel has them."""
        return (self.source << 32) | self.partition

    def take(self, rows: NDArray[Any]) -> Entries:
        """Those that ``rows`` (indices or booleans) chooses."""
        return Entries(self.timestamp[rows], self.offset[rows], self.source[rows], self.partition[rows])


def encode_segment(segment: int) -> bytes:
    """The key of a segment, with which the keys of its entries begin."""
    return _WORD.pack(segment)


def decode_segment(raw: bytes, store: str) -> int:
    """The segment, given its key.

    Raises:
        CorruptedDataError: It has another length.
    """
    return _decode_word(raw, store)


def encode_count(count: int) -> bytes:
    """The value of a segment: the number of its entries."""
    return _WORD.pack(count)


def decode_count(raw: bytes, store: str) -> int:
    """The inverse of `encode_count`.

    Raises:
        CorruptedDataError: It has another length.
    """
    return _decode_word(raw, store)


def encode_ids(keys: Column, ids: Column) -> Column:
    """The id bytes of keys with ids."""
    return joined(*parts_of_ids(spans_of(keys), spans_of(ids)))


def parts_of_ids(keys: Spans, ids: Spans) -> tuple[Spans, ...]:
    """What `joined` makes the id bytes of keys with ids of."""
    _, _, lengths = keys
    return spans_of_rows(lengths.astype(">u4")), keys, ids


def decode_ids(ids: Column, store: str) -> tuple[Column, Column]:
    """The inverse of `encode_ids`: keys, and ids.

    Raises:
        CorruptedDataError: One is shorter than it says.
    """
    return split_framed(ids, np.dtype(">u4"), store)


def decode_keys(raws: Column, store: str) -> Column:
    """The id bytes in the keys of entries.

    Raises:
        CorruptedDataError: One is too short.
    """
    return split_head(raws, np.dtype(">i8"), store)[1]


def encode_keys(segments: NDArray[np.int64], ids: Column) -> Column:
    """The keys of entries."""
    return joined(times(segments), ids)


def encode_keys_of(segment: int, *ids: Spans) -> Column:
    """The keys of entries of one segment; ``ids``: what their id bytes are made of."""
    return joined(repeated(encode_segment(segment), len(ids[0][1])), *ids)


def encode_values(entries: Entries) -> Column:
    """The values of entries."""
    rows = np.empty(len(entries), _VALUE)
    rows["version"] = FORMAT_VERSION
    for name in _COLUMNS:
        rows[name] = getattr(entries, name)
    return packed(rows)


def decode_values(raws: Sequence[bytes], store: str, *, version: int = FORMAT_VERSION) -> Entries:
    """The inverse of `encode_values`, which writes today's ``version``.

    Raises:
        ConfigurationError: An entry is of a later format.
        CorruptedDataError: It is not what was written.
    """
    if not set(map(len, raws)) <= {_VALUE.itemsize}:
        _refuse(next(raw for raw in raws if len(raw) != _VALUE.itemsize), store)
    rows = np.frombuffer(b"".join(raws), _VALUE)
    others = np.flatnonzero(rows["version"] != version)
    if len(others):
        _refuse(raws[others[0]], store)
    return Entries(*(rows[name].astype(np.int64) for name in _COLUMNS))


def _refuse(raw: bytes, store: str) -> None:
    if raw[:1] > bytes([FORMAT_VERSION]):
        raise ConfigurationError(
            f"the state has format {raw[0]}, this Hindstream knows up to {FORMAT_VERSION}",
            store=store,
            next_step="use the version of Hindstream that wrote the state, or a newer one",
        )
    raise CorruptedDataError(
        f"a deduplication entry is not what was written: {raw.hex()}",
        store=store,
        next_step="restore the checkpoint from another copy",
    )


def _decode_word(raw: bytes, store: str) -> int:
    if len(raw) != _WORD.size:
        raise CorruptedDataError(
            f"a segment of a deduplication is not what was written: {raw.hex()}",
            store=store,
            next_step="restore the checkpoint from another copy",
        )
    (word,) = _WORD.unpack(raw)
    return int(word)
