"""Accumulators: the state of one SQL function for all windows of a working set, as numpy arrays indexed by slot.

An accumulator is grown with `reserve`, walked over updates by a compiled kernel
(`statelib.operators.aggregation.kernel`), and read and set as Arrow columns, which is how it is stored and shown.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.growing import grown, shrunk
from statelib.errors.kinds import ConfigurationError, InputError
from statelib.operators.aggregation.kernel import (
    NO_UPDATE,
    running_count,
    running_extreme,
    running_float_sum,
    running_int_sum,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


NO_SLOTS = np.empty(0, dtype=np.int64)
"""Nothing is absorbed, and nothing copied."""


class Accumulator(Protocol):
    """The state of one function: see the module's docstring. Slots and rows are int64 arrays."""

    @property
    def type(self) -> pa.DataType:
        """The Arrow type of a state."""

    @property
    def initial(self) -> int | None:
        """The state before any value."""

    def reserve(self, slots: int) -> None:
        """Makes room for ``slots`` slots; new ones are as before any value."""

    def keep(self, slots: NDArray[np.int64]) -> None:
        """Keeps only ``slots``, numbered anew in their order."""

    def set(self, slots: NDArray[np.int64], states: pa.Array) -> None:
        """Sets the states of ``slots``."""

    def get(self, slots: NDArray[np.int64]) -> pa.Array:
        """The states of ``slots``."""

    def walk(
        self, rows: NDArray[np.int64], slots: NDArray[np.int64], absorbed: NDArray[np.int64], column: pa.Array | None
    ) -> pa.Array:
        """Adds ``column[rows[u]]`` to the state of ``slots[u]``, for each update u in order, unless that is `NO_ROW`.

        Before, where ``absorbed`` is not empty, the state of ``absorbed[u]`` is added, unless that is `NO_SLOT`; a new
        slot becomes a copy of it.

        Returns:
            The state after each update.
        """

    def add(self, rows: NDArray[np.int64], slots: NDArray[np.int64], column: pa.Array | None) -> None:
        """As `walk` where nothing is absorbed and nobody asks for the state after each update."""

    def memory_bytes(self) -> int:
        """Size of the state."""


def numbers_of(column: pa.Array) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """What a kernel sees of a column.

    Returns:
        int64 or float64 values, and which are not null (empty: all).

    Raises:
        pyarrow.ArrowInvalid: A uint64 is beyond 63 bits.
    """
    if pa.types.is_floating(column.type):
        column = column.cast(pa.float64())
    elif pa.types.is_date32(column.type) or pa.types.is_time32(column.type):
        column = column.cast(pa.int32()).cast(pa.int64())
    else:
        column = column.cast(pa.int64())
    if column.null_count == 0:
        return np.ascontiguousarray(column), np.empty(0, dtype=np.bool_)
    return np.ascontiguousarray(column.fill_null(0)), valid_of(column)


def _column_of(numbers: NDArray[Any], seen: NDArray[np.bool_], of: pa.DataType) -> pa.Array:
    """The reverse of `numbers_of`."""
    column = pa.array(numbers, mask=None if seen.all() else ~seen)
    if pa.types.is_date32(of) or pa.types.is_time32(of):
        column = column.cast(pa.int32())
    return column.cast(of)


class CountAccumulator:
    """How many values are not null, or, without a column, how many records there are."""

    type = pa.int64()
    initial = 0

    def __init__(self) -> None:
        self._counts = np.zeros(0, dtype=np.int64)

    def reserve(self, slots: int) -> None:
        """See `Accumulator`."""
        self._counts = grown(self._counts, slots)

    def keep(self, slots: NDArray[np.int64]) -> None:
        """See `Accumulator`."""
        self._counts = shrunk(self._counts, slots)

    def set(self, slots: NDArray[np.int64], states: pa.Array) -> None:
        """See `Accumulator`."""
        self._counts[slots] = np.asarray(states)

    def get(self, slots: NDArray[np.int64]) -> pa.Array:
        """See `Accumulator`."""
        return pa.array(self._counts[slots])

    def walk(
        self, rows: NDArray[np.int64], slots: NDArray[np.int64], absorbed: NDArray[np.int64], column: pa.Array | None
    ) -> pa.Array:
        """See `Accumulator`."""
        out = np.empty(len(rows), dtype=np.int64)
        self._run(rows, slots, absorbed, column, out)
        return pa.array(out)

    def add(self, rows: NDArray[np.int64], slots: NDArray[np.int64], column: pa.Array | None) -> None:
        """See `Accumulator`."""
        self._run(rows, slots, NO_SLOTS, column, np.empty(0, dtype=np.int64))

    def _run(
        self,
        rows: NDArray[np.int64],
        slots: NDArray[np.int64],
        absorbed: NDArray[np.int64],
        column: pa.Array | None,
        out: NDArray[np.int64],
    ) -> None:
        has_nulls = column is not None and column.null_count
        valid = valid_of(column) if has_nulls else np.empty(0, dtype=np.bool_)
        running_count(rows, slots, absorbed, valid, self._counts, out)

    def memory_bytes(self) -> int:
        """See `Accumulator`."""
        return self._counts.nbytes


