"""The hot loops of `statelib.operators.aggregation.accumulators.top`, in `Blocks`.

A block has the keys of a group's records in its first half, ascending, so the best first, and their numbers in the
second half.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.kernels.compiled import Bools, Int64s, Int64sOut, boolean, compiled, helper, i64, nothing
from statelib.operators.aggregation.accumulators.blocks import move_pairs
from statelib.operators.aggregation.accumulators.kernel import NO_SLOT, has_value, other_slot

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WORDS_PER_RECORD = 16
"""What one update takes at most, for each record that a group may have, and then `MORE_WORDS`."""
MORE_WORDS = 64
_FIRST_ROOM = 8


@helper
def _insert(
    slot: int,
    key: int,
    number: int,
    limit: int,
    offset: NDArray[np.int64],
    room: NDArray[np.int64],
    count: NDArray[np.int64],
    words: NDArray[np.int64],
    used: NDArray[np.int64],
) -> None:
    """Adds a record behind those with keys that are not larger, if it is one of the first ``limit``."""
    last = count[slot]
    if last == limit and words[offset[slot] + last - 1] <= key:
        return
    if last < limit:
        if 2 * last == room[slot]:
            move_pairs(slot, max(2 * room[slot], _FIRST_ROOM), offset, room, count, words, used)
        count[slot] += 1
    else:
        last -= 1
    keys = offset[slot]
    numbers = keys + (room[slot] >> 1)
    while last > 0 and words[keys + last - 1] > key:
        words[keys + last] = words[keys + last - 1]
        words[numbers + last] = words[numbers + last - 1]
        last -= 1
    words[keys + last], words[numbers + last] = key, number


@compiled(i64(i64, *[Int64s] * 4, Bools, i64, i64, boolean, *[Int64sOut] * 8))
def running_top(
    first_update: int,
    rows: NDArray[np.int64],
    slots: NDArray[np.int64],
    absorbed: NDArray[np.int64],
    keys: NDArray[np.int64],
    valid: NDArray[np.bool_],
    first_number: int,
    limit: int,
    remembers: bool,
    offset: NDArray[np.int64],
    room: NDArray[np.int64],
    count: NDArray[np.int64],
    words: NDArray[np.int64],
    used: NDArray[np.int64],
    out_offset: NDArray[np.int64],
    out_room: NDArray[np.int64],
    out_count: NDArray[np.int64],
) -> int:
    """Keeps the ``limit`` records with the smallest keys, until done or out of room; of equal keys, the first.

    ``rows``, ``slots``, ``absorbed``, ``valid`` as in `statelib.operators.aggregation.accumulators.kernel`; the blocks
    as in `Blocks`.

    Args:
        first_update: The update to begin with.
        rows: See above.
        slots: See above.
        absorbed: See above. What is absorbed comes after what is there.
        keys: By record.
        valid: By record: whether it has a key; empty: all have.
        first_number: The number of record 0.
        limit: See above.
        remembers: Whether blocks of former updates are left as they are, and the ``out_`` arrays of blocks filled.
        offset: See above.
        room: See above.
        count: See above.
        words: See above.
        used: See above.
        out_offset: By update: the block after it, if ``remembers``.
        out_room: Likewise.
        out_count: Likewise.

    Returns:
        The first update that is not done, for want of room.
    """
    for update in range(first_update, len(rows)):
        if used[0] + WORDS_PER_RECORD * limit + MORE_WORDS > len(words):
            return update
        slot, row = slots[update], rows[update]
        other = other_slot(absorbed, update)
        absorbs = other != NO_SLOT and count[other] > 0
        adds = has_value(row, valid)
        if adds and not absorbs and count[slot] == limit:
            adds = keys[row] < words[offset[slot] + limit - 1]
        if remembers and (absorbs or adds):
            move_pairs(slot, room[slot], offset, room, count, words, used)
        if absorbs:
            for place in range(count[other]):
                key, number = words[offset[other] + place], words[offset[other] + (room[other] >> 1) + place]
                _insert(slot, key, number, limit, offset, room, count, words, used)
        if adds:
            _insert(slot, keys[row], first_number + row, limit, offset, room, count, words, used)
        if remembers:
            out_offset[update], out_room[update], out_count[update] = offset[slot], room[slot], count[slot]
    return len(rows)


@compiled(nothing(*[Int64s] * 4, Int64sOut))
def gather_numbers(
    offset: NDArray[np.int64],
    room: NDArray[np.int64],
    count: NDArray[np.int64],
    words: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """The numbers of the records of some blocks, one block's behind another's."""
    done: int = i64(0)
    for one in range(len(offset)):
        for place in range(count[one]):
            out[done] = words[offset[one] + (room[one] >> 1) + place]
            done += 1


@compiled(nothing(*[Int64s] * 3, i64, Int64s, Int64sOut))
def renumber_blocks(
    offset: NDArray[np.int64],
    room: NDArray[np.int64],
    count: NDArray[np.int64],
    first: int,
    numbers: NDArray[np.int64],
    words: NDArray[np.int64],
) -> None:
    """Gives the records from number ``first`` on the numbers that ``numbers`` has for them."""
    for one in range(len(offset)):
        for place in range(count[one]):
            at = offset[one] + (room[one] >> 1) + place
            if words[at] >= first:
                words[at] = numbers[words[at] - first]


@compiled(nothing(*[Int64s] * 4, Int64sOut))
def rekey_blocks(
    offset: NDArray[np.int64],
    room: NDArray[np.int64],
    count: NDArray[np.int64],
    keys: NDArray[np.int64],
    words: NDArray[np.int64],
) -> None:
    """Gives all records the keys that ``keys`` has, by their numbers. The order stays."""
    for one in range(len(offset)):
        for place in range(count[one]):
            words[offset[one] + place] = keys[words[offset[one] + (room[one] >> 1) + place]]
