"""The rows of a `SpilledTable`: how they are written, found and read. The layout is drawn there.

A row is a word, some words of value and the bytes of the key; a *bucket* is the rows whose hashes begin with the same
bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.columns.spans import copy_bytes, equal_bytes
from statelib.kernels.compiled import (
    Bytes,
    BytesOut,
    Int64s,
    Int64sOut,
    UInt64sOut,
    compiled,
    helper,
    i64,
    load_word,
    nothing,
    prefetch,
    store_word,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORD_BYTES = 8
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ONE = np.uint64(1)
_PREFETCH_AHEAD = 16


@helper
def _bucket(key_hash: np.uint64, bits: int) -> int:
    """Its first ``bits`` (below 64, may be 0), as a number."""
    bucket: int = i64((key_hash >> _ONE) >> np.uint64(63 - bits))
    return bucket


@helper
def _head(key_hash: np.uint64, length: int) -> np.uint64:
    """What a row begins with: the last half of its key's hash, and the key's length."""
    return ((key_hash & _LOW) << _HALF) | np.uint64(length)


@helper
def _row_bytes(head: np.uint64, words: int) -> int:
    size: int = WORD_BYTES * (1 + words) + i64(head & _LOW)
    return size


@helper
def _is_set(bits: NDArray[np.uint8], row: int) -> bool:
    return bool((bits[row >> 3] >> (row & 7)) & 1)


@compiled(nothing(UInt64sOut, i64, Int64sOut))
def find_buckets(hashes: NDArray[np.uint64], bits: int, buckets: NDArray[np.int64]) -> None:
    """Writes the bucket of each hash, out of ``1 << bits``."""
    for row in range(len(hashes)):
        buckets[row] = _bucket(hashes[row], bits)


@compiled(nothing(Int64s, UInt64sOut, Bytes, Int64s, Int64s, Int64s, i64, BytesOut))
def write_rows(
    order: NDArray[np.int64],
    hashes: NDArray[np.uint64],
    data: NDArray[np.uint8],
    start: NDArray[np.int64],
    length: NDArray[np.int64],
    values: NDArray[np.int64],
    words: int,
    rows: NDArray[np.uint8],
) -> None:
    """Writes rows one behind the other.

    Args:
        order: In which order they are written; all else is in theirs.
        hashes: Of the keys.
        data: The bytes of the keys ...
        start: ... where each begins ...
        length: ... and how long each is.
        values: ``words`` of each row, one row after the other.
        words: Of a value.
        rows: Written, to its end.
    """
    at = i64(0)
    for row in order:
        store_word(rows, at, _head(hashes[row], length[row]))
        at += WORD_BYTES
        for word in range(words):
            store_word(rows, at, np.uint64(values[row * words + word]))
            at += WORD_BYTES
        copy_bytes(data, start[row], rows, at, length[row])
        at += length[row]


@compiled(i64(UInt64sOut, Bytes, Int64s, Int64s, Bytes, i64, Int64s, Int64s, i64, BytesOut, Int64sOut, Int64sOut))
def take_out(
    hashes: NDArray[np.uint64],
    data: NDArray[np.uint8],
    start: NDArray[np.int64],
    length: NDArray[np.int64],
    rows: NDArray[np.uint8],
    words: int,
    first_row: NDArray[np.int64],
    first_byte: NDArray[np.int64],
    bits: int,
    taken: NDArray[np.uint8],
    found: NDArray[np.int64],
    values: NDArray[np.int64],
) -> int:
    """Looks for keys among the rows that have not been taken, and takes those that it finds.

    Args:
        hashes: Of the keys.
        data: The bytes of the keys ...
        start: ... where each begins ...
        length: ... and how long each is.
        rows: Those of the table.
        words: Of a value.
        first_row: The row with which each bucket begins, and one element more.
        first_byte: Where that row begins.
        bits: There are ``1 << bits`` buckets.
        taken: A bit a row, eight in a byte: whether it has been taken; brought up to date.
        found: Written: the keys that have been found, as long as ``hashes``.
        values: Written: ``words`` of each of these, one behind the other.

    Returns:
        How many there are.
    """
    count: int = i64(0)
    for key in range(len(hashes)):
        if key + _PREFETCH_AHEAD < len(hashes):
            prefetch(first_byte, _bucket(hashes[key + _PREFETCH_AHEAD], bits))
        bucket = _bucket(hashes[key], bits)
        wanted = _head(hashes[key], length[key])
        row, at, end = first_row[bucket], first_byte[bucket], first_byte[bucket + 1]
        while at < end:
            head = load_word(rows, at)
            next_at = at + _row_bytes(head, words)
            if head == wanted and equal_bytes(data, start[key], rows, next_at - length[key], length[key]):
                if not _is_set(taken, row):
                    taken[row >> 3] |= np.uint8(1 << (row & 7))
                    found[count] = key
                    for word in range(words):
                        values[count * words + word] = i64(load_word(rows, at + WORD_BYTES * (1 + word)))
                    count += 1
                break
            at = next_at
            row += 1
    return count


@compiled(nothing(Bytes, i64, Bytes, Int64sOut))
def find_left(rows: NDArray[np.uint8], words: int, taken: NDArray[np.uint8], places: NDArray[np.int64]) -> None:
    """Writes where each row begins that has not been taken, to the end of ``places``."""
    row: int = i64(0)
    at: int = i64(0)
    for i in range(len(places)):
        while _is_set(taken, row):
            at += _row_bytes(load_word(rows, at), words)
            row += 1
        places[i] = at
        at += _row_bytes(load_word(rows, at), words)
        row += 1


@compiled(nothing(Bytes, i64, Int64s, Int64sOut))
def read_word(rows: NDArray[np.uint8], word: int, places: NDArray[np.int64], values: NDArray[np.int64]) -> None:
    """Writes one word of the values of the rows that begin at ``places``."""
    for i in range(len(places)):
        values[i] = i64(load_word(rows, places[i] + WORD_BYTES * (1 + word)))


@compiled(nothing(Bytes, i64, Int64s, Int64sOut, Int64sOut))
def find_keys(
    rows: NDArray[np.uint8],
    words: int,
    places: NDArray[np.int64],
    start: NDArray[np.int64],
    length: NDArray[np.int64],
) -> None:
    """Writes where the keys of the rows that begin at ``places`` lie."""
    for i in range(len(places)):
        start[i] = places[i] + WORD_BYTES * (1 + words)
        length[i] = i64(load_word(rows, places[i]) & _LOW)
