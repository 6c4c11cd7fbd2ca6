"""The sliding windows of a working set: the arrays that the kernel of `statelib.operators.sliding.kernel` works on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from statelib.operators.sessions.keyed_slots_kernel import KeyedSlots
from statelib.operators.sessions.slot_lists_kernel import SLIDING_WINDOW
from statelib.operators.sliding.kernel import POLICY, PROGRESS, UPDATE, slide

if TYPE_CHECKING:
    from numpy.typing import NDArray

_UPDATES_OF_A_RECORD = 6
"""Room at first: a record that is in order changes four windows, more where many come within the time difference."""


@dataclass(frozen=True, slots=True)
class Slid:
    """What `SlidingSlots.slide` has found out.

    Attributes:
        updates: `UPDATE`, in the order in which states change; rows are counted in the whole batch.
        first_update: Number of the first of them in the working set.
        accepted: int64, by record that is done: how many windows have changed.
        expired: int64, by record: how many were closed.
        lateness: int64, by record: stream time minus timestamp, ms.
    """

    updates: NDArray[Any]
    first_update: int
    accepted: NDArray[np.int64]
    expired: NDArray[np.int64]
    lateness: NDArray[np.int64]


class SlidingSlots(KeyedSlots):
    """Windows, numbered by slot, and for each key the list of its own.

    Args:
        difference_ms: Time difference.
        grace_ms: Grace period.
        retention_ms: How long after its start a window is seen.
        store_time: The largest start of a window so far, ms.
    """

    def __init__(self, difference_ms: int, grace_ms: int, retention_ms: int, store_time: int) -> None:
        super().__init__(SLIDING_WINDOW, store_time)
        self._policy = (difference_ms, grace_ms, retention_ms)

    @property
    def windows(self) -> NDArray[Any]:
        """`SLIDING_WINDOW`, by slot (a view, good until the next change)."""
        return self.known

    @property
    def last_expired_start(self) -> int:
        """The largest start, in ms, that is not seen any more."""
        return self.store_time - self._policy[2]

    def take_back(self, dropped: NDArray[Any], kept: NDArray[Any], before: NDArray[Any], store_time: int) -> None:
        """Takes some of the updates back that a record has just made.

        Args:
            dropped: `UPDATE`, those.
            kept: `UPDATE`, the others.
            before: `SLIDING_WINDOW`, by slot, as they were before.
            store_time: The largest start of a window before, ms.
        """
        lost = np.setdiff1d(dropped["slot"], kept["slot"])
        self.remove(lost[lost >= len(before)])
        changed = lost[lost < len(before)]
        for name in ("timestamp", "last_update"):
            self.windows[name][changed] = before[name][changed]
        starts = self.windows["start"][kept["slot"]]
        self.store_time = max(store_time, int(starts.max(initial=store_time)))

    def slide(
        self,
        key_code: NDArray[np.int64],
        timestamp: NDArray[np.int64],
        clock: NDArray[np.int64],
        skipped: NDArray[np.bool_],
        *,
        once: bool,
    ) -> Slid:
        """Takes up records and moves the store's clock.

        Args:
            key_code: int64, for which there is room.
            timestamp: int64, ms.
            clock: int64, the stream time at each record, ms.
            skipped: bool: records that are dropped for a null.
            once: Whether to stop before a record that looks at a window which this call has updated already.
        """
        count = len(key_code)
        self._reserve(self._known + 3 * count)
        accepted, expired, lateness = (np.empty(count, dtype=np.int64) for _ in range(3))
        policy = np.array([(*self._policy, once)], dtype=POLICY)
        progress = np.array([(0, 0, self._known, self.store_time, 0)], dtype=PROGRESS)
        updates = np.empty(_UPDATES_OF_A_RECORD * count, dtype=UPDATE)
        while True:
            slide(
                key_code, timestamp, clock, skipped, policy, self._updates, self._newest, self._slots, updates,
                accepted, expired, lateness, progress,
            )  # fmt: skip
            rows, made, self._known, self.store_time, full = (int(value) for value in progress[0])
            if not full:
                break
            updates = np.concatenate([updates, np.empty(len(updates), dtype=UPDATE)])
        first_update, self._updates = self._updates, self._updates + made
        return Slid(updates[:made], first_update, accepted[:rows], expired[:rows], lateness[:rows])
