"""The hot loop of suppress: a buffer of keys in order of (buffer time, serialised key), from which the oldest leave.

Three structures share one array of slots (`SLOT`), a record a buffered key:

* a hash table with linear probing finds the slot of a key; its words are those of
  `statelib.operators.windows.slots_kernel`, and a removal moves later words back, so that no graves are left;
* a heap gives the oldest: `statelib.operators.suppress.heap_kernel`;
* a stack of free slot numbers.

Values never come here: a slot remembers the number of its row, and what leaves is a list of slots.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from statelib.kernels.compiled import Bytes, Int64s, Int64sOut, compiled, helper, i64, nothing, several
from statelib.operators.suppress.heap_kernel import key_prefix, sift
from statelib.operators.suppress.layout_kernel import (
    EMPTY,
    FROM_FIRST,
    FROM_LAST,
    NO_ROW,
    NOT_STORED,
    Figures,
    Heap,
    Inputs,
    Policies,
    Puts,
    Slots,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SLOT_MASK = (1 << 32) - 1
_MULTIPLIERS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9))
_FINAL = np.uint64(0xFF51AFD7ED558CCD)
_HALF = np.uint64(32)
_TAG_SHIFT = np.uint64(33)


@helper
def _tag(key_code: int, start: int, end: int) -> int:
    state = np.uint64(key_code) * _MULTIPLIERS[0]
    state += np.uint64(start) * _MULTIPLIERS[1] + np.uint64(end) * _MULTIPLIERS[2]
    state = (state ^ (state >> _HALF)) * _FINAL
    tag: int = i64((state ^ (state >> _HALF)) >> _TAG_SHIFT)
    return tag


@helper
def _find(tag: int, key_code: int, start: int, end: int, slots: Any, places: Any) -> int:
    """The place of the key in the table, or the empty place where it belongs."""
    mask = len(places) - 1
    place = tag & mask
    while places[place] != EMPTY:
        if places[place] >> 32 == tag:
            slot = slots[places[place] & _SLOT_MASK]
            if slot.key_code == key_code and slot.start == start and slot.end == end:
                break
        place = (place + 1) & mask
    return place


@helper
def _vacate(place: int, places: Any) -> None:
    """Empties a place of the table and moves back what had to go around it."""
    mask = len(places) - 1
    hole = place
    place = (place + 1) & mask
    while places[place] != EMPTY:
        home = (places[place] >> 32) & mask
        if (place - home) & mask >= (place - hole) & mask:
            places[hole] = places[place]
            hole = place
        place = (place + 1) & mask
    places[hole] = EMPTY


@helper
def _occupy(place: int, tag: int, places: Any, free: Any, state: Any) -> int:
    """Gives a key that is new a slot, and an index at the end of the heap."""
    state.free -= 1
    state.records += 1
    number: int = free[state.free]
    places[place] = (tag << 32) | number
    return number


@helper
def _open(record: Any, row: int, place: int, tag: int, slots: Any, places: Any, free: Any, state: Any) -> int:
    """Gives the key of a record a slot, and an index at the end of the heap; its place there is the caller's matter."""
    number = _occupy(place, tag, places, free, state)
    slot = slots[number]
    slot.key_code = record.key_code
    slot.start = record.start
    slot.end = record.end
    slot.tag = tag
    slot.first_row = row
    slot.prior_bytes = record.old_bytes
    slot.prior_code = record.old_code
    slot.stored_time = NOT_STORED
    slot.heap_index = state.records - 1
    return number


@helper
def _release(number: int, slots: Any, places: Any, free: Any, state: Any) -> None:
    """Takes a key out of the table, and gives its slot back; its place in the heap is the caller's matter."""
    slot = slots[number]
    _vacate(_find(slot.tag, slot.key_code, slot.start, slot.end, slots, places), places)
    free[state.free] = number
    state.free += 1
    state.records -= 1
    state.bytes -= slot.bytes


@helper
def _put(
    record: Any,
    row: int,
    policy: Any,
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    slots: Any,
    places: Any,
    heap: Any,
    free: Any,
    state: Any,
) -> int:
    """Takes up one record, in the slot of its key, whose number it gives."""
    tag = _tag(record.key_code, record.start, record.end)
    place = _find(tag, record.key_code, record.start, record.end, slots, places)
    time = record.time
    known = places[place] != EMPTY
    if known:
        number: int = places[place] & _SLOT_MASK
        slot = slots[number]
        state.replaced += 1
        state.bytes -= slot.bytes
        if policy.clock == FROM_FIRST:
            time = slot.time
        elif policy.clock == FROM_LAST:
            time = max(time, slot.time)
    else:
        number = _open(record, row, place, tag, slots, places, free, state)
        slot = slots[number]
        slot.prefix = key_prefix(slot, data, offsets, policy.suffix_words)
    slot.row = row
    slot.updated = state.stream_time
    slot.changed = 1
    # The record and its key, the prior value, and the value it replaces, if that is not the prior one once more.
    slot.bytes = record.bytes + slot.prior_bytes
    if record.old_code != slot.prior_code:
        slot.bytes += record.old_bytes
    state.bytes += slot.bytes
    if not known or time != slot.time:
        slot.time = time
        sift(slot.heap_index, time, number, slots, heap, state.records, data, offsets, policy.suffix_words)
    return number


