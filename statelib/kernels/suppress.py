"""The hot loop of suppress: a buffer of keys in order of (buffer time, serialised key), from which the oldest leave.

Three structures share one array of slots, a record a buffered key:

* a hash table with linear probing finds the slot of a key; its words are those of `statelib.kernels.windows`, and a
  removal moves later words back, so that no graves are left;
* a binary heap gives the oldest; each slot knows its place in the heap, so that it can move;
* a stack of free slot numbers.

A key of the buffer is a record key and 0, 1 or 2 *suffix words*, the 64-bit integers that Kafka writes behind the key's
bytes, big-endian: none, a window's start, or a session's end and start.

Values never come here: a slot remembers the number of its row, and what leaves is a list of row numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import from_dtype, types

from statelib.kernels.compiled import Bytes, Int64s, Int64sOut, compiled, helper, i64, nothing, several

if TYPE_CHECKING:
    from numpy.typing import NDArray


EMPTY = -1
NOT_STORED = np.iinfo(np.int64).min
NO_LIMIT = np.iinfo(np.int64).max
NO_ROW = -1

SLOT = np.dtype(
    [
        ("key_code", np.int64),
        ("start", np.int64),  # of the window, else 0
        ("end", np.int64),
        ("tag", np.int64),  # 31 bits of the key's hash
        ("prefix", np.uint64),  # the first 8 bytes of the serialised key, as a big-endian number
        ("time", np.int64),  # buffer time
        ("row", np.int64),  # the latest record
        ("first_row", np.int64),  # the record that was buffered first: its prior is what is known downstream
        ("bytes", np.int64),  # of the latest record and its key
        ("prior_bytes", np.int64),
        ("prior_code", np.int64),
        ("stored_time", np.int64),  # the buffer time under which the store has the key, else NOT_STORED
        ("changed", np.int64),  # 1: the store does not have the latest record
        ("heap_index", np.int64),
    ]
)
HEAP = np.dtype(
    [
        ("time", np.int64),  # as the slot's, to decide most comparisons without it
        ("prefix", np.uint64),
        ("slot", np.int64),
    ]
)
FIGURES = np.dtype(
    [
        ("stream_time", np.int64),
        ("records", np.int64),
        ("bytes", np.int64),
        ("max_records", np.int64),  # the largest ever
        ("max_bytes", np.int64),
        ("replaced", np.int64),  # how many buffered records an update has replaced
        ("free", np.int64),  # how many slot numbers are on the stack
    ]
)
EMISSION = np.dtype(
    [
        ("row", np.int64),
        ("first_row", np.int64),
        ("trigger", np.int64),  # the record of the batch that made it leave
        ("key_code", np.int64),
        ("start", np.int64),
        ("end", np.int64),
        ("stored_time", np.int64),
    ]
)
POLICY = np.dtype(
    [
        ("wait", np.int64),  # a key leaves when its buffer time <= stream time - wait
        ("max_records", np.int64),
        ("max_bytes", np.int64),
        ("strict", np.int64),  # 1: stop where a bound is exceeded, instead of emitting early
        ("restart", np.int64),  # 1: an update gives its key a new buffer time
        ("suffix_words", np.int64),
    ]
)
INPUT = np.dtype(
    [
        ("key_code", np.int64),
        ("start", np.int64),
        ("end", np.int64),
        ("time", np.int64),  # buffer time that the record asks for
        ("timestamp", np.int64),
        ("bytes", np.int64),
        ("old_bytes", np.int64),  # size of the value that the record replaces upstream, and a code for its content
        ("old_code", np.int64),
    ]
)


def _records(dtype: Any) -> Any:
    return types.Array(from_dtype(dtype), 1, "C")


_Slots, _Heap, _Figures, _Emissions, _Policy, _Inputs = (
    _records(dtype) for dtype in (SLOT, HEAP, FIGURES, EMISSION, POLICY, INPUT)
)

_SLOT_MASK = (1 << 32) - 1
_MULTIPLIERS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9))
_FINAL = np.uint64(0xFF51AFD7ED558CCD)
_HALF = np.uint64(32)
_TAG_SHIFT = np.uint64(33)
_BYTE = np.uint64(8)


@helper
def _tag(key_code: int, start: int, end: int) -> int:
    state = np.uint64(key_code) * _MULTIPLIERS[0]
    state += np.uint64(start) * _MULTIPLIERS[1] + np.uint64(end) * _MULTIPLIERS[2]
    state = (state ^ (state >> _HALF)) * _FINAL
    tag: int = i64((state ^ (state >> _HALF)) >> _TAG_SHIFT)
    return tag


@helper
def _byte(slot: Any, data: NDArray[np.uint8], offsets: NDArray[np.int64], words: int, position: int) -> int:
    """Byte ``position`` of the slot's serialised key."""
    at = offsets[slot.key_code] + position
    behind = at - offsets[slot.key_code + 1]
    if behind < 0:
        byte: int = i64(data[at])
        return byte
    word = slot.end if words == 2 and behind < 8 else slot.start
    shift: int = (word >> (8 * (7 - behind % 8))) & 0xFF
    return shift


