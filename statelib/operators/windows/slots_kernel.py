"""Which slot of the working set each (key, window) has.

A *slot* is the number of one (key, window), counted from 0; the state of a window is an array indexed by slot. Slots
are found in one of two ways:

* in a *grid*: one int32 for each key and window in a range of time, the slot or -1. A record finds its slot by one
  look. Most replays have few keys for a window, or few windows for a key, and a grid for them;
* by open addressing with linear probing over one int64 word each, where a grid would be mostly empty::

      bits 62..32  31 bits of the hash of key code and window (its low bits give the place)
      bits 31..0   the slot
      -1           empty

Windows go by their number here: each begins one advance after the one before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from statelib.kernels.compiled import Int32sOut, Int64s, Int64sOut, compiled, helper, i64, nothing, several, u64

if TYPE_CHECKING:
    from numpy.typing import NDArray

EMPTY = -1
_SLOT_MASK = (1 << 32) - 1
_KEY_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_WINDOW_MULTIPLIER = np.uint64(0xC2B2AE3D27D4EB4F)
_FINAL = np.uint64(0xFF51AFD7ED558CCD)
_HALF = np.uint64(32)
_TAG_SHIFT = np.uint64(33)
_FIRST_SLOTS = 1 << 10
_CELLS_PER_SLOT = 4
"""A grid may have so many cells for a known window or an update, which is half of what a hash table would take."""
_FIRST_GRID_WINDOW = -(1 << 61)
"""Windows further apart than that are not told apart by differences of 64 bits."""


@compiled(several(i64, 3)(*[Int64s] * 3))
def _extent(
    key_code: NDArray[np.int64], first_window: NDArray[np.int64], accepted: NDArray[np.int64]
) -> tuple[int, int, int]:
    """One more than the largest key code, and the first and the last of all windows that take a record."""
    keys: int = i64(0)
    first: int = i64(np.iinfo(np.int64).max)
    last: int = i64(np.iinfo(np.int64).min)
    for row in range(len(key_code)):
        if accepted[row]:
            keys = max(keys, key_code[row] + 1)
            first = min(first, first_window[row])
            last = max(last, first_window[row] + accepted[row] - 1)
    return keys, first, last


@compiled(several(i64, 3)(*[Int64s] * 3, *[i64] * 5, Int32sOut, *[Int64sOut] * 5))
def _find_in_grid(
    key_code: NDArray[np.int64],
    first_window: NDArray[np.int64],
    accepted: NDArray[np.int64],
    first_row: int,
    updates: int,
    known: int,
    grid_first: int,
    width: int,
    grid: NDArray[np.int32],
    slot_key: NDArray[np.int64],
    slot_window: NDArray[np.int64],
    slot_first: NDArray[np.int64],
    rows: NDArray[np.int64],
    slots: NDArray[np.int64],
) -> tuple[int, int, int]:
    """As `_find_by_hash`; ``grid``: int32, by key ``width`` windows from ``grid_first`` on."""
    for row in range(first_row, len(key_code)):
        key, window, count = key_code[row], first_window[row], accepted[row]
        if count == 0:
            continue
        if known + count > len(slot_key):
            return row, updates, known
        first_cell = key * width + window - grid_first
        for number in range(count):
            # Nobody can foretell which windows are new: without a branch it takes a sixth less time.
            slot, update, cell = u64(known), u64(updates), u64(first_cell + number)
            slot_key[slot] = key
            slot_window[slot] = window + number
            slot_first[slot] = updates
            found = i64(grid[cell])
            is_new = i64(found == EMPTY)
            found = known if is_new else found
            grid[cell] = found
            known += is_new
            rows[update] = row
            slots[update] = found
            updates += 1
    return len(key_code), updates, known


@compiled(nothing(Int64s, Int64s, i64, i64, Int32sOut))
def _place_in_grid(
    slot_key: NDArray[np.int64], slot_window: NDArray[np.int64], grid_first: int, width: int, grid: NDArray[np.int32]
) -> None:
    """Puts those slots into an empty grid that lie in it."""
    for slot in range(len(slot_key)):
        window = slot_window[slot] - grid_first
        cell = slot_key[slot] * width + window
        if 0 <= window < width and cell < len(grid):
            grid[cell] = slot


@helper
def _tag(key_code: int, window: int) -> int:
    state = np.uint64(key_code) * _KEY_MULTIPLIER + np.uint64(window) * _WINDOW_MULTIPLIER
    state = (state ^ (state >> _HALF)) * _FINAL
    tag: int = i64((state ^ (state >> _HALF)) >> _TAG_SHIFT)
    return tag


@compiled(several(i64, 3)(*[Int64s] * 3, i64, i64, i64, *[Int64sOut] * 6))
def _find_by_hash(
    key_code: NDArray[np.int64],
    first_window: NDArray[np.int64],
    accepted: NDArray[np.int64],
    first_row: int,
    updates: int,
    known: int,
    places: NDArray[np.int64],
    slot_key: NDArray[np.int64],
    slot_window: NDArray[np.int64],
    slot_first: NDArray[np.int64],
    rows: NDArray[np.int64],
    slots: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Finds or makes the slot of each (record, window), ascending windows of a record, until done or out of room.

    Args:
        key_code: int64, by record.
        first_window: int64, by record, as `accept` gives it.
        accepted: int64, by record, as `accept` gives it.
        first_row: The record to begin with.
        updates: How many elements of ``rows`` and ``slots`` are written.
        known: How many slots are taken.
        places: int64, the table; a power of two of elements, twice as many as there is room for slots.
        slot_key: int64, the key code of each slot.
        slot_window: int64, the window of each slot; as many.
        slot_first: Out, int64: the update that each new slot was made for; as many.
        rows: Out, int64, by update: the record.
        slots: Out, int64, by update: the slot.

    Returns:
        The first record that is not done, and the new values of ``updates`` and ``known``.
    """
    mask = len(places) - 1
    for row in range(first_row, len(key_code)):
        if known + accepted[row] > len(slot_key):
            return row, updates, known
        window = first_window[row]
        for _ in range(accepted[row]):
            tag = _tag(key_code[row], window)
            place = tag & mask
            slot = known
            while places[place] != EMPTY:
                word = places[place]
                if word >> 32 == tag:
                    candidate = word & _SLOT_MASK
                    if slot_key[candidate] == key_code[row] and slot_window[candidate] == window:
                        slot = candidate
                        break
                place = (place + 1) & mask
            if slot == known:
                places[place] = (tag << 32) | slot
                slot_key[slot] = key_code[row]
                slot_window[slot] = window
                slot_first[slot] = updates
                known += 1
            rows[updates] = row
            slots[updates] = slot
            updates += 1
            window += 1
    return len(key_code), updates, known


