"""The hot loops of histograms of which quantiles are read, in `Blocks`.

A histogram is the keys of its buckets, ascending, in the first half of a block, and how many values each has in the
second half. Buckets without values are not there. Of a table a bucket may have less than none: of values that were
taken back and never added; it counts as if it were empty.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from statelib.kernels.compiled import (
    Bytes,
    BytesOut,
    Floats,
    Int64s,
    Int64sOut,
    boolean,
    compiled,
    helper,
    i64,
    nothing,
)
from statelib.operators.aggregation.accumulators.blocks import move_pairs
from statelib.operators.aggregation.accumulators.kernel import NO_ROW, NO_SLOT, other_slot

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NO_KEY = -(1 << 62)
"""Of a null, and of a quantile of nothing."""
WORDS_PER_WORD = 6
"""What one update takes at most, for each word of its block and of one that is absorbed, and then `MORE_WORDS`."""
MORE_WORDS = 64
_FIRST_ROOM = 8


@helper
def _place(words: NDArray[np.int64], at: int, count: int, key: int) -> int:
    """The first of ascending keys that is not below ``key``."""
    low: int = i64(0)
    high = count
    while low < high:
        middle = (low + high) >> 1
        if words[at + middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@helper
def _add(
    slot: int,
    key: int,
    values: int,
    offset: NDArray[np.int64],
    room: NDArray[np.int64],
    count: NDArray[np.int64],
    words: NDArray[np.int64],
    used: NDArray[np.int64],
    total: NDArray[np.int64],
) -> None:
    """Adds so many values, or takes them back, to a bucket."""
    place = _place(words, offset[slot], count[slot], key)
    before: int = i64(0)
    if place < count[slot] and words[offset[slot] + place] == key:
        at = offset[slot] + (room[slot] >> 1) + place
        before = words[at]
        words[at] += values
        if words[at] == 0:
            count[slot] -= 1
            for later in range(place, count[slot]):
                words[offset[slot] + later] = words[offset[slot] + later + 1]
                at = offset[slot] + (room[slot] >> 1) + later
                words[at] = words[at + 1]
    else:
        if 2 * count[slot] == room[slot]:
            move_pairs(slot, max(2 * room[slot], _FIRST_ROOM), offset, room, count, words, used)
        for later in range(count[slot], place, -1):
            words[offset[slot] + later] = words[offset[slot] + later - 1]
            at = offset[slot] + (room[slot] >> 1) + later
            words[at] = words[at - 1]
        words[offset[slot] + place] = key
        words[offset[slot] + (room[slot] >> 1) + place] = values
        count[slot] += 1
    total[slot] += max(before + values, 0) - max(before, 0)


@helper
def _read_off(
    at: int,
    room: int,
    count: int,
    words: NDArray[np.int64],
    total: int,
    ranks: NDArray[np.float64],
    places: NDArray[np.int64],
    out: NDArray[np.int64],
    first: int,
) -> None:
    """The buckets in which quantiles are, NO_KEY of nothing."""
    seen: int = i64(0)
    done: int = i64(0)
    for bucket in range(count if total > 0 else 0):
        seen += max(words[at + (room >> 1) + bucket], 0)
        while done < len(ranks) and seen > math.floor(ranks[done] * (total - 1)):
            out[first + places[done]] = words[at + bucket]
            done += 1
    for rank in range(done, len(ranks)):
        out[first + places[rank]] = NO_KEY


@compiled(i64(i64, *[Int64s] * 5, boolean, *[Int64sOut] * 6, Floats, Int64s, *[Int64sOut] * 4))
def running_histograms(
    first_update: int,
    rows: NDArray[np.int64],
    slots: NDArray[np.int64],
    absorbed: NDArray[np.int64],
    keys: NDArray[np.int64],
    old_keys: NDArray[np.int64],
    remembers: bool,
    offset: NDArray[np.int64],
    room: NDArray[np.int64],
    count: NDArray[np.int64],
    words: NDArray[np.int64],
    used: NDArray[np.int64],
    total: NDArray[np.int64],
    ranks: NDArray[np.float64],
    places: NDArray[np.int64],
    out_keys: NDArray[np.int64],
    out_offset: NDArray[np.int64],
    out_room: NDArray[np.int64],
    out_count: NDArray[np.int64],
) -> int:
    """Adds values to histograms, until done or out of room.

    ``rows``, ``slots``, ``absorbed`` as in `statelib.operators.aggregation.accumulators.kernel`; the blocks as in
    `Blocks`.

    Args:
        first_update: The update to begin with.
        rows: See above.
        slots: See above.
        absorbed: See above.
        keys: By record: the bucket of its value, or `NO_KEY`.
        old_keys: By record: the bucket of a value that is taken back, or `NO_KEY`; empty: nothing is.
        remembers: Whether blocks of former updates are left as they are, and the ``out_`` arrays of blocks filled.
        offset: See above.
        room: See above.
        count: See above.
        words: See above.
        used: See above.
        total: By slot: how many values there are.
        ranks: The quantiles that are asked for, ascending, 0 to 1.
        places: The place of each among the results.
        out_keys: By update and place: the bucket of the quantile after it, or `NO_KEY`; empty: nobody asks.
        out_offset: By update: the block after it, if ``remembers``.
        out_room: Likewise.
        out_count: Likewise.

    Returns:
        The first update that is not done, for want of room.
    """
    for update in range(first_update, len(rows)):
        slot, row = slots[update], rows[update]
        other = other_slot(absorbed, update)
        rooms = room[slot] + (room[other] if other != NO_SLOT else 0)
        if used[0] + WORDS_PER_WORD * rooms + MORE_WORDS > len(words):
            return update
        if remembers:
            move_pairs(slot, room[slot], offset, room, count, words, used)
        if other != NO_SLOT:
            for bucket in range(count[other]):
                key, values = words[offset[other] + bucket], words[offset[other] + (room[other] >> 1) + bucket]
                _add(slot, key, values, offset, room, count, words, used, total)
        if row != NO_ROW and len(old_keys) and old_keys[row] != NO_KEY:
            _add(slot, old_keys[row], -1, offset, room, count, words, used, total)
        if row != NO_ROW and keys[row] != NO_KEY:
            _add(slot, keys[row], 1, offset, room, count, words, used, total)
        if len(out_keys):
            first = update * len(ranks)
            _read_off(offset[slot], room[slot], count[slot], words, total[slot], ranks, places, out_keys, first)
        if remembers:
            out_offset[update], out_room[update], out_count[update] = offset[slot], room[slot], count[slot]
    return len(rows)


@compiled(nothing(*[Int64s] * 5, Floats, Int64s, Int64sOut))
def quantile_keys(
    offset: NDArray[np.int64],
    room: NDArray[np.int64],
    count: NDArray[np.int64],
    words: NDArray[np.int64],
    total: NDArray[np.int64],
    ranks: NDArray[np.float64],
    places: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """As ``out_keys`` of `running_histograms`, of some histograms as they are."""
    for one in range(len(offset)):
        _read_off(offset[one], room[one], count[one], words, total[one], ranks, places, out, one * len(ranks))


@helper
def _zigzag(number: int) -> int:
    """Not negative, and small if the number is near 0."""
    return (number << 1) ^ (number >> 63)


@helper
def _written(number: int, at: int, out: NDArray[np.uint8]) -> int:
    """Writes a number, 7 bits a byte, the least first, all but the last with the highest bit; where the next begins."""
    rest = _zigzag(number)
    while rest >= 0x80:
        if len(out):
            out[at] = (rest & 0x7F) | 0x80
        rest >>= 7
        at += 1
    if len(out):
        out[at] = rest
    return at + 1


@compiled(nothing(*[Int64s] * 4, Int64sOut, BytesOut))
def write_histograms(
    offset: NDArray[np.int64],
    room: NDArray[np.int64],
    count: NDArray[np.int64],
    words: NDArray[np.int64],
    ends: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> None:
    """Writes the buckets of histograms to ``out``, each to where ``ends`` says; empty: only says where each would end.

    A bucket is the difference of its key from that of the one before, and how many values it has.
    """
    for one in range(len(offset)):
        at = ends[one]
        before: int = i64(0)
        for bucket in range(count[one]):
            key = words[offset[one] + bucket]
            at = _written(key - before, at, out)
            at = _written(words[offset[one] + (room[one] >> 1) + bucket], at, out)
            before = key
        ends[one] = at


@compiled(nothing(*[Int64s] * 3, Bytes, *[Int64sOut] * 6))
def read_histograms(
    slots: NDArray[np.int64],
    start: NDArray[np.int64],
    length: NDArray[np.int64],
    data: NDArray[np.uint8],
    offset: NDArray[np.int64],
    room: NDArray[np.int64],
    count: NDArray[np.int64],
    words: NDArray[np.int64],
    used: NDArray[np.int64],
    total: NDArray[np.int64],
) -> None:
    """The reverse of `write_histograms`. There is room: for each slot 4 words a byte and 8 more."""
    for one in range(len(slots)):
        slot, end = slots[one], start[one] + length[one]
        room[slot], count[slot], total[slot] = 0, 0, 0
        key: int = i64(0)
        number: int = i64(0)
        shift: int = i64(0)
        is_key = True
        for at in range(start[one], end):
            number |= i64(data[at] & 0x7F) << shift
            shift += 7
            if data[at] & 0x80:
                continue
            number = (number >> 1) ^ -(number & 1)
            if is_key:
                key += number
            else:
                _add(slot, key, number, offset, room, count, words, used, total)
            number, shift, is_key = 0, 0, not is_key
