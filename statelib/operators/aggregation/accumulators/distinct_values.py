"""Which values an aggregate of a table has taken, for exact counts of distinct values: how many rows have each.

What is stored is sorted, so that equal sets have equal bytes: a list of structs, a value and how many rows have it, as
bytes that say its type (`statelib.operators.aggregation.accumulators.tagged_bytes`).

Python works on each record here; whole columns are serialised at once. Of a stream:
`statelib.operators.aggregation.accumulators.collecting`.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.lists import lengths_of
from statelib.operators.aggregation.accumulators.tagged_bytes import tagged, untagged
from statelib.serdes import serde_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.operators.aggregation.accumulators.table_numbers import Changes

_BYTES_OF_A_VALUE = 90
"""What a value takes in a dict beside its bytes, roughly."""


def elements_of(column: pa.Array) -> list[bytes | None]:
    """The bytes of values, equal for those that SQL takes to be equal: 0.0 and -0.0, and all NaN."""
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), column.type), column)
        column = pc.add(column, pa.scalar(0.0, column.type))
    serialized = serde_for(column.type).serialize(column)
    return [
        element if is_there else None
        for element, is_there in zip(serialized.to_pylist(), valid_of(column).tolist(), strict=True)
    ]


class TableDistinct:
    """How many distinct values rows have: how many rows have each.

    Args:
        of: The type of the values.
    """

    types: Sequence[pa.DataType] = (pa.int64(), pa.binary())

    def __init__(self, of: pa.DataType) -> None:
        self._of = of
        self._list = pa.list_(pa.struct([("value", of), ("rows", pa.int64())]))
        self._rows: list[Counter[bytes]] = []
        self._there: list[int] = []  # how many values some row has
        self._bytes = 0
        self._last: list[tuple[int, bytes | None, bytes | None]] = []

    @property
    def counts(self) -> NDArray[np.int64]:
        """See `TableAccumulator`."""
        return np.zeros(len(self._rows), dtype=np.int64)

    def reserve(self, slots: int) -> None:
        """See `TableAccumulator`."""
        self._rows += [Counter() for _ in range(slots - len(self._rows))]
        self._there += [0] * (slots - len(self._there))

    def keep(self, slots: NDArray[np.int64]) -> None:
        """See `TableAccumulator`."""
        self._rows = [self._rows[slot] for slot in slots.tolist()]
        self._there = [self._there[slot] for slot in slots.tolist()]
        self._bytes = sum(_size(element) for rows in self._rows for element in rows)

    def set(self, slots: NDArray[np.int64], states: Sequence[pa.Array]) -> None:
        """See `TableAccumulator`.

        Raises:
            ConfigurationError: The values are of another type.
        """
        structs, lengths = _read(states[1], self._list)
        elements, rows = (pc.struct_field(structs, [name]) for name in ("value", "rows"))
        found = iter(zip(elements_of(elements), rows.to_pylist(), strict=True))
        for slot, length in zip(slots.tolist(), lengths, strict=True):
            self._bytes -= sum(map(_size, self._rows[slot]))
            self._rows[slot] = Counter({element: n for element, n in islice(found, length) if element is not None})
            self._there[slot] = sum(n > 0 for n in self._rows[slot].values())
            self._bytes += sum(map(_size, self._rows[slot]))

    def get(self, slots: NDArray[np.int64]) -> list[pa.Array]:
        """See `TableAccumulator`."""
        return self._states([sorted(self._rows[slot].items()) for slot in slots.tolist()])

    def shown(self, slots: NDArray[np.int64]) -> list[pa.Array]:
        """See `TableAccumulator`."""
        return [pa.array([self._there[slot] for slot in slots.tolist()], pa.int64())]

    def walk(self, changes: Changes) -> list[pa.Array]:
        """See `TableAccumulator`."""
        taken = [
            element if takes_back else None
            for element, takes_back in zip(elements_of(changes.old), changes.takes_back.tolist(), strict=True)
        ]
        self._last = [*zip(changes.slots.tolist(), taken, elements_of(changes.new), strict=True)]
        counts = []
        for slot, old_element, new_element in self._last:
            rows = self._rows[slot]
            for element, by in ((old_element, -1), (new_element, 1)):
                if element is not None:
                    was_there = element in rows
                    self._there[slot] += _add(rows, element, by)
                    self._bytes += _size(element) * ((element in rows) - was_there)
            counts.append(self._there[slot])
        return [pa.array(counts, pa.int64())]

    def walked(self) -> list[pa.Array]:
        """See `TableAccumulator`. Changes are undone, the last one first, in a copy."""
        rows = {slot: self._rows[slot].copy() for slot, _, _ in self._last}
        states = []
        for slot, old_element, new_element in reversed(self._last):
            states.append(sorted(rows[slot].items()))
            for element, by in ((new_element, -1), (old_element, 1)):
                if element is not None:
                    _add(rows[slot], element, by)
        return self._states(states[::-1])

    def _states(self, states: Sequence[Sequence[tuple[bytes, int]]]) -> list[pa.Array]:
        flat = [pair for state in states for pair in state]
        values = serde_for(self._of).deserialize(pa.array([element for element, _ in flat], pa.binary()))
        rows = pa.array([n for _, n in flat], pa.int64())
        structs = pa.StructArray.from_arrays([values, rows], fields=list(self._list.value_type))
        return _stored([sum(n > 0 for _, n in state) for state in states], states, structs)

    def memory_bytes(self) -> int:
        """See `TableAccumulator`."""
        return self._bytes + _BYTES_OF_A_VALUE * len(self._rows)


def _add(rows: Counter[bytes], element: bytes, by: int) -> int:
    """Adds 1 or -1 rows with a value, which may come to less than none; gives how many more values some row has."""
    before = rows[element]
    rows[element] = before + by
    if before + by == 0:
        del rows[element]
    return (before + by > 0) - (before > 0)


def _size(element: bytes) -> int:
    return _BYTES_OF_A_VALUE + len(element)


def _stored(counts: list[int], lists: Sequence[Sequence[object]], flat: pa.Array) -> list[pa.Array]:
    """The columns of states: how many values there are, and the lists, whose items are ``flat``; none is null."""
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in lists], dtype=np.int64)])
    values = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat)
    empty = pa.array(np.diff(offsets) == 0)
    return [pa.array(counts, pa.int64()), pc.if_else(empty, pa.scalar(None, pa.binary()), tagged(values))]


def _read(data: pa.Array, of: pa.DataType) -> tuple[pa.Array, list[int]]:
    """All items of the lists that were stored, and how many are of each."""
    lists = untagged(data, of)
    return lists.flatten(), lengths_of(lists).tolist()