@helper
def _length(slot: Any, offsets: NDArray[np.int64], words: int) -> int:
    length: int = offsets[slot.key_code + 1] - offsets[slot.key_code] + 8 * words
    return length


@helper
def _prefix(slot: Any, data: NDArray[np.uint8], offsets: NDArray[np.int64], words: int) -> np.uint64:
    prefix = np.uint64(0)
    length = _length(slot, offsets, words)
    for position in range(8):
        byte = _byte(slot, data, offsets, words, position) if position < length else i64(0)
        prefix = (prefix << _BYTE) | np.uint64(byte)
    return prefix


@helper
def _key_before(a: Any, b: Any, data: NDArray[np.uint8], offsets: NDArray[np.int64], words: int) -> bool:
    """Whether the serialised key of slot ``a`` comes before that of slot ``b``, bytewise."""
    a_length = _length(a, offsets, words)
    b_length = _length(b, offsets, words)
    for position in range(min(a_length, b_length)):
        a_byte = _byte(a, data, offsets, words, position)
        b_byte = _byte(b, data, offsets, words, position)
        if a_byte != b_byte:
            return a_byte < b_byte
    return a_length < b_length


@helper
def _sift(
    index: int,
    time: int,
    number: int,
    slots: Any,
    heap: Any,
    count: int,
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    words: int,
) -> None:
    """Puts a slot into the hole at ``index`` of a heap of ``count``, or rather where it belongs above or below it."""
    prefix = slots[number].prefix
    while index > 0:
        parent = (index - 1) >> 1
        above = heap[parent]
        if above.time < time or (above.time == time and above.prefix < prefix):
            break
        if (
            above.time == time
            and above.prefix == prefix
            and not _key_before(slots[number], slots[above.slot], data, offsets, words)
        ):
            break
        _move(parent, index, slots, heap)
        index = parent
    while 2 * index + 1 < count:
        child = 2 * index + 1
        if child + 1 < count:
            left, right = heap[child], heap[child + 1]
            if right.time < left.time or (right.time == left.time and right.prefix < left.prefix):
                child += 1
            elif right.time == left.time and right.prefix == left.prefix:
                child += _key_before(slots[right.slot], slots[left.slot], data, offsets, words)
        below = heap[child]
        if below.time > time or (below.time == time and below.prefix > prefix):
            break
        if (
            below.time == time
            and below.prefix == prefix
            and not _key_before(slots[below.slot], slots[number], data, offsets, words)
        ):
            break
        _move(child, index, slots, heap)
        index = child
    hole = heap[index]
    hole.time = time
    hole.prefix = prefix
    hole.slot = number
    slots[number].heap_index = index


