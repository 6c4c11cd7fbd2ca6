"""The hot loops of time windows: which windows take a record, and which slot of the working set each window has.

A *slot* is the number of one (key, window) in the working set, counted from 0; the state of a window is an array
indexed by slot. Slots are found by open addressing with linear probing over one int64 word each::

    bits 62..32  31 bits of the hash of key code and window start (its low bits give the place)
    bits 31..0   the slot
    -1           empty
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.kernels.compiled import Int64s, Int64sOut, compiled, helper, i64, nothing, several

if TYPE_CHECKING:
    from numpy.typing import NDArray

EMPTY = -1
_SLOT_MASK = (1 << 32) - 1
_KEY_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_START_MULTIPLIER = np.uint64(0xC2B2AE3D27D4EB4F)
_FINAL = np.uint64(0xFF51AFD7ED558CCD)
_HALF = np.uint64(32)
_TAG_SHIFT = np.uint64(33)


@compiled(several(i64, 2)(*[Int64s] * 3, *[i64] * 4, *[Int64sOut] * 3))
def accept(
    key_code: NDArray[np.int64],
    timestamp: NDArray[np.int64],
    clock: NDArray[np.int64],
    size: int,
    advance: int,
    grace: int,
    origin: int,
    first_start: NDArray[np.int64],
    accepted: NDArray[np.int64],
    lateness: NDArray[np.int64],
) -> tuple[int, int]:
    """Decides for each record which of its windows still take it: those with ``end > stream time - grace``.

    Records with null keys (code < 0) have no windows (Kafka's ``KStreamWindowAggregate``).

    Args:
        key_code: int64.
        timestamp: int64, ms.
        clock: int64, the stream time at each record, ms.
        size: Size of the windows, ms.
        advance: From one window's start to the next's, ms.
        grace: Grace period, ms.
        origin: Start of the first window of all, ms; no window holds a record before it.
        first_start: Out, int64: start of the first window that takes the record; the others follow by ``advance``.
        accepted: Out, int64: how many windows take it.
        lateness: Out, int64: stream time minus timestamp, ms.

    Returns:
        The sum of ``accepted``; and how many windows do not take their records any more.
    """
    updates: int = i64(0)
    expired: int = i64(0)
    for row in range(len(timestamp)):
        accepted[row] = lateness[row] = first_start[row] = 0
        if key_code[row] < 0:
            continue
        time = timestamp[row]
        lateness[row] = clock[row] - time
        if time < origin:
            continue
        since = time - origin
        last = since - since % advance
        first, windows = last, i64(1)
        if size > advance:  # else there is no other: divisions are what takes time here
            earliest = max(0, since - size + advance)
            first = earliest - earliest % advance
            windows = (last - first) // advance + 1
        last_expired = clock[row] - origin - grace - size
        late = min(windows, (last_expired - first) // advance + 1) if first <= last_expired else i64(0)
        first_start[row] = origin + first + late * advance
        accepted[row] = windows - late
        updates += windows - late
        expired += late
    return updates, expired


@helper
def _tag(key_code: int, start: int) -> int:
    state = np.uint64(key_code) * _KEY_MULTIPLIER + np.uint64(start) * _START_MULTIPLIER
    state = (state ^ (state >> _HALF)) * _FINAL
    tag: int = i64((state ^ (state >> _HALF)) >> _TAG_SHIFT)
    return tag


@compiled(several(i64, 3)(*[Int64s] * 3, i64, i64, i64, i64, *[Int64sOut] * 5))
def find_slots(
    key_code: NDArray[np.int64],
    first_start: NDArray[np.int64],
    accepted: NDArray[np.int64],
    advance: int,
    first_row: int,
    updates: int,
    known: int,
    places: NDArray[np.int64],
    slot_key: NDArray[np.int64],
    slot_start: NDArray[np.int64],
    rows: NDArray[np.int64],
    slots: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Finds or makes the slot of each (record, window), windows by ascending start, until done or out of room.

    Args:
        key_code: int64, by record.
        first_start: int64, by record, as `accept` gives it.
        accepted: int64, by record, as `accept` gives it.
        advance: From one window's start to the next's, ms.
        first_row: The record to begin with.
        updates: How many elements of ``rows`` and ``slots`` are written.
        known: How many slots are taken.
        places: int64, the table; a power of two of elements.
        slot_key: int64, the key code of each slot; half as many elements as ``places``.
        slot_start: int64, the window's start of each slot; as many.
        rows: Out, int64, by update: the record.
        slots: Out, int64, by update: the slot.

    Returns:
        The first record that is not done, and the new values of ``updates`` and ``known``.
    """
    mask = len(places) - 1
    for row in range(first_row, len(key_code)):
        if known + accepted[row] > len(slot_key):
            return row, updates, known
        start = first_start[row]
        for _ in range(accepted[row]):
            tag = _tag(key_code[row], start)
            place = tag & mask
            slot = known
            while places[place] != EMPTY:
                word = places[place]
                if word >> 32 == tag:
                    candidate = word & _SLOT_MASK
                    if slot_key[candidate] == key_code[row] and slot_start[candidate] == start:
                        slot = candidate
                        break
                place = (place + 1) & mask
            if slot == known:
                places[place] = (tag << 32) | slot
                slot_key[slot] = key_code[row]
                slot_start[slot] = start
                known += 1
            rows[updates] = row
            slots[updates] = slot
            updates += 1
            start += advance
    return len(key_code), updates, known


@compiled(nothing(Int64s, Int64s, i64, Int64sOut))
def place_slots(
    slot_key: NDArray[np.int64], slot_start: NDArray[np.int64], known: int, places: NDArray[np.int64]
) -> None:
    """Fills an empty table (all `EMPTY`, at least twice ``known`` elements) with the slots 0 to ``known``."""
    mask = len(places) - 1
    for slot in range(known):
        tag = _tag(slot_key[slot], slot_start[slot])
        place = tag & mask
        while places[place] != EMPTY:
            place = (place + 1) & mask
        places[place] = (tag << 32) | slot


_FIRST_SLOTS = 1 << 10


class WindowSlots:
    """The slots of a working set: (key code, window start) -> 0, 1, 2, ... in order of first appearance."""

    def __init__(self) -> None:
        self._known = 0
        self._key = self._start = self._places = np.empty(0, dtype=np.int64)
        self._resize(self._key, self._start)

    def __len__(self) -> int:
        return self._known

    @property
    def key_code(self) -> NDArray[np.int64]:
        """int64, the key code of each slot."""
        return self._key[: self._known]

    @property
    def start(self) -> NDArray[np.int64]:
        """int64, the window's start of each slot, ms."""
        return self._start[: self._known]

    def find(
        self,
        key_code: NDArray[np.int64],
        first_start: NDArray[np.int64],
        accepted: NDArray[np.int64],
        advance_ms: int,
        updates: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The (record, window) pairs that `accept` found, by record, then by start; new windows get new slots.

        Args:
            key_code: int64, by record.
            first_start: int64, by record.
            accepted: int64, by record.
            advance_ms: From one window's start to the next's.
            updates: The sum of ``accepted``.

        Returns:
            int64 arrays of ``updates`` elements: the record and the slot of each pair.
        """
        rows = np.empty(updates, dtype=np.int64)
        slots = np.empty(updates, dtype=np.int64)
        row = done = 0
        while True:
            row, done, self._known = find_slots(
                key_code, first_start, accepted, advance_ms, row, done, self._known,
                self._places, self._key, self._start, rows, slots,
            )  # fmt: skip
            if row == len(key_code):
                return rows, slots
            self._resize(self.key_code, self.start, self._known + int(accepted[row]))

    def keep(self, slots: NDArray[np.int64]) -> None:
        """Keeps only ``slots`` (int64, ascending) and numbers them anew, from 0."""
        self._resize(self.key_code[slots], self.start[slots])

    def _resize(self, key_code: NDArray[np.int64], start: NDArray[np.int64], at_least: int = _FIRST_SLOTS) -> None:
        """Makes tables for these windows with room for ``at_least`` slots, a power of two."""
        self._known = len(key_code)
        capacity = 1 << (max(at_least, self._known + 1) - 1).bit_length()
        self._key = np.empty(capacity, dtype=np.int64)
        self._start = np.empty(capacity, dtype=np.int64)
        self._key[: self._known] = key_code
        self._start[: self._known] = start
        self._places = np.full(2 * capacity, EMPTY, dtype=np.int64)
        place_slots(self._key, self._start, self._known, self._places)

    def memory_bytes(self) -> int:
        """What the tables hold in memory."""
        return self._places.nbytes + self._key.nbytes + self._start.nbytes
