"""How late records are, against the bounds of a histogram."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.kernels.compiled import Int64s, Int64sOut, compiled, helper, i64, several

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ROWS_AT_ONCE = 1 << 11
"""So many stay in the processor's first cache while they are held against each bound, eight at a time."""


@helper
def _count_beyond(values: NDArray[np.int64], bound: int) -> int:
    """A loop of its own: of one inside another numba makes no vector instructions."""
    count: int = i64(0)
    for row in range(len(values)):
        count += values[row] > bound
    return count


@compiled(several(i64, 2)(Int64s, Int64s, Int64sOut))
def count_beyond(values: NDArray[np.int64], bounds: NDArray[np.int64], beyond: NDArray[np.int64]) -> tuple[int, int]:
    """How many of some values are greater than each bound.

    Args:
        values: int64, none negative.
        bounds: int64, ascending.
        beyond: Out, int64, by bound: gets their number added.

    Returns:
        The sum of all values and the greatest of them, 0 if there is none.
    """
    total: int = i64(0)
    most: int = i64(0)
    for first in range(0, len(values), _ROWS_AT_ONCE):
        some = values[first : first + _ROWS_AT_ONCE]
        latest = i64(0)
        for row in range(len(some)):
            total += some[row]
            latest = max(latest, some[row])
        number = i64(0)
        while number < len(bounds) and bounds[number] < latest:
            beyond[number] += _count_beyond(some, bounds[number])
            number += 1
        most = max(most, latest)
    return total, most
