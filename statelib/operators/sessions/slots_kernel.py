"""The sessions of a working set: the arrays that the kernel of `statelib.operators.sessions.kernel` works on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from statelib.operators.sessions.kernel import EMISSION, NOT_STORED, assign
from statelib.operators.sessions.keyed_slots_kernel import KeyedSlots
from statelib.operators.sessions.slot_lists_kernel import SESSION

if TYPE_CHECKING:
    from numpy.typing import NDArray


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


class SessionSlots(KeyedSlots):
    """Sessions, numbered by slot, and for each key the list of its own.

    Args:
        gap_ms: Inactivity gap.
        grace_ms: Grace period.
        retention_ms: How long after its end a session is seen.
        store_time: The largest end of a session so far, ms.
    """

    def __init__(self, gap_ms: int, grace_ms: int, retention_ms: int, store_time: int) -> None:
        super().__init__(SESSION, store_time)
        self._policy = (gap_ms, grace_ms, retention_ms)

    @property
    def sessions(self) -> NDArray[Any]:
        """`SESSION`, by slot (a view, good until the next change)."""
        return self.known

    @property
    def last_expired_end(self) -> int:
        """The largest end, in ms, that is not seen any more."""
        return self.store_time - self._policy[2]

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
            self._slots, rows, slots, absorbed, emissions, accepted, lateness,
        )  # fmt: skip
        self._updates += updates
        return Assigned(
            rows[:updates], slots[:updates], absorbed[:updates], emissions[:emitted], accepted[:done], lateness[:done]
        )


def is_stored(sessions: NDArray[Any]) -> NDArray[np.bool_]:
    """Which of the sessions (`SESSION`) the store has, under these bounds or others."""
    stored: NDArray[np.bool_] = sessions["stored_end"] != NOT_STORED
    return stored
