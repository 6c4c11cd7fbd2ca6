"""What aggregates collect: lists of all values, sets of those that differ, and how many of these there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import from_zero
from statelib.columns.growing import grown, shrunk
from statelib.columns.lists import lengths_of
from statelib.operators.aggregation.accumulators.collected_items import Items
from statelib.operators.aggregation.accumulators.collections_kernel import (
    EMPTY,
    fill_places,
    gather_items,
    running_collections,
)
from statelib.operators.aggregation.accumulators.inputs import NO_SLOTS, Updates
from statelib.operators.aggregation.accumulators.tagged_bytes import tagged, untagged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.operators.aggregation.accumulators.inputs import Inputs

MOST = 10_000
"""So many values can be collected."""

_FIRST_ENTRIES = 1 << 8
_NO_LIMIT = 1 << 62


class Collections:
    """The collections of all slots; a new one is empty.

    Args:
        of: The type of the values.
        once: Whether equal values are kept once.
        limit: How many values a collection has at most.

    Attributes:
        size: int64, by slot: how many values it has.
    """

    def __init__(self, of: pa.DataType, *, once: bool, limit: int = _NO_LIMIT) -> None:
        self._of = of
        self._once, self._limit = once, limit
        self._items = Items(of, equal=once)
        self._head, self._tail, self.size = (np.empty(0, dtype=np.int64) for _ in range(3))
        self._left_out = np.zeros(1, dtype=np.int64)
        self._known = np.zeros(1, dtype=np.int64)
        self._clear()

    def _clear(self) -> None:
        self._known[0] = 0
        self._places, *entries = (np.empty(0, dtype=np.int64) for _ in range(4))
        self._slot, self._item, self._next = entries
        self._items.clear()

    def reserve(self, slots: int) -> None:
        """Makes room for ``slots`` slots."""
        self._head, self._tail, self.size = (grown(of, slots) for of in (self._head, self._tail, self.size))

    def keep(self, slots: NDArray[np.int64]) -> None:
        """Keeps only ``slots``, numbered anew in their order."""
        sizes, items = self.size[slots], self.first(slots, self.size[slots])
        self._head, self._tail, self.size = (shrunk(of, slots) for of in (self._head, self._tail, self.size))
        if len(slots) == 0:
            self._clear()
            return
        self._fill(np.arange(len(slots)), sizes, self._items.keep(items))

    def set(self, slots: NDArray[np.int64], sizes: NDArray[np.int64], values: pa.Array) -> None:
        """Sets ``slots``: so many values each, one slot's behind another's, none of them null."""
        if self.size[slots].any():
            self.size[slots] = 0
            everywhere = np.arange(len(self.size))
            self._fill(everywhere, self.size, self.first(everywhere, self.size))
        items, _ = self._items.encode(values)
        self._walk(Updates(np.arange(len(items)), np.repeat(slots, sizes)), items, NO_SLOTS.view(np.bool_), NO_SLOTS)

    def add(self, updates: Updates, column: pa.Array, out: NDArray[np.int64] = NO_SLOTS) -> int:
        """Makes updates; ``out``: how many values there are after each. Gives how many did not fit."""
        self._left_out[0] = 0
        self._walk(updates, *self._items.encode(column), out)
        there = self._item[: self._known[0]]
        if (kept := self._items.keep(there)) is not there:  # most values were left out
            there[:] = kept
            self._place()
        return int(self._left_out[0])

    def first(self, slots: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first items of slots, so many of each, one slot's behind another's."""
        items = np.empty(int(sizes.sum()), dtype=np.int64)
        gather_items(np.ascontiguousarray(slots), sizes, self._head, self._next, self._item, items)
        return items

    def values(self, items: NDArray[np.int64]) -> pa.Array:
        """What items stand for."""
        return self._items.decode(items)

    def ranks(self, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """See `Items`."""
        return self._items.ranks(items)

    def _fill(self, slots: NDArray[np.int64], sizes: NDArray[np.int64], items: NDArray[np.int64]) -> None:
        """Makes collections anew."""
        ends = np.cumsum(sizes)
        self._known[0] = len(items)
        self._slot[: len(items)] = np.repeat(slots, sizes)
        self._item[: len(items)] = items
        self._next[: len(items)] = np.arange(1, len(items) + 1)
        self._next[ends[sizes > 0] - 1] = EMPTY
        self._head[slots], self._tail[slots] = ends - sizes, ends - 1
        self._place()

    def _walk(
        self, updates: Updates, items: NDArray[np.int64], valid: NDArray[np.bool_], out: NDArray[np.int64]
    ) -> None:
        done = 0
        while done < len(updates.rows):
            other = int(updates.absorbed[done]) if len(updates.absorbed) else EMPTY
            self._grow(1 + (int(self.size[other]) if other != EMPTY else 0))
            entries = (self._places, self._slot, self._item, self._next)
            slots = (self._head, self._tail, self.size, self._known, self._left_out)
            done = running_collections(
                done, *updates.walked, items, valid, self._once, self._limit, *entries, *slots, out
            )

    def _grow(self, more: int) -> None:
        """Makes room for so many more entries."""
        needed = int(self._known[0]) + more
        if needed > len(self._item):
            size = max(1 << (needed - 1).bit_length(), 2 * len(self._item), _FIRST_ENTRIES)
            self._slot, self._item, self._next = (grown(of, size) for of in (self._slot, self._item, self._next))
            self._place()

    def _place(self) -> None:
        """Makes the table anew."""
        if self._once:
            self._places = np.full(2 * len(self._item), EMPTY, dtype=np.int64)
            fill_places(int(self._known[0]), self._slot, self._item, self._places)

    def memory_bytes(self) -> int:
        """Size of it all."""
        arrays = (self._head, self._tail, self.size, self._places, self._slot, self._item, self._next)
        return sum(array.nbytes for array in arrays) + self._items.memory_bytes()


class CollectAccumulator:
    """A list of the values, or of those that differ, in the order in which they came; not more than ``limit``.

    Args:
        of: The type of the values.
        once: Whether equal values are collected once.
        limit: How many values are collected.

    Attributes:
        left_out: How many values have not found room so far.
    """

    def __init__(self, of: pa.DataType, *, once: bool, limit: int) -> None:
        self.types: Sequence[pa.DataType] = (pa.list_(of),)
        self._of = of
        self._made = {"once": once, "limit": limit}
        self._lists = Collections(of, once=once, limit=limit)
        self._walked: pa.Array | None = None
        self.left_out = 0

    @property
    def initial(self) -> Sequence[object]:
        """See `Accumulator`."""
        return [None]

    def reserve(self, slots: int) -> None:
        """See `Accumulator`."""
        self._lists.reserve(slots)

    def keep(self, slots: NDArray[np.int64]) -> None:
        """See `Accumulator`."""
        self._lists.keep(slots)

    def set(self, slots: NDArray[np.int64], states: Sequence[pa.Array]) -> None:
        """See `Accumulator`."""
        _set(self._lists, slots, states[0])

    def get(self, slots: NDArray[np.int64]) -> list[pa.Array]:
        """See `Accumulator`."""
        return [self._columns(slots, self._lists.size[slots])]

    def shown(self, slots: NDArray[np.int64]) -> list[pa.Array]:
        """See `Accumulator`."""
        return self.get(slots)

    def walk(self, updates: Updates, inputs: Inputs) -> list[pa.Array]:
        """See `Accumulator`."""
        sizes = np.empty(len(updates.rows), dtype=np.int64)
        self.left_out += self._lists.add(updates, inputs.column.cast(self._of), sizes)
        self._walked = self._columns(updates.slots, sizes)
        return [self._walked]

    def walked(self) -> list[pa.Array]:
        """See `Accumulator`."""
        return [self._walked]

    def add(self, updates: Updates, inputs: Inputs) -> None:
        """See `Accumulator`."""
        self.left_out += self._lists.add(updates, inputs.column.cast(self._of))

    def _columns(self, slots: NDArray[np.int64], sizes: NDArray[np.int64]) -> pa.Array:
        values = self._lists.values(self._lists.first(slots, sizes))
        offsets = pa.array(from_zero(sizes), pa.int32())
        return pa.ListArray.from_arrays(offsets, values, type=self.types[0], mask=pa.array(sizes == 0))

    def memory_bytes(self) -> int:
        """See `Accumulator`."""
        return self._lists.memory_bytes()


class DistinctAccumulator:
    """How many distinct values there are, and which.

    What is stored is sorted by the values' bytes, so that equal sets have equal bytes: a list, as bytes that say its
    type (`statelib.operators.aggregation.accumulators.tagged_bytes`).

    Args:
        of: The type of the values.
    """

    types: Sequence[pa.DataType] = (pa.int64(), pa.binary())

    def __init__(self, of: pa.DataType) -> None:
        self._of = of
        self._sets = Collections(of, once=True)
        self._walked: tuple[NDArray[np.int64], NDArray[np.int64]] = (NO_SLOTS, NO_SLOTS)

    @property
    def initial(self) -> Sequence[object]:
        """See `Accumulator`."""
        return [0, None]

    def reserve(self, slots: int) -> None:
        """See `Accumulator`."""
        self._sets.reserve(slots)

    def keep(self, slots: NDArray[np.int64]) -> None:
        """See `Accumulator`."""
        self._sets.keep(slots)

    def set(self, slots: NDArray[np.int64], states: Sequence[pa.Array]) -> None:
        """See `Accumulator`.

        Raises:
            ConfigurationError: The values are of another type.
        """
        _set(self._sets, slots, untagged(states[1], pa.list_(self._of)))

    def get(self, slots: NDArray[np.int64]) -> list[pa.Array]:
        """See `Accumulator`."""
        return self._states(slots, self._sets.size[slots])

    def shown(self, slots: NDArray[np.int64]) -> list[pa.Array]:
        """See `Accumulator`."""
        return [pa.array(self._sets.size[slots])]

    def walk(self, updates: Updates, inputs: Inputs) -> list[pa.Array]:
        """See `Accumulator`."""
        sizes = np.empty(len(updates.rows), dtype=np.int64)
        self._sets.add(updates, inputs.column.cast(self._of), sizes)
        self._walked = (updates.slots, sizes)
        return [pa.array(sizes)]

    def walked(self) -> list[pa.Array]:
        """See `Accumulator`."""
        return self._states(*self._walked)

    def add(self, updates: Updates, inputs: Inputs) -> None:
        """See `Accumulator`."""
        self._sets.add(updates, inputs.column.cast(self._of))

    def _states(self, slots: NDArray[np.int64], sizes: NDArray[np.int64]) -> list[pa.Array]:
        items = self._sets.first(slots, sizes)
        order = np.lexsort((self._sets.ranks(items), np.repeat(np.arange(len(sizes)), sizes)))
        lists = pa.ListArray.from_arrays(pa.array(from_zero(sizes), pa.int32()), self._sets.values(items[order]))
        return [pa.array(sizes), pc.if_else(pa.array(sizes > 0), tagged(lists), pa.scalar(None, pa.binary()))]

    def memory_bytes(self) -> int:
        """See `Accumulator`."""
        return self._sets.memory_bytes()


def _set(collections: Collections, slots: NDArray[np.int64], lists: pa.Array) -> None:
    collections.set(slots, lengths_of(lists), lists.flatten())
