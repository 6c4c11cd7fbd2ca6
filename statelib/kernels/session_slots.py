"""The sessions of a working set: the arrays that the kernel of `statelib.kernels.sessions` works on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from statelib.kernels.aggregations import NO_SLOT, NO_UPDATE
from statelib.kernels.sessions import EMISSION, NOT_STORED, SESSION, assign, link_stored, unlink

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FIRST_SLOTS = 1 << 10


@dataclass(frozen=True, slots=True)
class Assigned:
    """What `SessionSlots.assign` has found out; ``n`` records are done.

    Attributes:
        rows: int64, by update: the record.
        slots: int64, by update: the slot of its session.
        absorbed: int64, by update: the slot that is merged into that one, else `NO_SLOT`.
        emissions: `EMISSION`, in order.
        accepted: bool[n]: which records are in a session.
        lateness: int64[n]: stream time minus timestamp, ms.
    """

    rows: NDArray[np.int64]
    slots: NDArray[np.int64]
    absorbed: NDArray[np.int64]
    emissions: NDArray[Any]
    accepted: NDArray[np.bool_]
    lateness: NDArray[np.int64]


class SessionSlots:
    """Sessions, numbered by slot, and for each key the list of its own.

    Args:
        gap_ms: Inactivity gap.
        grace_ms: Grace period.
        retention_ms: How long after its end a session is seen.
        store_time: The largest end of a session so far, ms.
    """

    def __init__(self, gap_ms: int, grace_ms: int, retention_ms: int, store_time: int) -> None:
        self._policy = (gap_ms, grace_ms, retention_ms)
        self.store_time = store_time
        self.clear()

    def clear(self) -> None:
        """Forgets all sessions and keys; the clock stays."""
        self._sessions = np.empty(0, dtype=SESSION)
        self._newest = np.empty(0, dtype=np.int64)
        self._known = 0
        self._updates = 0

    def __len__(self) -> int:
        return self._known

    @property
    def sessions(self) -> NDArray[Any]:
        """`SESSION`, by slot (a view, good until the next change)."""
        return self._sessions[: self._known]

    @property
    def last_expired_end(self) -> int:
        """The largest end, in ms, that is not seen any more."""
        return self.store_time - self._policy[2]

    def reserve_keys(self, keys: int) -> None:
        """Makes room for the key codes below ``keys``."""
        missing = keys - len(self._newest)
        if missing > 0:
            more = np.full(max(missing, len(self._newest)), NO_SLOT, dtype=np.int64)
            self._newest = np.concatenate([self._newest, more])

    def assign(
        self, key_code: NDArray[np.int64], timestamp: NDArray[np.int64], clock: NDArray[np.int64], *, once: bool
    ) -> Assigned:
        """Puts records into sessions, new ones included.

        Args:
            key_code: int64, for which there is room.
            timestamp: int64, ms.
            clock: int64, the stream time at each record, ms.
            once: Whether to stop before a session is updated for the second time.
        """
        count = len(key_code)
        self._reserve(self._known + count)
        rows, slots, absorbed, lateness = (np.empty(count, dtype=np.int64) for _ in range(4))
        accepted = np.empty(count, dtype=np.bool_)
        emissions = np.empty(3 * count, dtype=EMISSION)
        done, updates, emitted, self._known, self.store_time = assign(
            key_code, timestamp, clock, *self._policy, once, self.store_time, self._known, self._updates, self._newest,
            self._sessions, rows, slots, absorbed, emissions, accepted, lateness,
        )  # fmt: skip
        self._updates += updates
        return Assigned(
            rows[:updates], slots[:updates], absorbed[:updates], emissions[:emitted], accepted[:done], lateness[:done]
        )

    def add_stored(
        self, key_code: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Adds sessions that the store has, by key and then by end, older than all that their keys have here.

        Returns:
            int64, their slots.
        """
        first = self._known
        self._reserve(first + len(key_code))
        self._known += len(key_code)
        added = self._sessions[first : self._known]
        added["key_code"] = key_code
        added["start"] = added["stored_start"] = start
        added["end"] = added["stored_end"] = end
        added["alive"] = 1
        added["last_update"] = NO_UPDATE
        link_stored(first, self._known, self._newest, self._sessions)
        return np.arange(first, self._known)

    def remove(self, slots: NDArray[np.int64]) -> None:
        """Takes sessions away; their slots stay, as not alive."""
        unlink(slots, self._newest, self._sessions)

    def keep(self, slots: NDArray[np.int64]) -> None:
        """Keeps only ``slots`` (int64, ascending), all that are alive and seen among them, and numbers them anew."""
        numbers = np.full(self._known + 1, NO_SLOT, dtype=np.int64)  # the last one is for NO_SLOT
        numbers[slots] = np.arange(len(slots))
        kept = self._sessions[slots]
        kept["older"] = numbers[kept["older"]]
        self._newest = numbers[self._newest]
        self._sessions = kept
        self._known = len(slots)

    def _reserve(self, slots: int) -> None:
        if slots > len(self._sessions):
            sessions = np.empty(1 << (max(slots, _FIRST_SLOTS) - 1).bit_length(), dtype=SESSION)
            sessions[: self._known] = self.sessions
            self._sessions = sessions

    def memory_bytes(self) -> int:
        """What the arrays take."""
        return self._sessions.nbytes + self._newest.nbytes


def is_stored(sessions: NDArray[Any]) -> NDArray[np.bool_]:
    """Which of the sessions (`SESSION`) the store has, under these bounds or others."""
    stored: NDArray[np.bool_] = sessions["stored_end"] != NOT_STORED
    return stored
