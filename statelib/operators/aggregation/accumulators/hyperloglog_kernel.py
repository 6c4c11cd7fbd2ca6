"""The hot loops of HyperLogLog sketches, which lie in blocks (`statelib.operators.aggregation.accumulators.blocks`).

A value is known by its *coupon*, as in Apache DataSketches: of its hash, 26 bits that say which register, of the lowest
of which there are `REGISTERS`, and above these how many zeros another 64 bits begin with, and one more. A sketch of up
to `MOST_COUPONS` of them is a hash table of coupons; of more, the largest number of each register::

    coupons     one a word, 0: none; a power of two of words, at most three quarters of which are taken
    registers   8 to a word, then, from `_HISTOGRAM` on, how many registers have each number: `DENSE` words in all

Which of both it is, and all that is in it, depends on the set of values alone, not on their order.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from statelib.kernels.compiled import (
    Bytes,
    BytesOut,
    Int64s,
    Int64sOut,
    UInt64sOut,
    boolean,
    compiled,
    helper,
    i64,
    nothing,
    store_word,
    u64,
)
from statelib.operators.aggregation.accumulators.kernel import NO_ROW, NO_SLOT, other_slot

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LOG_REGISTERS = 12
REGISTERS = 1 << LOG_REGISTERS
MOST_COUPONS = 384
_SLOT_BITS = 26
_LARGEST = 63
_HISTOGRAM = REGISTERS // 8
DENSE = _HISTOGRAM + _LARGEST + 1
"""Words of a sketch that has registers; a table of coupons has never as many."""
MOST_WORDS = 4 * DENSE
"""More than what one update can take."""
NOT_ESTIMATED = -1
_ALPHA = 1 / (2 * math.log(2))


@compiled(nothing(UInt64sOut, UInt64sOut, Int64sOut))
def coupons_of(first: NDArray[np.uint64], second: NDArray[np.uint64], coupons: NDArray[np.int64]) -> None:
    """The coupons of values, given both halves of their hashes."""
    for row in range(len(coupons)):
        zeros = 0
        while zeros < _LARGEST - 1 and not (second[row] >> (63 - zeros)) & 1:
            zeros += 1
        coupons[row] = ((zeros + 1) << _SLOT_BITS) | i64(first[row] & ((1 << _SLOT_BITS) - 1))


@helper
def _place(words: NDArray[np.int64], at: int, room: int, coupon: int) -> int:
    """Where a coupon is in a table, or where it goes."""
    place = coupon & (room - 1)
    while words[at + place] != 0 and words[at + place] != coupon:
        place = (place + 1) & (room - 1)
    found: int = at + place
    return found


@helper
def _register(words: NDArray[np.int64], at: int, register: int) -> int:
    number: int = (words[at + (register >> 3)] >> ((register & 7) << 3)) & 0xFF
    return number


@helper
def _raised(words: NDArray[np.int64], at: int, register: int, number: int) -> bool:
    """Makes a register at least ``number``; whether it was less."""
    before = _register(words, at, register)
    if number <= before:
        return False
    words[at + (register >> 3)] += (number - before) << ((register & 7) << 3)
    words[at + _HISTOGRAM + before] -= 1
    words[at + _HISTOGRAM + number] += 1
    return True


@helper
def _with_coupon(words: NDArray[np.int64], at: int, coupon: int) -> bool:
    return _raised(words, at, coupon & (REGISTERS - 1), coupon >> _SLOT_BITS)


@helper
def _new_block(words: NDArray[np.int64], used: NDArray[np.int64], room: int) -> int:
    """An empty block."""
    at: int = used[0]
    used[0] += room
    for word in range(at, at + room):
        words[word] = 0
    if room == DENSE:
        words[at + _HISTOGRAM] = REGISTERS
    return at


@helper
def _make_registers(
    slot: int,
    offset: NDArray[np.int64],
    room: NDArray[np.int64],
    words: NDArray[np.int64],
    used: NDArray[np.int64],
) -> None:
    """Makes registers of a table of coupons."""
    at = _new_block(words, used, DENSE)
    for word in range(offset[slot], offset[slot] + room[slot]):
        if words[word]:
            _with_coupon(words, at, words[word])
    offset[slot], room[slot] = at, DENSE


@helper
def _make_room(
    slot: int,
    offset: NDArray[np.int64],
    room: NDArray[np.int64],
    words: NDArray[np.int64],
    used: NDArray[np.int64],
) -> None:
    """A larger table of the same coupons."""
    larger = max(2 * room[slot], 8)
    at = _new_block(words, used, larger)
    for word in range(offset[slot], offset[slot] + room[slot]):
        if words[word]:
            words[_place(words, at, larger, words[word])] = words[word]
    offset[slot], room[slot] = at, larger


@helper
def _add(
    slot: int,
    coupon: int,
    offset: NDArray[np.int64],
    room: NDArray[np.int64],
    count: NDArray[np.int64],
    words: NDArray[np.int64],
    used: NDArray[np.int64],
) -> bool:
    """Adds a coupon; whether that changes the sketch."""
    if room[slot] == DENSE:
        return _with_coupon(words, offset[slot], coupon)
    if room[slot] and words[_place(words, offset[slot], room[slot], coupon)] == coupon:
        return False
    count[slot] += 1
    if count[slot] > MOST_COUPONS:
        _make_registers(slot, offset, room, words, used)
        _with_coupon(words, offset[slot], coupon)
        return True
    if 4 * count[slot] > 3 * room[slot]:
        _make_room(slot, offset, room, words, used)
    words[_place(words, offset[slot], room[slot], coupon)] = coupon
    return True


@helper
def _merge(
    slot: int,
    other: int,
    offset: NDArray[np.int64],
    room: NDArray[np.int64],
    count: NDArray[np.int64],
    words: NDArray[np.int64],
    used: NDArray[np.int64],
) -> bool:
    """Adds all that is in another sketch; whether that changes this one."""
    changed = False
    if room[other] != DENSE:
        for word in range(offset[other], offset[other] + room[other]):
            if words[word]:
                changed |= _add(slot, words[word], offset, room, count, words, used)
        return changed
    if room[slot] != DENSE:
        _make_registers(slot, offset, room, words, used)
        changed = True
    for register in range(REGISTERS):
        changed |= _raised(words, offset[slot], register, _register(words, offset[other], register))
    return changed


@helper
def _copy(
    slot: int,
    offset: NDArray[np.int64],
    room: NDArray[np.int64],
    words: NDArray[np.int64],
    used: NDArray[np.int64],
) -> None:
    """Moves a sketch into a block of its own, so that the former one stays as it is."""
    at, used[0] = used[0], used[0] + room[slot]
    for word in range(room[slot]):
        words[at + word] = words[offset[slot] + word]
    offset[slot] = at


@helper
def _estimate(room: int, count: int, words: NDArray[np.int64], at: int) -> int:
    """How many different values there are, about: the coupons, or what Ertl's improved estimator says of registers.

    Source: O. Ertl, "New cardinality estimation algorithms for HyperLogLog sketches" (2017), algorithm 6.
    """
    if room != DENSE:
        return count
    histogram = at + _HISTOGRAM
    x = 1.0 - words[histogram + _LARGEST] / REGISTERS
    tau = 0.0
    if 0.0 < x < 1.0:
        y, tau, before = 1.0, 1.0 - x, -1.0
        while tau != before:
            x = math.sqrt(x)
            before = tau
            y = 0.5 * y
            tau -= (1.0 - x) * (1.0 - x) * y
        tau /= 3.0
    z = REGISTERS * tau
    for number in range(_LARGEST - 1, 0, -1):
        z = 0.5 * (z + words[histogram + number])
    x = words[histogram] / REGISTERS
    y, sigma, before = 1.0, x, -1.0
    while sigma != before:  # a sketch that has registers has not all of them empty
        x *= x
        before = sigma
        sigma += x * y
        y += y
    z += REGISTERS * sigma
    about: int = i64(math.floor(_ALPHA * REGISTERS * REGISTERS / z + 0.5))
    return about


@compiled(i64(i64, *[Int64s] * 4, boolean, *[Int64sOut] * 6, *[Int64sOut] * 4))
def running_sketches(
    first_update: int,
    rows: NDArray[np.int64],
    slots: NDArray[np.int64],
    absorbed: NDArray[np.int64],
    coupons: NDArray[np.int64],
    remembers: bool,
    offset: NDArray[np.int64],
    room: NDArray[np.int64],
    count: NDArray[np.int64],
    words: NDArray[np.int64],
    used: NDArray[np.int64],
    estimate: NDArray[np.int64],
    out_estimate: NDArray[np.int64],
    out_offset: NDArray[np.int64],
    out_room: NDArray[np.int64],
    out_count: NDArray[np.int64],
) -> int:
    """Adds values to sketches, until done or out of room.

    ``rows``, ``slots``, ``absorbed`` as in `statelib.operators.aggregation.accumulators.kernel`; the blocks as in
    `Blocks`.

    Args:
        first_update: The update to begin with.
        rows: See above.
        slots: See above.
        absorbed: See above.
        coupons: By record; 0: of a null.
        remembers: Whether blocks of former updates are left as they are, and the ``out_`` arrays of blocks filled.
        offset: See above.
        room: See above.
        count: See above.
        words: See above.
        used: See above.
        estimate: By slot: how many values, or `NOT_ESTIMATED` since it has changed.
        out_estimate: By update: how many values after it; empty: nobody asks.
        out_offset: By update: the block after it, if ``remembers``.
        out_room: Likewise.
        out_count: Likewise.

    Returns:
        The first update that is not done, for want of `MOST_WORDS` words.
    """
    for update in range(first_update, len(rows)):
        if used[0] + MOST_WORDS > len(words):
            return update
        slot, row = slots[update], rows[update]
        other = other_slot(absorbed, update)
        changed = False
        if other != NO_SLOT and room[other]:
            if remembers:
                _copy(slot, offset, room, words, used)
            changed = _merge(slot, other, offset, room, count, words, used)
        coupon = coupons[row] if row != NO_ROW else 0
        if coupon:
            if remembers and not changed:
                _copy(slot, offset, room, words, used)
            changed |= _add(slot, coupon, offset, room, count, words, used)
        if changed:
            estimate[slot] = NOT_ESTIMATED
        if len(out_estimate):
            if estimate[slot] == NOT_ESTIMATED:
                estimate[slot] = _estimate(room[slot], count[slot], words, offset[slot])
            out_estimate[update] = estimate[slot]
        if remembers:
            out_offset[update], out_room[update], out_count[update] = offset[slot], room[slot], count[slot]
    return len(rows)


@compiled(nothing(*[Int64s] * 4, Int64sOut))
def estimates(
    offset: NDArray[np.int64],
    room: NDArray[np.int64],
    count: NDArray[np.int64],
    words: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """How many values each sketch has, about."""
    for sketch in range(len(offset)):
        out[sketch] = _estimate(room[sketch], count[sketch], words, offset[sketch])


@compiled(i64(*[Int64s] * 3, Int64sOut))
def coupons_by_sketch(
    offset: NDArray[np.int64], room: NDArray[np.int64], words: NDArray[np.int64], out: NDArray[np.int64]
) -> int:
    """The coupons of all sketches that have no registers, with the number of the sketch above them; how many."""
    done: int = i64(0)
    for sketch in range(len(offset)):
        if room[sketch] != DENSE:
            for word in range(offset[sketch], offset[sketch] + room[sketch]):
                if words[word]:
                    out[done] = (sketch << 32) | words[word]
                    done += 1
    return done


@compiled(nothing(*[Int64s] * 3, Int64sOut, BytesOut))
def write_registers(
    offset: NDArray[np.int64],
    at: NDArray[np.int64],
    words: NDArray[np.int64],
    histograms: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> None:
    """Writes registers of sketches to ``out``, each from ``at`` on, and their histograms one behind the other."""
    for sketch in range(len(offset)):
        for word in range(_HISTOGRAM):
            store_word(out, at[sketch] + 8 * word, u64(words[offset[sketch] + word]))
        for number in range(_LARGEST + 1):
            histograms[sketch * (_LARGEST + 1) + number] = words[offset[sketch] + _HISTOGRAM + number]


@compiled(nothing(Int64s, Int64s, Bytes, *[Int64sOut] * 5))
def read_registers(
    slots: NDArray[np.int64],
    at: NDArray[np.int64],
    data: NDArray[np.uint8],
    offset: NDArray[np.int64],
    room: NDArray[np.int64],
    count: NDArray[np.int64],
    words: NDArray[np.int64],
    used: NDArray[np.int64],
) -> None:
    """The reverse of `write_registers`: makes sketches of slots. There is room."""
    for sketch in range(len(slots)):
        slot = slots[sketch]
        offset[slot], room[slot], count[slot] = _new_block(words, used, DENSE), DENSE, MOST_COUPONS + 1
        for register in range(REGISTERS):
            _raised(words, offset[slot], register, i64(data[at[sketch] + register]))
