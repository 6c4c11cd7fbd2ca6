"""Murmur3's 128 bits, by which Kafka Streams knows a row of a foreign-key join (``Murmur3.hash128``), of short rows."""

from __future__ import annotations

_SEED = 104_729
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
_WORD = (1 << 64) - 1


def hash128(data: bytes) -> bytes:
    """The hash of fewer than 16 bytes, as two big-endian longs."""
    if len(data) >= 16:
        raise ValueError(f"{len(data)} bytes: whole blocks are not implemented, as no trace has rows of that length")
    first, second = (int.from_bytes(part, "little") for part in (data[:8], data[8:]))
    h1 = _SEED ^ (_rotated(first * _C1 & _WORD, 31) * _C2 & _WORD) ^ len(data)
    h2 = _SEED ^ (_rotated(second * _C2 & _WORD, 33) * _C1 & _WORD) ^ len(data)
    h1 = (h1 + h2) & _WORD
    h2 = (h2 + h1) & _WORD
    h1, h2 = _mixed(h1), _mixed(h2)
    h1 = (h1 + h2) & _WORD
    h2 = (h2 + h1) & _WORD
    return h1.to_bytes(8, "big") + h2.to_bytes(8, "big")


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (64 - bits)) & _WORD


def _mixed(word: int) -> int:
    word = (word ^ word >> 33) * 0xFF51AFD7ED558CCD & _WORD
    word = (word ^ word >> 33) * 0xC4CEB9FE1A85EC53 & _WORD
    return word ^ word >> 33
