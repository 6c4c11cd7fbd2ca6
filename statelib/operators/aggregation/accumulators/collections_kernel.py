"""The hot loops of collections: which items each slot has taken, in order, each once or as often as it came.

Items are int64 numbers, whatever they stand for. An *entry* is an item of a slot; entries of a slot are a chain, in the
order in which they came. So the state after an update is the beginning of a chain, and nothing is copied for it.
Where each item is kept once, a table finds the entry of a slot's item, by open addressing with linear probing: the
number of the entry, or `EMPTY`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.kernels.compiled import Bools, Int64s, Int64sOut, boolean, compiled, helper, i64, nothing
from statelib.operators.aggregation.accumulators.kernel import NO_SLOT, has_value, other_slot

if TYPE_CHECKING:
    from numpy.typing import NDArray

EMPTY = -1
_ITEM_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SLOT_MULTIPLIER = np.uint64(0xC2B2AE3D27D4EB4F)
_FINAL = np.uint64(0xFF51AFD7ED558CCD)
_HALF = np.uint64(32)


@helper
def _place(
    slot: int, item: int, places: NDArray[np.int64], entry_slot: NDArray[np.int64], entry_item: NDArray[np.int64]
) -> int:
    """Where the entry of a slot's item is in the table, or where it goes."""
    state = np.uint64(item) * _ITEM_MULTIPLIER + np.uint64(slot) * _SLOT_MULTIPLIER
    state = (state ^ (state >> _HALF)) * _FINAL
    mask = len(places) - 1
    place = i64(state ^ (state >> _HALF)) & mask
    while places[place] != EMPTY:
        entry = places[place]
        if entry_item[entry] == item and entry_slot[entry] == slot:
            break
        place = (place + 1) & mask
    found: int = place
    return found


@helper
def _append(
    slot: int,
    item: int,
    once: bool,
    limit: int,
    places: NDArray[np.int64],
    entry_slot: NDArray[np.int64],
    entry_item: NDArray[np.int64],
    entry_next: NDArray[np.int64],
    head: NDArray[np.int64],
    tail: NDArray[np.int64],
    size: NDArray[np.int64],
    known: NDArray[np.int64],
) -> int:
    """Adds an item to a slot; gives 1 if it does not fit, else 0."""
    place: int = i64(0)
    if once:
        place = _place(slot, item, places, entry_slot, entry_item)
        if places[place] != EMPTY:
            return 0
    if size[slot] >= limit:
        return 1
    entry = known[0]
    known[0] += 1
    entry_slot[entry], entry_item[entry], entry_next[entry] = slot, item, EMPTY
    if size[slot]:
        entry_next[tail[slot]] = entry
    else:
        head[slot] = entry
    tail[slot] = entry
    size[slot] += 1
    if once:
        places[place] = entry
    return 0


@compiled(i64(i64, *[Int64s] * 4, Bools, boolean, i64, *[Int64sOut] * 10))
def running_collections(
    first_update: int,
    rows: NDArray[np.int64],
    slots: NDArray[np.int64],
    absorbed: NDArray[np.int64],
    items: NDArray[np.int64],
    valid: NDArray[np.bool_],
    once: bool,
    limit: int,
    places: NDArray[np.int64],
    entry_slot: NDArray[np.int64],
    entry_item: NDArray[np.int64],
    entry_next: NDArray[np.int64],
    head: NDArray[np.int64],
    tail: NDArray[np.int64],
    size: NDArray[np.int64],
    known: NDArray[np.int64],
    left_out: NDArray[np.int64],
    out: NDArray[np.int64],
) -> int:
    """Adds items to collections, until done or out of room.

    ``rows``, ``slots``, ``absorbed``, ``valid`` as in `statelib.operators.aggregation.accumulators.kernel`. What is
    absorbed comes behind what is there.

    Args:
        first_update: The update to begin with.
        rows: See above.
        slots: See above.
        absorbed: See above.
        items: By record.
        valid: See above.
        once: Whether an item that is there already is not added again.
        limit: How many items a collection has at most.
        places: The table, if ``once``: a power of two, at least twice as many as there is room for entries.
        entry_slot: By entry.
        entry_item: By entry.
        entry_next: By entry: the next one of its slot, or `EMPTY`.
        head: By slot: its first entry, if it has some.
        tail: By slot: its last entry, if it has some.
        size: By slot: how many it has.
        known: One element: how many entries there are.
        left_out: One element: how many items did not fit, added up.
        out: By update: how many items the collection has after it; empty: nobody asks.

    Returns:
        The first update that is not done, for want of entries.
    """
    for update in range(first_update, len(rows)):
        slot, row = slots[update], rows[update]
        other = other_slot(absorbed, update)
        if known[0] + 1 + (size[other] if other != NO_SLOT else 0) > len(entry_item):
            return update
        if other != NO_SLOT and size[other]:
            entry = head[other]
            while entry != EMPTY:
                left_out[0] += _append(
                    slot, entry_item[entry], once, limit, places, entry_slot, entry_item, entry_next,
                    head, tail, size, known,
                )  # fmt: skip
                entry = entry_next[entry]
        if has_value(row, valid):
            left_out[0] += _append(
                slot, items[row], once, limit, places, entry_slot, entry_item, entry_next, head, tail, size, known
            )
        if len(out):
            out[update] = size[slot]
    return len(rows)


@compiled(nothing(*[Int64s] * 5, Int64sOut))
def gather_items(
    slots: NDArray[np.int64],
    sizes: NDArray[np.int64],
    head: NDArray[np.int64],
    entry_next: NDArray[np.int64],
    entry_item: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """The first items of each slot, ``sizes`` of them, one slot's behind another's."""
    done: int = i64(0)
    for one in range(len(slots)):
        entry = head[slots[one]]
        for _ in range(sizes[one]):
            out[done] = entry_item[entry]
            entry = entry_next[entry]
            done += 1


@compiled(nothing(i64, Int64s, Int64s, Int64sOut))
def fill_places(
    known: int, entry_slot: NDArray[np.int64], entry_item: NDArray[np.int64], places: NDArray[np.int64]
) -> None:
    """Fills an empty table."""
    for entry in range(known):
        places[_place(entry_slot[entry], entry_item[entry], places, entry_slot, entry_item)] = entry
