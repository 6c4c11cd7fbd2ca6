"""Murmur3's 128 bits, by which Kafka Streams knows a row of a foreign-key join (``Murmur3.hash128``), of many rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from statelib.columns.arrow_buffers import spans_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from statelib.stores.byte_columns import Column

_SEED = 104_729
_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
_M, _N1, _N2 = np.uint64(5), np.uint64(0x52DCE729), np.uint64(0x38495AB5)
_BLOCK = 16


def hash128(rows: Column, seed: int = _SEED) -> NDArray[Any]:
    """The hash of each row: two big-endian longs, ``>u8[n, 2]``; ``seed``: Kafka Streams' own, but for tests."""
    content, start, length = spans_of(rows)
    h1, h2 = (np.full(len(start), seed, np.uint64) for _ in range(2))
    blocks = length // _BLOCK
    for block in range(int(blocks.max(initial=0))):
        some = np.flatnonzero(blocks > block)
        words = content[(start[some] + block * _BLOCK)[:, None] + np.arange(_BLOCK)].view("<u8").astype(np.uint64)
        one, two = h1[some], h2[some]
        one = (_rotated(one ^ _first(words[:, 0]), 27) + two) * _M + _N1
        two = (_rotated(two ^ _second(words[:, 1]), 31) + one) * _M + _N2
        h1[some], h2[some] = one, two
    tails = np.zeros((len(start), _BLOCK), np.uint8)
    rest = length - blocks * _BLOCK
    places = np.arange(_BLOCK)
    there = places < rest[:, None]
    tails[there] = content[(start + blocks * _BLOCK)[:, None].repeat(_BLOCK, 1)[there] + np.nonzero(there)[1]]
    words = tails.view("<u8").astype(np.uint64)
    h1 ^= _first(words[:, 0]) ^ length.astype(np.uint64)
    h2 ^= _second(words[:, 1]) ^ length.astype(np.uint64)
    h1 = h1 + h2
    h2 = h2 + h1
    h1, h2 = _mixed(h1), _mixed(h2)
    h1 = h1 + h2
    h2 = h2 + h1
    return np.stack([h1, h2], axis=1).astype(">u8")


def _first(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return _rotated(words * _C1, 31) * _C2


def _second(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return _rotated(words * _C2, 33) * _C1


def _rotated(words: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    words = (words ^ words >> np.uint64(33)) * np.uint64(0xFF51AFD7ED558CCD)
    words = (words ^ words >> np.uint64(33)) * np.uint64(0xC4CEB9FE1A85EC53)
    return words ^ words >> np.uint64(33)
