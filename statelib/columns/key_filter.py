"""Which of many keys were added to a set, roughly: a Bloom filter that says no for sure, and yes wrongly now and then.

A *split block* filter, as Parquet has it: the upper half of a key's hash chooses a block of 256 bits, a cache line's
half, and the lower half one bit in each of its eight words. At 16 bits a key about one answer in a thousand is wrong;
at 10 it would be one in a hundred, and most of what a store with a few filters is asked for would not be there. It is
for memory only, as the hash is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.columns.arrow_buffers import spans_of
from statelib.columns.hashing import hash_spans
from statelib.kernels.compiled import BoolsOut, UInt32sOut, UInt64sOut, compiled, helper, nothing

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

_BITS_PER_KEY = 16
_WORDS = 8
_BITS_PER_BLOCK = 32 * _WORDS
_FEWEST_KEYS = 1 << 10
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_TO_BIT = np.uint64(27)
_SALTS = (0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31)
"""Parquet's: odd, so that each spreads the lower half of a hash in its own way."""

_Words = UInt32sOut


@helper
def _block(key: np.uint64, words: NDArray[np.uint32]) -> int:
    """Where the key's block begins."""
    return int(((key >> _HALF) * np.uint64(len(words) // _WORDS)) >> _HALF) * _WORDS


@helper
def _bit(key: np.uint64, salt: int) -> np.uint32:
    return np.uint32(np.uint64(1) << ((((key & _LOW) * np.uint64(salt)) & _LOW) >> _TO_BIT))


@compiled(nothing(UInt64sOut, _Words))
def _add(hashes: NDArray[np.uint64], words: NDArray[np.uint32]) -> None:
    for key in hashes:
        block = _block(key, words)
        for word in range(_WORDS):
            words[block + word] |= _bit(key, _SALTS[word])


@compiled(nothing(UInt64sOut, _Words, BoolsOut))
def _look_for(hashes: NDArray[np.uint64], words: NDArray[np.uint32], found: NDArray[np.bool_]) -> None:
    """Sets ``found`` where the key may have been added; elsewhere it stays as it is."""
    for i in range(len(hashes)):
        if not found[i]:
            block = _block(hashes[i], words)
            may_be = True
            for word in range(_WORDS):
                bit = _bit(hashes[i], _SALTS[word])
                may_be = may_be and words[block + word] & bit != 0
            found[i] = may_be


def hashes_of(keys: pa.BinaryArray | pa.LargeBinaryArray) -> NDArray[np.uint64]:
    """The hash of each key."""
    data, start, length = spans_of(keys)
    hashes = np.empty(len(keys), dtype=np.uint64)
    hash_spans(data, start, length, hashes)
    return hashes


class KeyFilter:
    """See the module's docstring. It grows: beside a part that is full comes one of twice its size.

    Args:
        keys: How many are expected.
    """

    def __init__(self, keys: int = 0) -> None:
        self._parts: list[NDArray[np.uint32]] = []
        self._room = 0  # keys that the last part takes yet
        self._next = keys

    def expect(self, keys: int) -> None:
        """Says how many keys are about to be added, some at a time: a few large parts are better than many."""
        self._next = max(self._next, keys - self._room)

    def add(self, hashes: NDArray[np.uint64]) -> None:
        """Adds keys that were not added before, given their hashes."""
        here = hashes[: self._room]
        if len(here):
            _add(here, self._parts[-1])
            self._room -= len(here)
        rest = hashes[len(here) :]
        if len(rest):
            keys = max(len(rest), self._next, _FEWEST_KEYS)
            self._parts.append(np.zeros(-(-keys * _BITS_PER_KEY // _BITS_PER_BLOCK) * _WORDS, dtype=np.uint32))
            _add(rest, self._parts[-1])
            self._room, self._next = keys - len(rest), 2 * keys

    def may_have(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Of each key: False if it was never added."""
        found = np.zeros(len(hashes), dtype=np.bool_)
        for part in self._parts:
            _look_for(hashes, part, found)
        return found

    def memory_bytes(self) -> int:
        """Size of the filter."""
        return sum(part.nbytes for part in self._parts)
