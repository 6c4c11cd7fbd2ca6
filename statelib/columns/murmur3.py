"""Murmur3 of 128 bits, as Apache DataSketches hashes values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.kernels.compiled import Bytes, Int32s, Int64s, UInt64sOut, compiled, helper, nothing

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SEED = np.uint64(9001)
_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
_N1, _N2 = np.uint64(0x52DCE729), np.uint64(0x38495AB5)
_M1, _M2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_FIVE = np.uint64(5)
_WORD_BITS = np.uint64(64)


@helper
def _rotated(word: np.uint64, bits: int) -> np.uint64:
    left = np.uint64(bits)
    return (word << left) | (word >> (_WORD_BITS - left))


@helper
def _mixed_1(word: np.uint64) -> np.uint64:
    return _rotated(word * _C1, 31) * _C2


@helper
def _mixed_2(word: np.uint64) -> np.uint64:
    return _rotated(word * _C2, 33) * _C1


@helper
def _final(word: np.uint64) -> np.uint64:
    shift = np.uint64(33)
    word = (word ^ (word >> shift)) * _M1
    word = (word ^ (word >> shift)) * _M2
    return word ^ (word >> shift)


@helper
def _word(data: NDArray[np.uint8], start: int, end: int) -> np.uint64:
    """Up to 8 bytes, the first of which is the least; 0 for those behind the end."""
    word = np.uint64(0)
    for at in range(start, min(start + 8, end)):
        word |= np.uint64(data[at]) << np.uint64(8 * (at - start))
    return word


@compiled(*(nothing(Bytes, spans, UInt64sOut, UInt64sOut) for spans in (Int32s, Int64s)))
def murmur3(
    data: NDArray[np.uint8], spans: NDArray[np.int64], first: NDArray[np.uint64], second: NDArray[np.uint64]
) -> None:
    """Writes both halves of the hash of ``data[spans[i]:spans[i + 1]]`` into ``first[i]`` and ``second[i]``.

    Source: ``MurmurHash3_x64_128`` of Austin Appleby, with DataSketches' seed 9001.
    """
    for i in range(len(first)):
        start, end = spans[i], spans[i + 1]
        h1, h2 = _SEED, _SEED
        whole = start + ((end - start) & ~15)
        for at in range(start, whole, 16):
            h1 = (_rotated(h1 ^ _mixed_1(_word(data, at, end)), 27) + h2) * _FIVE + _N1
            h2 = (_rotated(h2 ^ _mixed_2(_word(data, at + 8, end)), 31) + h1) * _FIVE + _N2
        h2 ^= _mixed_2(_word(data, whole + 8, end))
        h1 ^= _mixed_1(_word(data, whole, end))
        length = np.uint64(end - start)
        h1 ^= length
        h2 ^= length
        h1 += h2
        h2 += h1
        h1, h2 = _final(h1), _final(h2)
        h1 += h2
        first[i] = h1
        second[i] = h2 + h1
