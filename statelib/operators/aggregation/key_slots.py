"""Slots for the keys that a working set has: 0, 1, 2, ..."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.columns.growing import grown

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NONE = -1


class KeySlots:
    """Key codes <-> slots, so that state is as large as the keys that have some, not as all keys of the task."""

    def __init__(self) -> None:
        self._slot_of = np.empty(0, dtype=np.int64)
        self._codes = np.empty(0, dtype=np.int64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def key_code(self) -> NDArray[np.int64]:
        """The key code of each slot."""
        return self._codes[: self._count]

    def find(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The slots of ``codes`` (never `NULL_KEY`); new ones for those that have none, in the order of their codes."""
        self._slot_of = grown(self._slot_of, int(codes.max(initial=-1)) + 1, _NONE)
        new = np.unique(codes[self._slot_of[codes] == _NONE])
        known, self._count = self._count, self._count + len(new)
        self._codes = grown(self._codes, self._count)
        self._codes[known : self._count] = new
        self._slot_of[new] = np.arange(known, self._count)
        return self._slot_of[codes]

    def memory_bytes(self) -> int:
        """Size of both directions."""
        return self._slot_of.nbytes + self._codes.nbytes
