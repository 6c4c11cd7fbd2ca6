"""The arrays of a working set whose keys have lists of windows: see `statelib.operators.sessions.slot_lists_kernel`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from statelib.columns.growing import grown
from statelib.operators.aggregation.accumulators.kernel import NO_SLOT, NO_UPDATE
from statelib.operators.sessions.slot_lists_kernel import link_stored, unlink

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_FIRST_SLOTS = 1 << 10
_COMPACT_FROM_SLOTS = 1 << 14


class KeyedSlots:
    """Windows by slot, the newest of each key, and the clock of their store.

    Args:
        dtype: Of a slot: `SESSION` or `SLIDING_WINDOW`.
        store_time: The largest end of a session, or start of a sliding window, so far, ms.
    """

    def __init__(self, dtype: np.dtype[Any], store_time: int) -> None:
        self._dtype = dtype
        self.store_time = store_time
        self.clear()

    def clear(self) -> None:
        """Forgets all windows and keys; the clock stays."""
        self._slots = np.empty(0, dtype=self._dtype)
        self._newest = np.empty(0, dtype=np.int64)
        self._asked = np.empty(0, dtype=np.bool_)  # by key code: whether its stored windows have been asked for
        self._known = 0
        self._kept = 0  # how many there were when those that nobody needs were last dropped
        self._updates = 0

    def __len__(self) -> int:
        return self._known

    @property
    def known(self) -> NDArray[Any]:
        """By slot (a view, good until the next change)."""
        return self._slots[: self._known]

    def reserve_keys(self, keys: int) -> None:
        """Makes room for the key codes below ``keys``."""
        self._newest = grown(self._newest, keys, NO_SLOT)
        self._asked = grown(self._asked, keys)

    def not_asked_for(self, key_code: NDArray[np.int64]) -> NDArray[np.int64]:
        """Key codes, each once, ascending, whose stored windows nobody has asked for yet; from now on somebody has."""
        codes = np.unique(key_code)
        codes = codes[~self._asked[codes]]
        self._asked[codes] = True
        return codes

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
        self._known = self._kept = len(slots)

    @property
    def have_doubled(self) -> bool:
        """Whether there are twice as many as when `keep` last chose some."""
        return self._known >= max(_COMPACT_FROM_SLOTS, 2 * self._kept)

    def saved(self) -> Callable[[], None]:
        """Remembers all windows and the clock; gives what makes them again what they are now."""
        slots, newest, known, updates = self.known.copy(), self._newest.copy(), self._known, self._updates
        store_time = self.store_time

        def restore() -> None:
            self._slots[:known], self._newest[:] = slots, newest
            self._known, self._updates, self.store_time = known, updates, store_time

        return restore

    def _reserve(self, slots: int) -> None:
        if slots > len(self._slots):
            larger = np.empty(1 << (max(slots, _FIRST_SLOTS) - 1).bit_length(), dtype=self._dtype)
            larger[: self._known] = self.known
            self._slots = larger

    def memory_bytes(self) -> int:
        """What the arrays take."""
        return self._slots.nbytes + self._newest.nbytes + self._asked.nbytes
