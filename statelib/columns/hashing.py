"""64-bit hashes of byte strings and of rows.

They are for tables in memory and for finding what is equal, never for anything stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.kernels.compiled import (
    Bools,
    Bytes,
    Int64s,
    UInt64sOut,
    compiled,
    helper,
    load_word,
    multiply_fold,
    nothing,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_FINAL_1 = np.uint64(0xFF51AFD7ED558CCD)
_FINAL_2 = np.uint64(0xC4CEB9FE1A85EC53)
_BYTE = np.uint64(8)
_SHIFT = np.uint64(47)
_SECRET_1 = np.uint64(0xA0761D6478BD642F)
_SECRET_2 = np.uint64(0xE7037ED1A0B428DB)
_SECRET_3 = np.uint64(0x8EBC6AF09C88C6E3)
_HALF = np.uint64(32)


@helper
def mixed(word: np.uint64) -> np.uint64:
    """Each bit of the word reaches all bits above it, and by the shift those below."""
    word *= _MULTIPLIER
    word ^= word >> _SHIFT
    return word * _MULTIPLIER


@helper
def hash_bytes(data: NDArray[np.uint8], start: int, end: int) -> np.uint64:
    """Of ``data[start:end]``, as wyhash does it: a multiplication for each two words of eight bytes, and a last one."""
    length = end - start
    state = _SECRET_2
    if length >= 8:
        for position in range(start, end - 16, 16):
            state = multiply_fold(load_word(data, position) ^ _SECRET_1, load_word(data, position + 8) ^ state)
        first = end - 16 if length >= 16 else start  # overlaps what is before it, or the last word
        state = multiply_fold(load_word(data, first) ^ _SECRET_1, load_word(data, end - 8) ^ state)
    else:
        word = np.uint64(0)
        for position in range(start, end):
            word = (word << _BYTE) | np.uint64(data[position])
        state = multiply_fold(word ^ _SECRET_1, state)
    return multiply_fold(state ^ _SECRET_3, np.uint64(length) ^ _SECRET_1)


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
