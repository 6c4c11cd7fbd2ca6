"""The hot loop of functions that pick one record's value: the first, the last, that of the largest or smallest key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from statelib.kernels.compiled import (
    Bools,
    Floats,
    FloatsOut,
    Int64s,
    Int64sOut,
    boolean,
    compiled,
    helper,
    i64,
    nothing,
)
from statelib.operators.aggregation.accumulators.kernel import NO_SLOT, has_value, other_slot

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NO_PICK = -1


@helper
def _is_below(a: Any, b: Any) -> bool:
    """The order of SQL: a NaN is above all numbers."""
    less: bool = a < b or (b != b and a == a)  # noqa: PLR0124 - only a NaN differs from itself
    return less


@helper
def _wins(a: Any, b: Any, largest: bool, later: bool) -> bool:
    """Whether ``a``, which comes after ``b``, takes its place; of equal ones if the ``later`` does."""
    if later:
        return not (_is_below(a, b) if largest else _is_below(b, a))
    return _is_below(b, a) if largest else _is_below(a, b)


@compiled(
    nothing(boolean, boolean, *[Int64s] * 4, Bools, i64, Int64sOut, Int64sOut, Int64sOut, Int64sOut),
    nothing(boolean, boolean, *[Int64s] * 3, Floats, Bools, i64, FloatsOut, Int64sOut, FloatsOut, Int64sOut),
)
def running_pick(
    largest: bool,
    later: bool,
    rows: NDArray[np.int64],
    slots: NDArray[np.int64],
    absorbed: NDArray[np.int64],
    keys: NDArray[Any],
    valid: NDArray[np.bool_],
    first_number: int,
    best: NDArray[Any],
    picked: NDArray[np.int64],
    out_best: NDArray[Any],
    out_picked: NDArray[np.int64],
) -> None:
    """Picks the record of the ``largest``, or else the smallest, int64 or float64 key.

    ``rows``, ``slots``, ``absorbed``, ``valid`` as in `statelib.operators.aggregation.accumulators.kernel`.

    Args:
        largest: See above.
        later: Whether of equal keys the later record is picked; else the first.
        rows: See above.
        slots: See above.
        absorbed: See above. What is absorbed comes after what is there.
        keys: By record.
        valid: By record: whether it can be picked; empty: all can.
        first_number: The number of record 0.
        best: By slot: the key of the record picked.
        picked: By slot: its number, or `NO_PICK`.
        out_best: By update: the key after it; empty: nobody asks.
        out_picked: By update: the number after it; empty: nobody asks.
    """
    for update in range(len(rows)):
        slot, row = slots[update], rows[update]
        other = other_slot(absorbed, update)
        if (
            other != NO_SLOT
            and picked[other] != NO_PICK
            and (picked[slot] == NO_PICK or _wins(best[other], best[slot], largest, later))
        ):
            best[slot], picked[slot] = best[other], picked[other]
        if has_value(row, valid) and (picked[slot] == NO_PICK or _wins(keys[row], best[slot], largest, later)):
            best[slot], picked[slot] = keys[row], first_number + row
        if len(out_picked):
            out_best[update], out_picked[update] = best[slot], picked[slot]
