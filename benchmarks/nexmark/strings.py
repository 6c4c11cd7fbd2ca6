"""Random strings as nexmark's ``StringsGenerator`` makes them, many at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_SHORTEST = 3
_POOL_LETTERS = 1 << 20
_LETTERS_OF_A_NUMBER = 6


def words(chance: np.random.Generator, count: int, max_length: int, special: str = " ") -> pa.Array:
    """Strings of ``a`` to ``z`` (``nextString``).

    Args:
        chance: Where randomness comes from.
        count: How many.
        max_length: Lengths are uniform from 3 to one less than this.
        special: Every thirteenth character on average is this one. Spaces at the ends are cut off.
    """
    lengths = _SHORTEST + chance.integers(0, max_length - _SHORTEST, count)
    shape = (count, max_length)
    letters = chance.integers(ord("a"), ord("z") + 1, shape, np.uint8)
    letters[chance.integers(0, 13, shape, np.uint8) == 0] = ord(special)
    return pc.utf8_trim_whitespace(_cut(letters, lengths))


class Fillers:
    """The field ``extra``, which brings records to their size (``nextExtra``, ``nextExactString``).

    All are cut from one string of 1 MiB. As in the original, the remainders of negative numbers are negative, so that
    half of its characters are from ``H`` to ``a`` in place of ``a`` to ``z``.
    """

    def __init__(self, seed: int) -> None:
        numbers = np.random.default_rng([seed, _POOL_LETTERS]).integers(
            -(1 << 31), 1 << 31, -(-_POOL_LETTERS // _LETTERS_OF_A_NUMBER)
        )
        letters = []
        for _ in range(_LETTERS_OF_A_NUMBER):
            rest = np.fmod(numbers, 26)
            letters.append(rest + ord("a"))
            numbers = (numbers - rest) // 26
        self._pool = np.stack(letters, axis=1).reshape(-1)[:_POOL_LETTERS].astype(np.uint8)

    def fill(
        self, chance: np.random.Generator, count: int, sizes: NDArray[np.int64] | int, average_size: int
    ) -> pa.Array:
        """A string for each record, so that records of ``sizes`` bytes become ``average_size`` on average.

        What is missing is given with a fifth more or less, uniformly; a record that is larger already gets none.
        """
        missing = np.broadcast_to(np.maximum(average_size - np.asarray(sizes), 0), count)
        spread = np.floor(missing * 0.2 + 0.5).astype(np.int64)
        lengths = missing - spread + chance.integers(0, np.maximum(2 * spread, 1))
        longest = int(lengths.max(initial=0))
        begins = chance.integers(0, _POOL_LETTERS - longest, count)
        rows = np.lib.stride_tricks.sliding_window_view(self._pool, max(longest, 1))[begins]
        return _cut(rows, lengths)


def _cut(letters: NDArray[np.uint8], lengths: NDArray[np.int64]) -> pa.Array:
    """The first ``lengths`` characters of each row."""
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    text = letters[np.arange(letters.shape[1]) < lengths[:, None]]
    return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(text))
