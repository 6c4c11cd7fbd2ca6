"""Murmur2 as Kafka computes it, over all keys of a column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.kernels.compiled import Bytes, Int32s, Int64s, Int64sOut, compiled, nothing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_SHIFT = 24
_LOW_32 = 0xFFFF_FFFF  # the hash is 32 bits wide; int64 holds every product of two factors below 2**32 and 2**31


@compiled(*(nothing(Bytes, spans, Int64sOut) for spans in (Int32s, Int64s)))
def murmur2(data: NDArray[np.uint8], spans: NDArray[np.int64], hashes: NDArray[np.int64]) -> None:
    """Writes the hash of ``data[spans[i]:spans[i + 1]]``, 0 to 2**32 - 1, into ``hashes[i]``.

    Source: ``org.apache.kafka.common.utils.Utils.murmur2`` (which reads the same 32 bits as a signed number).
    """
    for i in range(len(hashes)):
        start = spans[i]
        end = spans[i + 1]
        state = _SEED ^ (end - start)
        whole = start + ((end - start) & ~3)
        for at in range(start, whole, 4):
            word = data[at] | (data[at + 1] << 8) | (data[at + 2] << 16) | (data[at + 3] << 24)
            word = (word * _MULTIPLIER) & _LOW_32
            word ^= word >> _SHIFT
            word = (word * _MULTIPLIER) & _LOW_32
            state = ((state * _MULTIPLIER) & _LOW_32) ^ word
        if whole < end:
            for at in range(end - 1, whole - 1, -1):
                state ^= data[at] << (8 * (at - whole))
            state = (state * _MULTIPLIER) & _LOW_32
        state ^= state >> 13
        state = (state * _MULTIPLIER) & _LOW_32
        hashes[i] = state ^ (state >> 15)
