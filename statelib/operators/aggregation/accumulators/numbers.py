"""Accumulators: the state of one SQL function for all windows of a working set, as numpy arrays indexed by slot.

An accumulator is grown with `reserve`, walked over updates by a compiled kernel
(`statelib.operators.aggregation.accumulators.kernel`), and read and set as Arrow columns, which is how it is stored and
shown: `statelib.operators.aggregation.function_states` says which.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.growing import grown, shrunk
from statelib.operators.aggregation.accumulators.decimals import DIGITS, column_of_halves, halves
from statelib.operators.aggregation.accumulators.decimals_kernel import running_decimal_sum
from statelib.operators.aggregation.accumulators.inputs import (
    column_of_numbers,
    floats_of,
    numbers_of,
    sum_does_not_fit,
)
from statelib.operators.aggregation.accumulators.kernel import (
    NO_ROW,
    NO_UPDATE,
    running_count,
)
from statelib.operators.aggregation.accumulators.moments_kernel import running_moments

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from statelib.operators.aggregation.accumulators.inputs import Inputs, Updates


class Accumulator(Protocol):
    """The state of one function: see the module's docstring. Slots and rows are int64 arrays."""

    @property
    def types(self) -> Sequence[pa.DataType]:
        """The Arrow types of a state's columns."""

    @property
    def initial(self) -> Sequence[object]:
        """The state before any value: one of each column."""

    def reserve(self, slots: int) -> None:
        """Makes room for ``slots`` slots; new ones are as before any value."""

    def keep(self, slots: NDArray[np.int64]) -> None:
        """Keeps only ``slots``, numbered anew in their order."""

    def set(self, slots: NDArray[np.int64], states: Sequence[pa.Array]) -> None:
        """Sets the states of ``slots``."""

    def get(self, slots: NDArray[np.int64]) -> list[pa.Array]:
        """The states of ``slots``."""

    def shown(self, slots: NDArray[np.int64]) -> list[pa.Array]:
        """The states of ``slots``, or the first of their columns, which the results are made of."""

    def walk(self, updates: Updates, inputs: Inputs) -> list[pa.Array]:
        """Makes updates, in order.

        Returns:
            The state after each update, or the first of its columns that the result is made of.
        """

    def walked(self) -> list[pa.Array]:
        """The state after each update of the last `walk`, all columns; only if they were to be remembered."""

    def add(self, updates: Updates, inputs: Inputs) -> None:
        """As `walk` where nobody asks for the state after each update."""

    def memory_bytes(self) -> int:
        """Size of the state."""


class ArraysAccumulator(ABC):
    """An accumulator whose state is some numbers for each slot.

    Args:
        types: The Arrow types of a state's columns.
        initial: The state before any value.
        dtypes: Of the numbers; new ones are 0.
    """

    def __init__(self, types: Sequence[pa.DataType], initial: Sequence[object], dtypes: Sequence[Any]) -> None:
        self.types = types
        self.initial = initial
        self._arrays: list[NDArray[Any]] = [np.zeros(0, dtype=dtype) for dtype in dtypes]
        self._walked: list[pa.Array] = []

    @abstractmethod
    def _run(self, updates: Updates, inputs: Inputs, out: Sequence[NDArray[Any]]) -> None:
        """See `Accumulator.walk`; ``out``: room for the numbers after each update, empty where nobody asks for them."""

    @abstractmethod
    def _columns(self, arrays: Sequence[NDArray[Any]]) -> list[pa.Array]:
        """States, of their numbers."""

    @abstractmethod
    def _numbers(self, states: Sequence[pa.Array]) -> Sequence[NDArray[Any]]:
        """The reverse of `_columns`."""

    def reserve(self, slots: int) -> None:
        """See `Accumulator`."""
        self._arrays = [grown(array, slots) for array in self._arrays]

    def keep(self, slots: NDArray[np.int64]) -> None:
        """See `Accumulator`."""
        self._arrays = [shrunk(array, slots) for array in self._arrays]

    def set(self, slots: NDArray[np.int64], states: Sequence[pa.Array]) -> None:
        """See `Accumulator`."""
        for array, numbers in zip(self._arrays, self._numbers(states), strict=True):
            array[slots] = numbers

    def get(self, slots: NDArray[np.int64]) -> list[pa.Array]:
        """See `Accumulator`."""
        return self._columns([array[slots] for array in self._arrays])

    def shown(self, slots: NDArray[np.int64]) -> list[pa.Array]:
        """See `Accumulator`."""
        return self.get(slots)

    def walk(self, updates: Updates, inputs: Inputs) -> list[pa.Array]:
        """See `Accumulator`."""
        out = [np.empty(len(updates.rows), dtype=array.dtype) for array in self._arrays]
        self._run(updates, inputs, out)
        self._walked = self._columns(out)
        return self._walked

    def walked(self) -> list[pa.Array]:
        """See `Accumulator`."""
        return self._walked

    def add(self, updates: Updates, inputs: Inputs) -> None:
        """See `Accumulator`."""
        self._run(updates, inputs, [np.empty(0, dtype=array.dtype) for array in self._arrays])

    def memory_bytes(self) -> int:
        """See `Accumulator`."""
        return sum(array.nbytes for array in self._arrays)


