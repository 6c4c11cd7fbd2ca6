"""Values as int64 items, which kernels compare: numbers by their bits, all else by a code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import byte_buffers, valid_of
from statelib.columns.bytes_order import sort_order
from statelib.operators.aggregation.accumulators.inputs import column_of_numbers, has_numbers, numbers_of
from statelib.records.key_table import KeyTable
from statelib.serdes import serde_for

if TYPE_CHECKING:
    from numpy.typing import NDArray

_KEPT_CODES = 1 << 12


class Items:
    """Values of one type <-> items.

    Args:
        of: The type.
        equal: Whether what SQL takes to be equal is one item: 0.0 and -0.0, and all NaN.
    """

    def __init__(self, of: pa.DataType, *, equal: bool) -> None:
        self._of = of
        self._equal = equal
        self._are_numbers = has_numbers(of) and not pa.types.is_uint64(of)
        self._codes = KeyTable()

    def encode(self, column: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The items of values, and which are not null (empty: all)."""
        if self._are_numbers:
            numbers, valid = numbers_of(column)
            if numbers.dtype == np.float64:
                if self._equal:
                    numbers = numbers + 0.0
                    numbers[np.isnan(numbers)] = np.nan
                numbers = numbers.view(np.int64)
            return numbers, valid
        valid = valid_of(column) if column.null_count else np.empty(0, dtype=np.bool_)
        return self._codes.encode(serde_for(self._of).serialize(column)), valid

    def decode(self, items: NDArray[np.int64]) -> pa.Array:
        """The values of items."""
        if not self._are_numbers:
            return serde_for(self._of).deserialize(self._codes.take(items))
        numbers = items.view(np.float64) if pa.types.is_floating(self._of) else items
        return column_of_numbers(numbers, np.ones(len(items), dtype=np.bool_), self._of)

    def ranks(self, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where each would be if all were sorted by their serialised bytes; equal ones have one rank."""
        different, place = np.unique(items, return_inverse=True)
        data, offsets, _ = byte_buffers(serde_for(self._of).serialize(self.decode(different)))
        spans = offsets.astype(np.int64)
        ranks = np.empty(len(different), dtype=np.int64)
        ranks[sort_order(data, spans[:-1], np.diff(spans))] = np.arange(len(different))
        return ranks[place]

    def keep(self, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """Forgets all others, if they are most; gives the new items, or, if nothing is forgotten, the same array."""
        if self._are_numbers or len(self._codes) < _KEPT_CODES + 2 * len(items):
            return items
        different, place = np.unique(items, return_inverse=True)
        self._codes.keep(different)
        return place.astype(np.int64)

    def clear(self) -> None:
        """Forgets all."""
        self._codes.clear()

    def memory_bytes(self) -> int:
        """What they take."""
        return 0 if len(self._codes) == 0 else self._codes.memory_bytes()
