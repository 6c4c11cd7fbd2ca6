"""The arrays of a working set whose keys have lists of windows: see `statelib.operators.sessions.slot_lists_kernel`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from statelib.operators.aggregation.kernel import NO_SLOT, NO_UPDATE
from statelib.operators.sessions.slot_lists_kernel import link_stored, unlink

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FIRST_SLOTS = 1 << 10


class KeyedSlots:
    """Windows by slot, and the newest of each key.

    Args:
        dtype: Of a slot: `SESSION` or `SLIDING_WINDOW`.
    """

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype
        self.clear()

    def clear(self) -> None:
        """Forgets all windows and keys; clocks stay."""
        self._slots = np.empty(0, dtype=self._dtype)
        self._newest = np.empty(0, dtype=np.int64)
        self._known = 0
        self._updates = 0

    def __len__(self) -> int:
        return self._known

    @property
    def known(self) -> NDArray[Any]:
        """By slot (a view, good until the next change)."""
        return self._slots[: self._known]

    def reserve_keys(self, keys: int) -> None:
        """Makes room for the key codes below ``keys``."""
        missing = keys - len(self._newest)
        if missing > 0:
            more = np.full(max(missing, len(self._newest)), NO_SLOT, dtype=np.int64)
            self._newest = np.concatenate([self._newest, more])

    def add_stored(self, key_code: NDArray[np.int64], **columns: NDArray[np.int64] | int) -> NDArray[np.int64]:
        """Adds windows that the store has, by key and then by time, older than all that their keys have here.

        Args:
            key_code: int64.
            columns: The other fields; without ``older``, ``alive`` and ``last_update``.

        Returns:
            int64, their slots.
        """
        first = self._known
        self._reserve(first + len(key_code))
        self._known += len(key_code)
        added = self._slots[first : self._known]
        for name, values in {**columns, "key_code": key_code, "alive": 1, "last_update": NO_UPDATE}.items():
            added[name] = values
        link_stored(first, self._known, self._newest, self._slots)
        return np.arange(first, self._known)

    def remove(self, slots: NDArray[np.int64]) -> None:
        """Takes windows away; their slots stay, as not alive."""
        unlink(slots, self._newest, self._slots)

    def keep(self, slots: NDArray[np.int64]) -> None:
        """Keeps only ``slots`` (int64, ascending), all that are alive and seen among them, and numbers them anew."""
        numbers = np.full(self._known + 1, NO_SLOT, dtype=np.int64)  # the last one is for NO_SLOT
        numbers[slots] = np.arange(len(slots))
        kept = self._slots[slots]
        kept["older"] = numbers[kept["older"]]
        self._newest = numbers[self._newest]
        self._slots = kept
        self._known = len(slots)

    def _reserve(self, slots: int) -> None:
        if slots > len(self._slots):
            larger = np.empty(1 << (max(slots, _FIRST_SLOTS) - 1).bit_length(), dtype=self._dtype)
            larger[: self._known] = self.known
            self._slots = larger

    def memory_bytes(self) -> int:
        """What the arrays take."""
        return self._slots.nbytes + self._newest.nbytes