@helper
def _take_out_oldest(
    words: int,
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    slots: Any,
    places: Any,
    heap: Any,
    free: Any,
    state: Any,
) -> None:
    _release(heap[0].slot, slots, places, free, state)
    if state.records > 0:
        last = heap[state.records]
        sift(0, last.time, last.slot, slots, heap, state.records, data, offsets, words)


@compiled(
    several(i64, 2)(
        Inputs, i64, Policies, Bytes, Int64s, Slots, Int64sOut, Heap, Int64sOut, Figures, Slots, Int64sOut, Puts
    )
)  # fmt: skip
def run(
    inputs: Any,
    first_row: int,
    policies: Any,
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    slots: Any,
    places: NDArray[np.int64],
    heap: Any,
    free: NDArray[np.int64],
    figures: Any,
    left: Any,
    triggers: NDArray[np.int64],
    puts: Any,
) -> tuple[int, int]:
    """Puts records into the buffer, one after the other, and after each takes out what has to leave.

    Args:
        inputs: `INPUT`, the records; there are at least as many free slots.
        first_row: Row number of the first record; the others follow.
        policies: `POLICY`, one element.
        data: uint8, the bytes of all keys, as in `KeyTable`.
        offsets: int64, where each key begins, as in `KeyTable`.
        slots: `SLOT`.
        places: int64, the hash table; a power of two, at least twice as many as slots.
        heap: `HEAP`, as many as slots.
        free: int64, as many as slots.
        figures: `FIGURES`, one element.
        left: Out, `SLOT`: room for all records and all slots.
        triggers: Out, int64: for each that left, the record of the batch that made it leave.
        puts: Out, `PUT`, as many as records; empty: nobody asks.

    Returns:
        How many left; and the record that exceeded a bound of a strict buffer, where it stopped, else `NO_ROW`.
    """
    policy = policies[0]
    state = figures[0]
    gone = i64(0)
    for row in range(len(inputs)):
        state.stream_time = max(state.stream_time, inputs[row].timestamp)
        number = _put(inputs[row], first_row + row, policy, data, offsets, slots, places, heap, free, state)
        if len(puts):
            puts[row].time = slots[number].time
            puts[row].first_row = slots[number].first_row
        state.max_records = max(state.max_records, state.records + state.spilled_records)
        state.max_bytes = max(state.max_bytes, state.bytes + state.spilled_bytes)
        while state.records > 0:
            if heap[0].time > state.stream_time - policy.wait:
                if state.records <= policy.max_records and state.bytes <= policy.max_bytes:
                    break
                if policy.strict:
                    return gone, row
            left[gone] = slots[heap[0].slot]
            triggers[gone] = row
            gone += 1
            _take_out_oldest(policy.suffix_words, data, offsets, slots, places, heap, free, state)
        state.sum_records += state.records + state.spilled_records
        state.sum_bytes += state.bytes + state.spilled_bytes
    return gone, NO_ROW


@compiled(nothing(Slots, Policies, Bytes, Int64s, Slots, Int64sOut, Heap, Int64sOut, Figures))
def insert(
    new: Any,
    policies: Any,
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    slots: Any,
    places: NDArray[np.int64],
    heap: Any,
    free: NDArray[np.int64],
    figures: Any,
) -> None:
    """Puts keys that are not in the buffer back into it, as they were; nothing leaves.

    ``new`` is `SLOT`, of which tag, prefix and place in the heap are found anew; the others are those of `run`.
    """
    words = policies[0].suffix_words
    state = figures[0]
    for i in range(len(new)):
        tag = _tag(new[i].key_code, new[i].start, new[i].end)
        place = _find(tag, new[i].key_code, new[i].start, new[i].end, slots, places)
        number = _occupy(place, tag, places, free, state)
        slots[number] = new[i]
        slot = slots[number]
        slot.tag = tag
        slot.prefix = key_prefix(slot, data, offsets, words)
        state.bytes += slot.bytes
        sift(state.records - 1, slot.time, number, slots, heap, state.records, data, offsets, words)


@compiled(nothing(Int64s, Int64s, Int64s, Slots, Int64s, Int64sOut))
def find(
    key_code: NDArray[np.int64],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    slots: Any,
    places: NDArray[np.int64],
    numbers: NDArray[np.int64],
) -> None:
    """The slot number of each key, `EMPTY` for one that is not in the buffer."""
    for i in range(len(numbers)):
        word = places[_find(_tag(key_code[i], start[i], end[i]), key_code[i], start[i], end[i], slots, places)]
        numbers[i] = EMPTY if word == EMPTY else word & _SLOT_MASK


@compiled(nothing(Slots, Int64s, Int64sOut))
def place_slots(slots: Any, numbers: NDArray[np.int64], places: NDArray[np.int64]) -> None:
    """Fills an empty table (all `EMPTY`, at least twice the slots) with the slots ``numbers``."""
    mask = len(places) - 1
    for number in numbers:
        place = slots[number].tag & mask
        while places[place] != EMPTY:
            place = (place + 1) & mask
        places[place] = (slots[number].tag << 32) | number
