"""64-bit hashes of byte strings and of rows.

They are for tables in memory and for finding what is equal, never for anything stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.kernels.compiled import Bools, Bytes, Int64s, UInt64sOut, compiled, helper, load_word, nothing

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_FINAL_1 = np.uint64(0xFF51AFD7ED558CCD)
_FINAL_2 = np.uint64(0xC4CEB9FE1A85EC53)
_BYTE = np.uint64(8)
_SHIFT = np.uint64(47)
_HALF = np.uint64(32)


@helper
def mixed(word: np.uint64) -> np.uint64:
    """Each bit of the word reaches all bits above it, and by the shift those below."""
    word *= _MULTIPLIER
    word ^= word >> _SHIFT
    return word * _MULTIPLIER


@helper
def hash_bytes(data: NDArray[np.uint8], start: int, end: int) -> np.uint64:
    """Of ``data[start:end]``: eight bytes at a time, each word mixed before it is added, then a finaliser."""
    length = end - start
    state = np.uint64(length) * _FINAL_1
    if length >= 8:
        for position in range(start, end - 8, 8):
            state = (state ^ mixed(load_word(data, position))) * _FINAL_2
        state ^= mixed(load_word(data, end - 8))  # overlaps the word before it unless the length is a multiple of 8
    else:
        word = np.uint64(0)
        for position in range(start, end):
            word = (word << _BYTE) | np.uint64(data[position])
        state ^= mixed(word)
    state = (state ^ (state >> _HALF)) * _FINAL_1
    return (state ^ (state >> _HALF)) * _FINAL_2


@compiled(nothing(Bytes, Int64s, Int64s, UInt64sOut))
def hash_spans(
    data: NDArray[np.uint8], start: NDArray[np.int64], length: NDArray[np.int64], hashes: NDArray[np.uint64]
) -> None:
    """Writes the hash of ``data[start[i]:start[i] + length[i]]`` into ``hashes[i]``."""
    for i in range(len(hashes)):
        hashes[i] = hash_bytes(data, start[i], start[i] + length[i])


@compiled(nothing(Int64s, Bools, UInt64sOut))
def fold_words(words: NDArray[np.int64], valid: NDArray[np.bool_], hashes: NDArray[np.uint64]) -> None:
    """Adds a column to the hashes of rows: for each row a word, or null where ``valid``, unless it is empty, is false.

    What has been added before, in this order, decides what becomes of a word; different words never become the same.
    """
    for i in range(len(hashes)):
        if len(valid) == 0 or valid[i]:
            state = (hashes[i] ^ mixed(np.uint64(words[i]))) * _FINAL_2
        else:
            state = (hashes[i] ^ _MULTIPLIER) * _FINAL_1
        hashes[i] = state ^ (state >> _HALF)
