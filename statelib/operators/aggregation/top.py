"""The values of the records with the largest or smallest keys, some of them for each group.

A group's records are a short list, the best first, and a new list with every change, so that the state after each
update is at hand. Python works on each record here; whole columns are read and written at once.
"""

from __future__ import annotations

import math
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import valid_of
from statelib.operators.aggregation.inputs import has_numbers, numbers_of
from statelib.operators.aggregation.kernel import NO_ROW, NO_SLOT
from statelib.operators.aggregation.tagged_bytes import tagged, untagged
from statelib.serdes import serde_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.operators.aggregation.inputs import Inputs, Updates

Entry: TypeAlias = "tuple[Any, bytes, bytes | None]"
"""A record: its key in a form that Python orders as SQL does, and key and value as serialised bytes; None: null."""

MOST = 1_000
"""So many records of a group can be kept."""

_BYTES_OF_AN_ENTRY = 250
"""What one takes beside the bytes of its value, roughly."""


class TopAccumulator:
    """The values of the records with the largest keys, the largest first; of equal keys, the first first.

    Args:
        of: The type of the values.
        by: The type of the keys.
        limit: Of how many records.
        largest: Whether those with the largest keys are kept, else those with the smallest.
    """

    def __init__(self, of: pa.DataType, by: pa.DataType, limit: int, *, largest: bool) -> None:
        self.types: Sequence[pa.DataType] = (pa.list_(of), pa.binary())
        self._of, self._by = of, by
        self._limit = limit
        self._largest = largest
        self._entries: list[list[Entry]] = []
        self._bytes = 0
        self._walked: list[list[Entry]] = []

    @property
    def initial(self) -> Sequence[object]:
        """See `Accumulator`."""
        return [None, None]

    def reserve(self, slots: int) -> None:
        """See `Accumulator`."""
        self._entries += [[] for _ in range(slots - len(self._entries))]

    def keep(self, slots: NDArray[np.int64]) -> None:
        """See `Accumulator`."""
        self._entries = [self._entries[slot] for slot in slots.tolist()]
        self._bytes = sum(_size(entry) for entries in self._entries for entry in entries)

    def set(self, slots: NDArray[np.int64], states: Sequence[pa.Array]) -> None:
        """See `Accumulator`.

        Raises:
            ConfigurationError: The keys are of another type.
        """
        keys = untagged(states[1], pa.list_(self._by))
        lengths = pc.fill_null(pc.list_value_length(keys), 0).to_pylist()
        found = iter(self._entries_of(states[0].flatten(), keys.flatten()))
        for slot, length in zip(slots.tolist(), lengths, strict=True):
            self._put(slot, [entry for entry in islice(found, length) if entry is not None])

    def get(self, slots: NDArray[np.int64]) -> list[pa.Array]:
        """See `Accumulator`."""
        entries = [self._entries[slot] for slot in slots.tolist()]
        return [self._values(entries), self._keys(entries)]

    def shown(self, slots: NDArray[np.int64]) -> list[pa.Array]:
        """See `Accumulator`."""
        return [self._values([self._entries[slot] for slot in slots.tolist()])]

    def walk(self, updates: Updates, inputs: Inputs) -> list[pa.Array]:
        """See `Accumulator`."""
        self._walked = self._run(updates, inputs)
        return [self._values(self._walked)]

    def walked(self) -> list[pa.Array]:
        """See `Accumulator`."""
        return [self._values(self._walked), self._keys(self._walked)]

    def add(self, updates: Updates, inputs: Inputs) -> None:
        """See `Accumulator`."""
        self._run(updates, inputs)

    def _run(self, updates: Updates, inputs: Inputs) -> list[list[Entry]]:
        """Gives the records after each update."""
        by = pa.nulls(len(inputs.column), self._by) if inputs.by is None else inputs.by.cast(self._by)
        given = self._entries_of(inputs.column.cast(self._of), by)
        rows, slots, absorbed = (some.tolist() for some in updates.walked)
        others = absorbed or [NO_SLOT] * len(rows)
        states = []
        for row, slot, other in zip(rows, slots, others, strict=True):
            entries = self._entries[slot]
            new = list(self._entries[other]) if other != NO_SLOT else []
            if row != NO_ROW:
                new.append(given[row])
            for entry in new:
                entries = self._with(entries, entry)
            if entries is not self._entries[slot]:
                self._put(slot, entries)
            states.append(entries)
        return states

    def _with(self, entries: list[Entry], entry: Entry | None) -> list[Entry]:
        """The records with one more, or the same list where there is none, or it is not among the first."""
        if entry is None:
            return entries
        place = len(entries)
        while place and self._precedes(entry, entries[place - 1]):
            place -= 1
        if place >= self._limit:
            return entries
        return [*entries[:place], entry, *entries[place : self._limit - 1]]

    def _precedes(self, one: Entry, other: Entry) -> bool:
        return bool(one[0] > other[0] if self._largest else one[0] < other[0])

    def _put(self, slot: int, entries: list[Entry]) -> None:
        self._bytes += sum(map(_size, entries)) - sum(map(_size, self._entries[slot]))
        self._entries[slot] = entries

    def _entries_of(self, values: pa.Array, keys: pa.Array) -> list[Entry | None]:
        """Of records; None for those without a key."""
        there = valid_of(values).tolist()
        serialized = serde_for(values.type).serialize(values).to_pylist()
        both = zip(order_of(keys), serde_for(keys.type).serialize(keys).to_pylist(), serialized, there, strict=True)
        return [None if key is None else (key, raw, value if is_there else None) for key, raw, value, is_there in both]

    def _values(self, states: Sequence[Sequence[Entry]]) -> pa.Array:
        flat = pa.array([value for entries in states for _, _, value in entries], pa.binary())
        return _lists(states, serde_for(self._of).deserialize(flat), self.types[0])

    def _keys(self, states: Sequence[Sequence[Entry]]) -> pa.Array:
        flat = pa.array([key for entries in states for _, key, _ in entries], pa.binary())
        lists = _lists(states, serde_for(self._by).deserialize(flat), pa.list_(self._by))
        return tagged(lists)

    def memory_bytes(self) -> int:
        """See `Accumulator`."""
        return self._bytes + _BYTES_OF_AN_ENTRY * len(self._entries)


def order_of(keys: pa.Array) -> list[Any]:
    """What Python orders as SQL does the keys, a NaN above all numbers; None: null."""
    if not has_numbers(keys.type):
        return list(keys.to_pylist())
    numbers, valid = numbers_of(keys)
    order: list[Any] = numbers.tolist()
    if pa.types.is_floating(keys.type):
        order = [(1, 0.0) if math.isnan(number) else (0, number) for number in order]
    return (
        [number if is_there else None for number, is_there in zip(order, valid, strict=True)] if len(valid) else order
    )


def _lists(states: Sequence[Sequence[Entry]], flat: pa.Array, of: pa.DataType) -> pa.Array:
    """A list of each state's items; null of none."""
    lengths = np.array([len(entries) for entries in states], dtype=np.int64)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    return pa.ListArray.from_arrays(offsets, flat, type=of, mask=pa.array(lengths == 0))


def _size(entry: Entry) -> int:
    _, key, value = entry
    return _BYTES_OF_AN_ENTRY + 2 * len(key) + len(value or b"")
