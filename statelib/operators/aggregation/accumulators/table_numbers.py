"""Accumulators that take values back: the state of one function of SQL over a table's changes, by slot.

All have how many values count. Of no values the other numbers are 0: what rounding has left behind is gone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from statelib.columns.growing import grown
from statelib.operators.aggregation.accumulators.decimals import (
    DIGITS,
    column_of_halves,
    halves,
)
from statelib.operators.aggregation.accumulators.decimals_kernel import running_decimal_change
from statelib.operators.aggregation.accumulators.inputs import floats_of, numbers_of, sum_does_not_fit
from statelib.operators.aggregation.accumulators.kernel import NO_UPDATE
from statelib.operators.aggregation.accumulators.moments_kernel import running_moments_change
from statelib.operators.aggregation.accumulators.table_kernel import (
    NO_CHANGE,
    running_count_change,
    running_float_change,
    running_int_change,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class Changes(NamedTuple):
    """What some changes do to the values of a function; one element a change.

    Attributes:
        slots: int64: the aggregate.
        takes_back: bool: whether the old value is taken back; not from an aggregate that does not exist.
        new: What is added; null: nothing.
        old: What is taken back; null: nothing.
        added: int64: whether there is something new: 1 or 0.
        taken: int64: whether there is something old: 1 or 0.
        sequence: int64: of its record, for errors.
        remembers: Whether somebody will ask for the states, not only the results, after each change.
    """

    slots: NDArray[np.int64]
    takes_back: NDArray[np.bool_]
    new: pa.Array
    old: pa.Array
    added: NDArray[np.int64]
    taken: NDArray[np.int64]
    sequence: NDArray[np.int64]
    remembers: bool = False


class TableAccumulator(Protocol):
    """See the module's docstring. Slots are int64 arrays."""

    @property
    def types(self) -> Sequence[pa.DataType]:
        """The Arrow types of a state's columns (`statelib.operators.aggregation.function_states`)."""

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many values count, by slot; of a count itself anything."""

    def reserve(self, slots: int) -> None:
        """Makes room for ``slots`` slots."""

    def keep(self, slots: NDArray[np.int64]) -> None:
        """Keeps only ``slots``, numbered anew in their order."""

    def set(self, slots: NDArray[np.int64], states: Sequence[pa.Array]) -> None:
        """Sets the states of ``slots``; a null is that of no values."""

    def get(self, slots: NDArray[np.int64]) -> list[pa.Array]:
        """The states of ``slots``."""

    def shown(self, slots: NDArray[np.int64]) -> list[pa.Array]:
        """The states of ``slots``, or the first of their columns, which the results are made of."""

    def walk(self, changes: Changes) -> list[pa.Array]:
        """Makes changes; gives the state after each, or the first of its columns that the result is made of."""

    def walked(self) -> list[pa.Array]:
        """The state after each of the last changes, all columns."""

    def memory_bytes(self) -> int:
        """Size of the state."""


class TableArraysAccumulator(ABC):
    """An accumulator whose state is some numbers for each slot.

    Args:
        types: The Arrow types of a state's columns.
        dtypes: Of its numbers, in the same order.
    """

    def __init__(self, types: Sequence[pa.DataType], dtypes: Sequence[Any]) -> None:
        self.types = types
        self.arrays: list[NDArray[Any]] = [np.zeros(0, dtype=dtype) for dtype in dtypes]
        self._walked: list[pa.Array] = []

    @property
    @abstractmethod
    def counts(self) -> NDArray[np.int64]:
        """See `TableAccumulator`."""

    @abstractmethod
    def _run(self, changes: Changes, out: Sequence[NDArray[Any]]) -> None:
        """Makes changes; ``out``: room for the numbers after each of them."""

    def reserve(self, slots: int) -> None:
        """See `TableAccumulator`."""
        self.arrays = [grown(array, slots) for array in self.arrays]

    def keep(self, slots: NDArray[np.int64]) -> None:
        """See `TableAccumulator`."""
        self.arrays = [array[slots] for array in self.arrays]

    def set(self, slots: NDArray[np.int64], states: Sequence[pa.Array]) -> None:
        """See `TableAccumulator`."""
        for array, column in zip(self.arrays, states, strict=True):
            array[slots] = np.asarray(column.fill_null(0))

    def get(self, slots: NDArray[np.int64]) -> list[pa.Array]:
        """See `TableAccumulator`."""
        return self._columns([array[slots] for array in self.arrays])

    def shown(self, slots: NDArray[np.int64]) -> list[pa.Array]:
        """See `TableAccumulator`."""
        return self.get(slots)

    def walk(self, changes: Changes) -> list[pa.Array]:
        """See `TableAccumulator`."""
        out = [np.empty(len(changes.slots), dtype=array.dtype) for array in self.arrays]
        self._run(changes, out)
        self._walked = self._columns(out)
        return self._walked

    def walked(self) -> list[pa.Array]:
        """See `TableAccumulator`."""
        return self._walked

    def _columns(self, arrays: Sequence[NDArray[Any]]) -> list[pa.Array]:
        return [pa.array(numbers) for numbers in arrays]

    def memory_bytes(self) -> int:
        """See `TableAccumulator`."""
        return sum(array.nbytes for array in self.arrays)


class TableCount(TableArraysAccumulator):
    """How many values there are."""

    def __init__(self) -> None:
        super().__init__([pa.int64()], [np.int64])

    @property
    def counts(self) -> NDArray[np.int64]:
        """See `TableAccumulator`."""
        return self.arrays[0]

    def _run(self, changes: Changes, out: Sequence[NDArray[Any]]) -> None:
        running_count_change(changes.slots, changes.takes_back, changes.added, changes.taken, *self.arrays, *out)


class TableSum(TableArraysAccumulator):
    """The sum of numbers and how many there are.

    Args:
        of: Of the sum: int64 or float64.
    """

    def __init__(self, of: pa.DataType) -> None:
        self._kind = np.float64 if pa.types.is_floating(of) else np.int64
        super().__init__([of, pa.int64()], [self._kind, np.int64])

    @property
    def counts(self) -> NDArray[np.int64]:
        """See `TableAccumulator`."""
        return self.arrays[1]

    def _run(self, changes: Changes, out: Sequence[NDArray[Any]]) -> None:
        slots, takes_back = changes.slots, changes.takes_back
        (sums, counts), (out_sums, out_counts) = self.arrays, out
        running_count_change(slots, takes_back, changes.added, changes.taken, counts, out_counts)
        new, old = (numbers_of(column)[0].astype(sums.dtype) for column in (changes.new, changes.old))
        if sums.dtype == np.float64:
            running_float_change(slots, takes_back, new, old, out_counts, sums, out_sums)
            return
        failed = running_int_change(slots, takes_back, new, old, out_counts, sums, out_sums)
        if failed != NO_CHANGE:
            raise sum_does_not_fit("64 bits", int(changes.sequence[failed]))


class TableDecimalSum(TableArraysAccumulator):
    """The sum of decimals and how many there are.

    Args:
        of: Of the sum: decimal128.
    """

    def __init__(self, of: pa.DataType) -> None:
        super().__init__([of, pa.int64()], [np.int64, np.int64, np.int64])

    @property
    def counts(self) -> NDArray[np.int64]:
        """See `TableAccumulator`."""
        return self.arrays[2]

    def set(self, slots: NDArray[np.int64], states: Sequence[pa.Array]) -> None:
        """See `TableAccumulator`."""
        sums, counts = states
        for array, numbers in zip(self.arrays, [*halves(sums), np.asarray(counts.fill_null(0))], strict=True):
            array[slots] = numbers

    def _run(self, changes: Changes, out: Sequence[NDArray[Any]]) -> None:
        slots, takes_back = changes.slots, changes.takes_back
        (high, low, counts), (out_high, out_low, out_counts) = self.arrays, out
        running_count_change(slots, takes_back, changes.added, changes.taken, counts, out_counts)
        (new_high, new_low), (old_high, old_low) = halves(changes.new), halves(changes.old)
        failed = running_decimal_change(
            slots, takes_back, new_high, new_low, old_high, old_low, out_counts, high, low, out_high, out_low
        )
        if failed != NO_UPDATE:
            raise sum_does_not_fit(f"{DIGITS} digits", int(changes.sequence[failed]))

    def _columns(self, arrays: Sequence[NDArray[Any]]) -> list[pa.Array]:
        high, low, counts = arrays
        return [column_of_halves(high, low, self.types[0], np.ones(len(counts), np.bool_)), pa.array(counts)]


class TableMoments(TableArraysAccumulator):
    """Count, mean and m2, of which variances and deviations are made."""

    def __init__(self) -> None:
        super().__init__([pa.int64(), pa.float64(), pa.float64()], [np.int64, np.float64, np.float64])

    @property
    def counts(self) -> NDArray[np.int64]:
        """See `TableAccumulator`."""
        return self.arrays[0]

    def _run(self, changes: Changes, out: Sequence[NDArray[Any]]) -> None:
        new, old = (floats_of(column)[0] for column in (changes.new, changes.old))
        running_moments_change(
            changes.slots, changes.takes_back, new, changes.added, old, changes.taken, *self.arrays, *out
        )
