"""Sums and means of decimals: exact, of 38 digits (decimal128), with the scale of the values.

A mean has four digits more after the point than the values, rounded half up, as in Spark.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from statelib.columns.arrow_buffers import fixed_array, valid_of
from statelib.errors.kinds import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

DIGITS = 38
MEAN_DIGITS = 4
"""How many more there are after the point of a mean than of the values."""

_NO_ROUNDING = Context(prec=DIGITS * 2)


def can_add(of: pa.DataType) -> bool:
    """Whether there are sums of values of the type: decimals of 38 digits at most."""
    return bool(pa.types.is_decimal(of) and not pa.types.is_decimal256(of) and of.scale >= 0)


def can_average(of: pa.DataType) -> bool:
    """Whether there are means of values of the type."""
    return can_add(of) and of.scale + MEAN_DIGITS <= DIGITS


def type_of_sum(of: pa.DataType) -> pa.DataType:
    """Of a sum of values of the type."""
    return pa.decimal128(DIGITS, of.scale)


def type_of_averaged_sum(mean: pa.DataType) -> pa.DataType:
    """Of the sum that a mean of this type is made of."""
    return pa.decimal128(DIGITS, mean.scale - MEAN_DIGITS)


def halves(column: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What kernels see of decimals: the upper and lower 64 bits of each; 0 of a null."""
    column = column.cast(type_of_sum(column.type))
    data = column.buffers()[1]
    if data is None:
        return np.zeros(len(column), dtype=np.int64), np.zeros(len(column), dtype=np.int64)
    both = np.frombuffer(data, dtype="<i8")[2 * column.offset :][: 2 * len(column)].reshape(-1, 2)
    there = valid_of(column)
    return np.where(there, both[:, 1], 0), np.where(there, both[:, 0], 0)


def column_of_halves(high: NDArray[np.int64], low: NDArray[np.int64], of: pa.DataType, there: NDArray[np.bool_]) -> Any:
    """The reverse of `halves`."""
    return fixed_array(of, np.stack([low, high], axis=1).astype("<i8").view(np.uint8), there)


def means(totals: pa.Array, counts: pa.Array) -> pa.Array:
    """Sums divided by counts; null where a sum is.

    Raises:
        InputError: A mean has more than 38 digits.
    """
    scale = totals.type.scale + MEAN_DIGITS
    step = Decimal(1).scaleb(-scale)

    def mean(total: Decimal, count: int) -> Decimal:
        return _NO_ROUNDING.divide(total, Decimal(count)).quantize(step, ROUND_HALF_UP, _NO_ROUNDING)

    both = zip(totals.to_pylist(), counts.to_pylist(), strict=True)
    shown = [None if total is None else mean(total, count) for total, count in both]
    return _checked(shown, pa.decimal128(DIGITS, scale))


def _checked(values: Sequence[Decimal | None], of: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, of)
    except pa.ArrowInvalid as error:
        raise InputError(
            f"a mean does not fit into {DIGITS} digits, {of.scale} of them after the point",
            next_step="take the mean of decimals with fewer digits after the point, or of a float64",
        ) from error
