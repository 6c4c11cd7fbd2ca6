"""Windows by slot, and for each key the list of its own: what sessions and sliding windows have in common.

A *slot* is the number of a window in the working set, counted from 0, and its place in an array of records. Those of a
key form a list from the newest to the oldest through their field ``older``; an array by key code has the newest ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from statelib.kernels.compiled import Int64s, Int64sOut, compiled, helper, i64, nothing, records_of
from statelib.operators.aggregation.accumulators.kernel import NO_SLOT

if TYPE_CHECKING:
    from numpy.typing import NDArray

SESSION = np.dtype(
    [
        ("key_code", np.int64),
        ("start", np.int64),  # the first timestamp
        ("end", np.int64),  # the last one
        ("older", np.int64),  # the slot of the key's next older session, else NO_SLOT
        ("alive", np.int64),  # 0: absorbed or removed
        ("stored_start", np.int64),  # the bounds under which the store has it, else NOT_STORED
        ("stored_end", np.int64),
        ("last_update", np.int64),  # number of its last update in this working set, else NO_UPDATE
    ]
)
SLIDING_WINDOW = np.dtype(
    [
        ("key_code", np.int64),
        ("start", np.int64),
        ("timestamp", np.int64),  # the largest of its records
        ("older", np.int64),  # the slot of the key's next window by descending start, else NO_SLOT
        ("alive", np.int64),  # 0: removed
        ("stored", np.int64),  # 1: the store has it
        ("last_update", np.int64),  # number of its last update in this working set, else NO_UPDATE
    ]
)

Sessions, SlidingWindows = records_of(SESSION), records_of(SLIDING_WINDOW)


@helper
def link(above: int, key: int, slot: int, newest: NDArray[np.int64], windows: Any) -> None:
    """Makes ``slot`` the next one below ``above``, or the newest of ``key`` if that is `NO_SLOT`."""
    if above == NO_SLOT:
        newest[key] = slot
    else:
        windows[above].older = slot


@compiled(*(nothing(i64, i64, Int64sOut, windows) for windows in (Sessions, SlidingWindows)))
def link_stored(first: int, end: int, newest: NDArray[np.int64], windows: Any) -> None:
    """Puts the slots ``first`` to ``end`` (exclusive), by key and time, below the other windows of their keys."""
    tail = i64(NO_SLOT)
    for slot in range(end - 1, first - 1, -1):
        key = windows[slot].key_code
        if slot == end - 1 or windows[slot + 1].key_code != key:
            tail = i64(NO_SLOT)
            following = newest[key]
            while following != NO_SLOT:
                tail = following
                following = windows[following].older
        link(tail, key, slot, newest, windows)
        windows[slot].older = NO_SLOT
        tail = slot


@compiled(*(nothing(Int64s, Int64sOut, windows) for windows in (Sessions, SlidingWindows)))
def unlink(slots: NDArray[np.int64], newest: NDArray[np.int64], windows: Any) -> None:
    """Takes windows out of the lists of their keys, where one that is not seen any more may be missing."""
    for slot in slots:
        key = windows[slot].key_code
        above = i64(NO_SLOT)
        following = newest[key]
        while following != slot and following != NO_SLOT:  # noqa: PLR1714 - no sets in kernels
            above = following
            following = windows[following].older
        if following == slot:
            link(above, key, windows[slot].older, newest, windows)
        windows[slot].alive = 0
