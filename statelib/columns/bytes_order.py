"""Bytewise order of keys: the order of RocksDB and of Kafka's ``Bytes``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.kernels.compiled import (
    Bytes,
    Int64s,
    Int64sOut,
    UInt64sOut,
    compiled,
    helper,
    i64,
    load_word,
    nothing,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORD_BYTES = 8
_WORD_BITS = 8 * _WORD_BYTES


@helper
def _shared(a: NDArray[np.uint8], a_start: int, b: NDArray[np.uint8], b_start: int, most: int) -> int:
    """With how many bytes, up to ``most``, two byte strings begin that are the same."""
    same: int = i64(0)
    while same + _WORD_BYTES <= most and load_word(a, a_start + same) == load_word(b, b_start + same):
        same += _WORD_BYTES
    while same < most and a[a_start + same] == b[b_start + same]:
        same += 1
    return same


@compiled(i64(Bytes, Int64s, Int64s))
def _shared_by_all(data: NDArray[np.uint8], start: NDArray[np.int64], length: NDArray[np.int64]) -> int:
    """With how many bytes all begin that are the same."""
    shared: int = i64(length[0])
    for i in range(1, len(start)):
        if shared == 0:
            break
        shared = i64(_shared(data, start[0], data, start[i], min(shared, length[i])))
    return shared


@compiled(nothing(Bytes, Int64s, Int64s, Bytes, Int64s, Int64s, Int64sOut))
def places_among(
    data: NDArray[np.uint8],
    start: NDArray[np.int64],
    length: NDArray[np.int64],
    bounds: NDArray[np.uint8],
    bound_start: NDArray[np.int64],
    bound_length: NDArray[np.int64],
    places: NDArray[np.int64],
) -> None:
    """Writes to ``places`` how many of some byte strings in order, ``bounds``, are less than or equal to each string.

    Both are given as their bytes (uint8), where each begins, and how long each is (int64).
    """
    for i in range(len(start)):
        low, high = i64(0), i64(len(bound_start))
        while low < high:
            middle = (low + high) // 2
            at, most = bound_start[middle], min(length[i], bound_length[middle])
            same = _shared(data, start[i], bounds, at, most)
            ends = length[i] < bound_length[middle]  # it is a prefix, if all that both have is the same
            if data[start[i] + same] < bounds[at + same] if same < most else ends:
                high = middle
            else:
                low = middle + 1
        places[i] = low


@compiled(nothing(Bytes, Int64s, Int64s, Int64s, i64, UInt64sOut))
def _words(
    data: NDArray[np.uint8],
    start: NDArray[np.int64],
    length: NDArray[np.int64],
    rows: NDArray[np.int64],
    position: int,
    words: NDArray[np.uint64],
) -> None:
    """The eight bytes of each of ``rows`` from ``position`` on as a number that orders as they do; 0 behind the end."""
    for i in range(len(rows)):
        row = rows[i]
        word = np.uint64(0)
        at = start[row] + position
        for byte in range(_WORD_BYTES):
            word <<= np.uint64(8)
            if position + byte < length[row]:
                word |= np.uint64(data[at + byte])
        words[i] = word


def _order_in_groups(words: NDArray[np.uint64], groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """The order by group, then by word; ``groups`` ascend already."""
    least = words.min()
    bits = int(words.max() - least).bit_length()
    if bits == 0:
        return np.arange(len(words))
    if groups[0] == groups[-1]:
        return np.argsort(words)
    if int(groups[-1] - groups[0]).bit_length() + bits > _WORD_BITS:
        return np.lexsort((words, groups))
    return np.argsort(((groups - groups[0]).astype(np.uint64) << np.uint64(bits)) | (words - least))


def sort_order(data: NDArray[np.uint8], start: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.int64]:
    """The order that sorts byte strings: eight bytes at a time, and again only where these are equal.

    It begins behind the bytes that all share, as keys of one family often do.

    Args:
        data: uint8.
        start: int64[n]: where each begins in ``data``.
        length: int64[n].

    Returns:
        int64[n]: indices; equal strings in any order.
    """
    order = np.arange(len(start))
    group = np.zeros(len(start), np.int64)  # strings that are equal so far, numbered in their order
    tied = order.copy()  # places in ``order`` whose string is not alone in its group
    position = _shared_by_all(data, start, length) if len(start) else 0
    differ_in_length = len(start) > 0 and length.min() < length.max()
    while len(tied):
        rows = order[tied]
        words = np.empty(len(rows), np.uint64)
        _words(data, start, length, rows, position, words)
        groups = group[tied]
        by = _order_in_groups(words, groups)
        # One column after the other: of half a million strings each is 4 MB.
        rows = rows[by]
        words = words[by]
        groups = groups[by]
        ended = length[rows] <= position + _WORD_BYTES
        is_longer = np.zeros(len(rows) - 1, np.bool_)
        if differ_in_length and ended.any():  # who ends here comes before who goes on with zero bytes
            lengths = np.where(ended, length[rows], np.iinfo(np.int64).max)
            by = np.lexsort((lengths, words, groups))
            rows, words, groups, lengths, ended = rows[by], words[by], groups[by], lengths[by], ended[by]
            is_longer = lengths[1:] != lengths[:-1]
        order[tied] = rows
        equal = (words[1:] == words[:-1]) & (groups[1:] == groups[:-1]) & ~is_longer & ~ended[1:]
        first = np.concatenate([[True], ~equal])
        group[tied] = np.cumsum(first)
        tied = tied[~(first & np.concatenate([first[1:], [True]]))]
        position += _WORD_BYTES
    return order
