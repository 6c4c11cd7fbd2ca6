"""State of no fixed size for each slot: blocks of int64 words that lie in one array, which kernels see.

A block that becomes too small is made anew at the end of the array. What it leaves behind is garbage, and is dropped
between batches, whenever it is more than what is alive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.columns.growing import grown, shrunk
from statelib.kernels.compiled import Int64s, Int64sOut, compiled, helper, i64

if TYPE_CHECKING:
    from numpy.typing import NDArray

    _Array = NDArray[np.int64]

_FIRST_WORDS = 1 << 12


@compiled(i64(Int64sOut, Int64s, Int64s, Int64sOut))
def _move(
    offset: NDArray[np.int64], room: NDArray[np.int64], words: NDArray[np.int64], target: NDArray[np.int64]
) -> int:
    """Moves all blocks to ``target``, one behind the other; gives how many words they take."""
    used: int = i64(0)
    for slot in range(len(offset)):
        for word in range(room[slot]):
            target[used + word] = words[offset[slot] + word]
        offset[slot] = used
        used += room[slot]
    return used


@helper
def move_pairs(
    slot: int,
    larger: int,
    offset: NDArray[np.int64],
    room: NDArray[np.int64],
    count: NDArray[np.int64],
    words: NDArray[np.int64],
    used: NDArray[np.int64],
) -> None:
    """Moves a block of pairs, whose firsts are in one half and seconds in the other, into a new block of ``larger``.

    The former block stays as it is.
    """
    at, used[0] = used[0], used[0] + larger
    for place in range(count[slot]):
        words[at + place] = words[offset[slot] + place]
        words[at + (larger >> 1) + place] = words[offset[slot] + (room[slot] >> 1) + place]
    offset[slot], room[slot] = at, larger


class Blocks:
    """The blocks of all slots; a new slot has none.

    Attributes:
        offset: int64, by slot: where its block begins.
        room: int64, by slot: how many words it has; 0: there is no block.
        count: int64, by slot: how many things are in it, whatever they are.
        words: int64: the blocks. What lies behind ``used`` may be anything.
        used: int64[1]: how many words are blocks or garbage. Kernels raise it.
    """

    def __init__(self) -> None:
        self.offset, self.room, self.count, self.words = (np.empty(0, dtype=np.int64) for _ in range(4))
        self.used = np.zeros(1, dtype=np.int64)

    @property
    def all(self) -> tuple[_Array, _Array, _Array, _Array, _Array]:
        """What kernels take."""
        return self.offset, self.room, self.count, self.words, self.used

    def reserve(self, slots: int) -> None:
        """Makes room for ``slots`` slots."""
        self.offset, self.room, self.count = (grown(of, slots) for of in (self.offset, self.room, self.count))

    def keep(self, slots: NDArray[np.int64]) -> None:
        """Keeps only ``slots``, numbered anew in their order."""
        self.offset, self.room, self.count = (shrunk(of, slots) for of in (self.offset, self.room, self.count))
        if len(slots) == 0:
            self.words, self.used[0] = np.empty(0, dtype=np.int64), 0

    def drop_garbage(self) -> None:
        """Drops garbage, if there is more of it than of blocks. These move then."""
        alive = int(self.room.sum())
        if self.used[0] > max(2 * alive, _FIRST_WORDS):
            words = np.empty(max(2 * alive, _FIRST_WORDS), dtype=np.int64)
            self.used[0] = _move(self.offset, self.room, self.words, words)
            self.words = words

    def grow(self, more: int) -> None:
        """Makes room for at least ``more`` words behind those that are used."""
        if self.used[0] + more > len(self.words):
            words = np.empty(max(2 * len(self.words), int(self.used[0]) + more, _FIRST_WORDS), dtype=np.int64)
            words[: self.used[0]] = self.words[: self.used[0]]
            self.words = words

    def memory_bytes(self) -> int:
        """Size of it all."""
        return sum(array.nbytes for array in (self.offset, self.room, self.count, self.words))
