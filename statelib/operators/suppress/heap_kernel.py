"""The order in which suppress lets keys go: a binary heap by buffer time, then by the bytes of the serialised key.

Each slot knows its place in the heap, so that it can move. The first eight bytes of a key are in slot and heap as a
number, which decides nearly all comparisons.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from statelib.kernels.compiled import helper, i64

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BYTE = np.uint64(8)


@helper
def key_prefix(slot: Any, data: NDArray[np.uint8], offsets: NDArray[np.int64], words: int) -> np.uint64:
    """The first eight bytes of the slot's serialised key as a big-endian number, zeros behind a shorter one."""
    prefix = np.uint64(0)
    length = _length(slot, offsets, words)
    for position in range(8):
        byte = _byte(slot, data, offsets, words, position) if position < length else i64(0)
        prefix = (prefix << _BYTE) | np.uint64(byte)
    return prefix


@helper
def sift(
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
def _length(slot: Any, offsets: NDArray[np.int64], words: int) -> int:
    length: int = offsets[slot.key_code + 1] - offsets[slot.key_code] + 8 * words
    return length


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