class NumberAccumulator:
    """A sum, a minimum or a maximum; null until there is a value that is not null.

    Args:
        type_: The Arrow type of the state.
        kernel: From `statelib.operators.aggregation.kernel`; may give the first update that overflows.
    """

    initial = None

    def __init__(self, type_: pa.DataType, kernel: Callable[..., int | None]) -> None:
        self.type = type_
        self._kernel = kernel
        self._dtype = np.float64 if pa.types.is_floating(type_) else np.int64
        self._numbers = np.zeros(0, dtype=self._dtype)
        self._seen = np.zeros(0, dtype=np.bool_)

    def reserve(self, slots: int) -> None:
        """See `Accumulator`."""
        self._numbers = grown(self._numbers, slots)
        self._seen = grown(self._seen, slots)

    def keep(self, slots: NDArray[np.int64]) -> None:
        """See `Accumulator`."""
        self._numbers = shrunk(self._numbers, slots)
        self._seen = shrunk(self._seen, slots)

    def set(self, slots: NDArray[np.int64], states: pa.Array) -> None:
        """See `Accumulator`."""
        self._numbers[slots], _ = numbers_of(states)
        self._seen[slots] = valid_of(states)

    def get(self, slots: NDArray[np.int64]) -> pa.Array:
        """See `Accumulator`."""
        return _column_of(self._numbers[slots], self._seen[slots], self.type)

    def walk(
        self, rows: NDArray[np.int64], slots: NDArray[np.int64], absorbed: NDArray[np.int64], column: pa.Array | None
    ) -> pa.Array:
        """See `Accumulator`.

        Raises:
            InputError: A sum of integers does not fit into 64 bits.
        """
        return _column_of(*self._run(rows, slots, absorbed, column, len(rows)), self.type)

    def add(self, rows: NDArray[np.int64], slots: NDArray[np.int64], column: pa.Array | None) -> None:
        """See `Accumulator`.

        Raises:
            InputError: A sum of integers does not fit into 64 bits.
        """
        self._run(rows, slots, NO_SLOTS, column, 0)

    def _run(
        self,
        rows: NDArray[np.int64],
        slots: NDArray[np.int64],
        absorbed: NDArray[np.int64],
        column: pa.Array | None,
        results: int,
    ) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Gives number and whether there is one after each update, if ``results`` says as many."""
        values, valid = numbers_of(column)
        values = values.astype(self._dtype, copy=False)
        out, out_seen = np.empty(results, dtype=self._dtype), np.empty(results, dtype=np.bool_)
        failed = self._kernel(rows, slots, absorbed, values, valid, self._numbers, self._seen, out, out_seen)
        if failed is not None and failed != NO_UPDATE:
            raise InputError("a sum does not fit into 64 bits", next_step="sum up a float64 of it")
        return out, out_seen

    def memory_bytes(self) -> int:
        """See `Accumulator`."""
        return self._numbers.nbytes + self._seen.nbytes


def accumulator(function: str, of: pa.DataType | None) -> Accumulator:
    """The accumulator of a function over a column of type ``of``.

    Args:
        function: ``count``, ``sum``, ``float_sum``, ``min`` or ``max``.
        of: None: over records.

    Raises:
        ConfigurationError: There is no such function of such a column.
    """
    if function == "count":
        return CountAccumulator()
    if of is not None and pa.types.is_null(of):
        of = pa.int64()
    if function in {"sum", "float_sum"} and of is not None:
        if pa.types.is_floating(of) or (function == "float_sum" and pa.types.is_integer(of)):
            return NumberAccumulator(pa.float64(), running_float_sum)
        if pa.types.is_integer(of):
            return NumberAccumulator(pa.int64(), running_int_sum)
    if function in {"min", "max"} and of is not None:
        ordered = pa.types.is_integer(of) or pa.types.is_floating(of)
        temporal = pa.types.is_temporal(of) and not pa.types.is_interval(of)
        if ordered or temporal:
            return NumberAccumulator(of, partial(running_extreme, function == "max"))
    raise ConfigurationError(
        f"there is no {function.removeprefix('float_')} of {of}",
        next_step="cast it to a number in a map_values(), or write the function with aggregate(initializer, function)",
    )