class CountAccumulator(ArraysAccumulator):
    """How many values are not null, or, without a column, how many records there are."""

    def __init__(self) -> None:
        super().__init__([pa.int64()], [0], [np.int64])

    def _run(self, updates: Updates, inputs: Inputs, out: Sequence[NDArray[Any]]) -> None:
        has_nulls = inputs.of is not None and inputs.of.null_count
        valid = valid_of(inputs.of) if has_nulls else np.empty(0, dtype=np.bool_)
        running_count(*updates.walked, valid, *self._arrays, *out)

    def _columns(self, arrays: Sequence[NDArray[Any]]) -> list[pa.Array]:
        return [pa.array(counts) for counts in arrays]

    def _numbers(self, states: Sequence[pa.Array]) -> Sequence[NDArray[Any]]:
        return [np.asarray(counts) for counts in states]


class NumberAccumulator(ArraysAccumulator):
    """A sum, a minimum or a maximum; null until there is a value that is not null.

    Args:
        type_: The Arrow type of the state.
        kernel: From `statelib.operators.aggregation.accumulators.kernel`; may give the first update that overflows.
    """

    def __init__(self, type_: pa.DataType, kernel: Callable[..., int | None]) -> None:
        self._dtype = np.float64 if pa.types.is_floating(type_) else np.int64
        super().__init__([type_], [None], [self._dtype, np.bool_])
        self._kernel = kernel

    def _run(self, updates: Updates, inputs: Inputs, out: Sequence[NDArray[Any]]) -> None:
        """See `ArraysAccumulator`.

        Raises:
            InputError: A sum of integers does not fit into 64 bits.
        """
        values, valid = numbers_of(inputs.column)
        values = values.astype(self._dtype, copy=False)
        failed = self._kernel(*updates.walked, values, valid, *self._arrays, *out)
        if failed is not None and failed != NO_UPDATE:
            raise sum_does_not_fit("64 bits", _sequence(inputs, updates.rows[failed]))

    def _columns(self, arrays: Sequence[NDArray[Any]]) -> list[pa.Array]:
        numbers, seen = arrays
        return [column_of_numbers(numbers, seen, self.types[0])]

    def _numbers(self, states: Sequence[pa.Array]) -> Sequence[NDArray[Any]]:
        (numbers,) = states
        return numbers_of(numbers)[0], valid_of(numbers)


class MomentsAccumulator(ArraysAccumulator):
    """Count, mean and m2, of which variances and deviations are made."""

    def __init__(self) -> None:
        types = [pa.int64(), pa.float64(), pa.float64()]
        super().__init__(types, [0, 0.0, 0.0], [np.int64, np.float64, np.float64])

    def _run(self, updates: Updates, inputs: Inputs, out: Sequence[NDArray[Any]]) -> None:
        running_moments(*updates.walked, *floats_of(inputs.column), *self._arrays, *out)

    def _columns(self, arrays: Sequence[NDArray[Any]]) -> list[pa.Array]:
        return [pa.array(numbers) for numbers in arrays]

    def _numbers(self, states: Sequence[pa.Array]) -> Sequence[NDArray[Any]]:
        return [np.asarray(column) for column in states]


class DecimalAccumulator(ArraysAccumulator):
    """A sum of decimals; null until there is a value that is not null.

    Args:
        type_: The Arrow type of the state: decimal128.
    """

    def __init__(self, type_: pa.DataType) -> None:
        super().__init__([type_], [None], [np.int64, np.int64, np.bool_])

    def _run(self, updates: Updates, inputs: Inputs, out: Sequence[NDArray[Any]]) -> None:
        """See `ArraysAccumulator`.

        Raises:
            InputError: A sum has more than 38 digits.
        """
        column = inputs.column
        valid = valid_of(column) if column.null_count else np.empty(0, dtype=np.bool_)
        high, low = halves(column)
        failed = running_decimal_sum(*updates.walked, high, low, valid, *self._arrays, *out)
        if failed != NO_UPDATE:
            raise sum_does_not_fit(f"{DIGITS} digits", _sequence(inputs, updates.rows[failed]))

    def _columns(self, arrays: Sequence[NDArray[Any]]) -> list[pa.Array]:
        high, low, seen = arrays
        return [column_of_halves(high, low, self.types[0], seen)]

    def _numbers(self, states: Sequence[pa.Array]) -> Sequence[NDArray[Any]]:
        (sums,) = states
        return [*halves(sums), valid_of(sums)]


def _sequence(inputs: Inputs, row: int) -> int | None:
    """Of a record, for errors; None: it is none, but windows that merge."""
    return None if row == NO_ROW else int(inputs.sequence[row])