@compiled(nothing(Int64s, Int64s, Int64sOut))
def _place_by_hash(slot_key: NDArray[np.int64], slot_window: NDArray[np.int64], places: NDArray[np.int64]) -> None:
    """Fills an empty table (all `EMPTY`, at least twice as many elements as slots)."""
    mask = len(places) - 1
    for slot in range(len(slot_key)):
        tag = _tag(slot_key[slot], slot_window[slot])
        place = tag & mask
        while places[place] != EMPTY:
            place = (place + 1) & mask
        places[place] = (tag << 32) | slot


def _with_room(values: NDArray[np.int64], at_least: int) -> NDArray[np.int64]:
    """``values`` and what follows them, of any content: a power of two of elements."""
    room = np.empty(1 << (at_least - 1).bit_length(), dtype=np.int64)
    room[: len(values)] = values
    return room


class WindowSlots:
    """The slots of a working set: (key code, window) -> 0, 1, 2, ... in order of first appearance."""

    def __init__(self) -> None:
        self._known = 0
        self._key, self._window, self._first = (np.empty(_FIRST_SLOTS, dtype=np.int64) for _ in range(3))
        self._places = np.empty(0, dtype=np.int64)  # only where there is no grid
        self._cells = np.empty(0, dtype=np.int32)  # room for the grid, which is laid anew every few batches
        self._lay(0, 0, 0)

    def __len__(self) -> int:
        return self._known

    @property
    def key_code(self) -> NDArray[np.int64]:
        """int64, the key code of each slot."""
        return self._key[: self._known]

    @property
    def window(self) -> NDArray[np.int64]:
        """int64, the number of each slot's window."""
        return self._window[: self._known]

    def find(
        self,
        key_code: NDArray[np.int64],
        first_window: NDArray[np.int64],
        accepted: NDArray[np.int64],
        updates: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The (record, window) pairs that `accept` found, by record, then by window; new windows get new slots.

        Args:
            key_code: int64, by record.
            first_window: int64, by record.
            accepted: int64, by record.
            updates: The sum of ``accepted``.

        Returns:
            int64 arrays of ``updates`` elements: the record and the slot of each pair.
        """
        rows, slots = np.empty(updates, dtype=np.int64), np.empty(updates, dtype=np.int64)
        if updates and not len(self._places):
            self._cover(*_extent(key_code, first_window, accepted), updates)
        row = done = 0
        while updates > done:
            so_far, found = (row, done, self._known), (self._key, self._window, self._first, rows, slots)
            if len(self._places):
                row, done, self._known = _find_by_hash(key_code, first_window, accepted, *so_far, self._places, *found)
            else:
                row, done, self._known = _find_in_grid(
                    key_code, first_window, accepted, *so_far, self._grid_first, self._width, self._grid, *found
                )
            if row < len(key_code):
                self._make_room(self._known + int(accepted[row]))
        return rows, slots

    def add(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64: new slots for the windows that ``slots`` (int64) have; `find` goes on to give those that they had."""
        first, self._known = self._known, self._known + len(slots)
        if self._known > len(self._key):
            of_slots = (self._key[:first], self._window[:first], self._first[:first])
            self._key, self._window, self._first = (_with_room(values, self._known) for values in of_slots)
            if len(self._places):
                self._places = np.full(2 * len(self._key), EMPTY, dtype=np.int64)
                _place_by_hash(self._key[:first], self._window[:first], self._places)
        for values in (self._key, self._window, self._first):
            values[first : self._known] = values[slots]
        return np.arange(first, self._known)

    def first_updates(self, first: int) -> NDArray[np.int64]:
        """int64: for each slot from ``first`` on, all made by the last `find`, which of the updates it was made for."""
        return self._first[first : self._known]

    def keep(self, slots: NDArray[np.int64]) -> None:
        """Keeps only ``slots`` (int64, ascending) and numbers them anew, from 0; the others leave room for the next."""
        for values in (self._key, self._window):
            values[: len(slots)] = values[slots]
        self._known = len(slots)
        self._places = np.empty(0, dtype=np.int64)
        self._lay(0, 0, 0)

    def _make_room(self, at_least: int) -> None:
        """Makes room for ``at_least`` slots, a power of two."""
        of_slots = (self.key_code, self.window, self._first[: self._known])
        self._key, self._window, self._first = (_with_room(values, at_least) for values in of_slots)
        if len(self._places):
            self._hash()

    def _cover(self, keys: int, first: int, last: int, updates: int) -> None:
        """Makes sure that these windows are in the grid, or goes over to a hash table if a grid takes too much."""
        windows, there = last - first + 1, first - self._grid_first
        if 0 <= there <= self._width - windows and keys * self._width <= len(self._grid):
            return
        # Room for the keys and the time to come, and for records that are late, or each batch would need a new grid.
        width, grid_first = 3 * windows, first - windows
        cells = (keys + keys // 4) * width
        if cells > _CELLS_PER_SLOT * max(self._known + updates, _FIRST_SLOTS) or grid_first < _FIRST_GRID_WINDOW:
            self._hash()
        else:
            self._lay(cells, grid_first, width)
            _place_in_grid(self.key_code, self.window, grid_first, width, self._grid)

    def _lay(self, cells: int, grid_first: int, width: int) -> None:
        """An empty grid."""
        if cells > len(self._cells):
            self._cells = np.empty(cells, dtype=np.int32)
        self._grid, self._grid_first, self._width = self._cells[:cells], grid_first, width
        self._grid.fill(EMPTY)

    def _hash(self) -> None:
        """Goes over to a hash table, or makes a new one."""
        self._cells = np.empty(0, dtype=np.int32)
        self._lay(0, 0, 0)
        self._places = np.full(2 * len(self._key), EMPTY, dtype=np.int64)
        _place_by_hash(self.key_code, self.window, self._places)

    def memory_bytes(self) -> int:
        """What the tables hold in memory."""
        return self._places.nbytes + self._cells.nbytes + 3 * self._key.nbytes
