"""What aggregate functions see of a batch's records, as Arrow columns and as the numbers that kernels see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import valid_of
from statelib.errors.kinds import InputError, InternalError

if TYPE_CHECKING:
    from numpy.typing import NDArray


NO_SLOTS = np.empty(0, dtype=np.int64)
"""Nothing is absorbed, and nothing copied."""


class Updates(NamedTuple):
    """What some records do to the states of a function, in order; all arrays are int64.

    Attributes:
        rows: By update: the record that is added, or `NO_ROW`.
        slots: By update: what it is added to.
        absorbed: By update: the slot whose state is added before, or `NO_SLOT`; a new slot becomes a copy of it. Empty:
            nothing is.
        remembers: Whether somebody will ask for the states, not only the results, after each update.
    """

    rows: NDArray[np.int64]
    slots: NDArray[np.int64]
    absorbed: NDArray[np.int64] = NO_SLOTS
    remembers: bool = False

    @property
    def walked(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """What kernels walk over."""
        return self.rows, self.slots, self.absorbed


@dataclass(frozen=True, slots=True)
class Inputs:
    """What one function sees of a batch's records.

    Attributes:
        of: What it is of, null for records that it does not see; None: each record counts.
        by: What decides which record it picks, null for records that it does not see; None: nothing beside ``of``.
        timestamp: int64, of the records, ms.
        sequence: int64, of the records, for errors.
    """

    of: pa.Array | None
    by: pa.Array | None
    timestamp: NDArray[np.int64]
    sequence: NDArray[np.int64]

    @property
    def column(self) -> pa.Array:
        """What the function is of.

        Raises:
            InternalError: It is of records.
        """
        if self.of is None:
            raise InternalError("a function has no column")
        return self.of

    @property
    def types(self) -> tuple[pa.DataType | None, pa.DataType | None]:
        """Of what the function is of, and of what decides; None: there is none."""
        of, by = (None if column is None else column.type for column in (self.of, self.by))
        return of, by


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


def column_of_numbers(numbers: NDArray[Any], seen: NDArray[np.bool_], of: pa.DataType) -> pa.Array:
    """The reverse of `numbers_of`."""
    column = pa.array(numbers, mask=None if seen.all() else ~seen)
    if pa.types.is_date32(of) or pa.types.is_time32(of):
        column = column.cast(pa.int32())
    return column.cast(of)


def sum_does_not_fit(room: str, sequence: int | None) -> InputError:
    """The error that a sum does not fit into ``room``; ``sequence``: of the record that it was too much for."""
    error = InputError(f"a sum does not fit into {room}", next_step="sum up a float64 of it")
    error.sequence = sequence
    return error


def floats_of(column: pa.Array) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """As `numbers_of`, of values of any kind that is real: float64."""
    floats = column.cast(pa.float64(), safe=False)  # integers beyond 53 bits are rounded
    if floats.null_count == 0:
        return np.ascontiguousarray(floats), np.empty(0, dtype=np.bool_)
    return np.ascontiguousarray(floats.fill_null(0)), valid_of(floats)


def is_real(of: pa.DataType) -> bool:
    """Whether values of the type are real numbers: integers, floats or decimals."""
    return bool(pa.types.is_integer(of) or pa.types.is_floating(of) or pa.types.is_decimal(of))


def has_numbers(of: pa.DataType) -> bool:
    """Whether `numbers_of` keeps the order of values of the type: integers, floats, dates and times."""
    temporal = pa.types.is_temporal(of) and not pa.types.is_interval(of)
    return bool(pa.types.is_integer(of) or pa.types.is_floating(of) or temporal)


def is_ordered(of: pa.DataType) -> bool:
    """Whether values of the type have an order."""
    is_text = pa.types.is_string(of) or pa.types.is_large_string(of)
    is_bytes = pa.types.is_binary(of) or pa.types.is_large_binary(of)
    return bool(has_numbers(of) or pa.types.is_decimal(of) or pa.types.is_boolean(of) or is_text or is_bytes)
