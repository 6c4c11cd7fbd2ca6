"""The hot loops of foreign-key joins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.kernels.compiled import BoolsOut, Int64s, Int64sOut, boolean, compiled, i64, nothing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NO_ROW = 0
"""What a subscription has that is not there."""


@compiled(i64(*[Int64s] * 7, Int64sOut, boolean, Int64sOut, Int64sOut))
def fan_out(
    subscribe_sequences: NDArray[np.int64],
    subscribe_slots: NDArray[np.int64],
    subscribe_rows: NDArray[np.int64],
    change_sequences: NDArray[np.int64],
    change_groups: NDArray[np.int64],
    offsets: NDArray[np.int64],
    members: NDArray[np.int64],
    rows: NDArray[np.int64],
    fill: bool,
    out_change: NDArray[np.int64],
    out_row: NDArray[np.int64],
) -> int:
    """Keeps subscriptions up to date and finds those that each change of the other table reaches, by sequence.

    Args:
        subscribe_sequences: Ascending, of subscriptions that come, change or go.
        subscribe_slots: Their slots.
        subscribe_rows: What each has from then on; `NO_ROW`: it is gone.
        change_sequences: Ascending, of the changes; none of them is one of a subscription.
        change_groups: The foreign key of each change, as an index into ``offsets``.
        offsets: The subscriptions of foreign key g are ``members[offsets[g]:offsets[g + 1]]``.
        members: Their slots, in the order in which they are told.
        rows: By slot, what the subscription has; kept up to date.
        fill: Whether to write the results, and not only to count them.
        out_change: By result, the change.
        out_row: By result, the row of the subscription that it reaches.

    Returns:
        The number of results.
    """
    found = 0
    subscribe = 0
    for change in range(len(change_sequences)):
        while subscribe < len(subscribe_slots) and subscribe_sequences[subscribe] < change_sequences[change]:
            rows[subscribe_slots[subscribe]] = subscribe_rows[subscribe]
            subscribe += 1
        group = change_groups[change]
        for place in range(offsets[group], offsets[group + 1]):
            row = rows[members[place]]
            if row != NO_ROW:
                if fill:
                    out_change[found] = change
                    out_row[found] = row
                found += 1
    while subscribe < len(subscribe_slots):
        rows[subscribe_slots[subscribe]] = subscribe_rows[subscribe]
        subscribe += 1
    return found


@compiled(nothing(Int64s, Int64s, Int64sOut, BoolsOut))
def not_overtaken(
    slots: NDArray[np.int64], numbers: NDArray[np.int64], latest: NDArray[np.int64], out: NDArray[np.bool_]
) -> None:
    """Which of numbered things, by slot, come after nothing of a larger number.

    Args:
        slots: The slot of each.
        numbers: Its number.
        latest: By slot, the largest number so far; kept up to date.
        out: For each, whether its number is at least that.
    """
    for thing in range(len(slots)):
        out[thing] = numbers[thing] >= latest[slots[thing]]
        if out[thing]:
            latest[slots[thing]] = numbers[thing]