@helper
def _move(source: int, target: int, slots: Any, heap: Any) -> None:
    """Copies an element of the heap to another index."""
    moved, hole = heap[source], heap[target]
    hole.time = moved.time
    hole.prefix = moved.prefix
    hole.slot = moved.slot
    slots[moved.slot].heap_index = target


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
def _slot_bytes(slot: Any, old_bytes: int, old_code: int) -> int:
    """What a slot counts: its record and key, the prior value, and the old one if it is not the same."""
    size: int = slot.bytes + slot.prior_bytes
    return size if old_code == slot.prior_code else size + old_bytes


@compiled(
    several(i64, 2)(_Inputs, i64, _Policy, Bytes, Int64s, _Slots, Int64sOut, _Heap, Int64sOut, _Figures, _Emissions)
)
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
    emissions: Any,
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
        emissions: Out, `EMISSION`: room for all records and all slots.

    Returns:
        How many left; and the record that exceeded a bound of a strict buffer, where it stopped, else `NO_ROW`.
    """
    policy = policies[0]
    words = policy.suffix_words
    state = figures[0]
    emitted = i64(0)
    for row in range(len(inputs)):
        record = inputs[row]
        state.stream_time = max(state.stream_time, record.timestamp)
        tag = _tag(record.key_code, record.start, record.end)
        place = _find(tag, record.key_code, record.start, record.end, slots, places)
        known = places[place] != EMPTY
        if known:
            number = places[place] & _SLOT_MASK
            slot = slots[number]
            state.replaced += 1
        else:
            state.free -= 1
            number = free[state.free]
            places[place] = (tag << 32) | number
            slot = slots[number]
            slot.key_code = record.key_code
            slot.start = record.start
            slot.end = record.end
            slot.tag = tag
            slot.prefix = _prefix(slot, data, offsets, words)
            slot.first_row = first_row + row
            slot.prior_bytes = record.old_bytes
            slot.prior_code = record.old_code
            slot.stored_time = NOT_STORED
            slot.heap_index = state.records
            state.records += 1
        before = slot.bytes if known else i64(0)
        slot.bytes = record.bytes
        slot.bytes = _slot_bytes(slot, record.old_bytes, record.old_code)
        state.bytes += slot.bytes - before
        slot.row = first_row + row
        slot.changed = 1
        if not known or policy.restart:
            slot.time = record.time
            _sift(slot.heap_index, record.time, number, slots, heap, state.records, data, offsets, words)
        state.max_records = max(state.max_records, state.records)
        state.max_bytes = max(state.max_bytes, state.bytes)
        while state.records > 0:
            if heap[0].time > state.stream_time - policy.wait:
                if state.records <= policy.max_records and state.bytes <= policy.max_bytes:
                    break
                if policy.strict:
                    return emitted, row
            oldest = slots[heap[0].slot]
            emission = emissions[emitted]
            emission.row = oldest.row
            emission.first_row = oldest.first_row
            emission.trigger = row
            emission.key_code = oldest.key_code
            emission.start = oldest.start
            emission.end = oldest.end
            emission.stored_time = oldest.stored_time
            emitted += 1
            _vacate(_find(oldest.tag, oldest.key_code, oldest.start, oldest.end, slots, places), places)
            free[state.free] = heap[0].slot
            state.free += 1
            state.records -= 1
            state.bytes -= oldest.bytes
            if state.records > 0:
                last = heap[state.records]
                _sift(0, last.time, last.slot, slots, heap, state.records, data, offsets, words)
    return emitted, NO_ROW


@compiled(nothing(_Slots, Int64s, Int64sOut))
def place_slots(slots: Any, numbers: NDArray[np.int64], places: NDArray[np.int64]) -> None:
    """Fills an empty table (all `EMPTY`, at least twice the slots) with the slots ``numbers``."""
    mask = len(places) - 1
    for number in numbers:
        place = slots[number].tag & mask
        while places[place] != EMPTY:
            place = (place + 1) & mask
        places[place] = (slots[number].tag << 32) | number
