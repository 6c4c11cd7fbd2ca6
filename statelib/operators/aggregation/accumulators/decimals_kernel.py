"""The hot loops of sums of decimals: exact, in 128 bits, of 38 digits at most.

A decimal is the integer that Arrow has of it (decimal128), as its upper and lower 64 bits, both int64. Arrays are as in
`statelib.operators.aggregation.accumulators.kernel` and `statelib.operators.aggregation.accumulators.table_kernel`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.kernels.compiled import Bools, BoolsOut, Int64s, Int64sOut, compiled, helper, i64, u64
from statelib.operators.aggregation.accumulators.kernel import NO_SLOT, NO_UPDATE, has_value, other_slot

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST_HIGH = (10**38 - 1) >> 64
_MOST_LOW = (10**38 - 1) & ((1 << 64) - 1)


@helper
def _sum_high(high: int, low: int, other_high: int, other_low: int) -> int:
    """The upper bits of a sum, which may be wrong by 2 ** 128."""
    carry = 1 if u64(low + other_low) < u64(low) else 0
    return high + other_high + carry


@helper
def _does_not_fit(high: int, other_high: int, sum_high: int, sum_low: int) -> bool:
    """Whether a sum has more than 38 digits."""
    if ((high ^ sum_high) & (other_high ^ sum_high)) < 0:  # both have a sign that it has not
        return True
    if sum_high < 0:
        sum_high, sum_low = ~sum_high + (1 if sum_low == 0 else 0), -sum_low
    return sum_high > _MOST_HIGH or (sum_high == _MOST_HIGH and u64(sum_low) > u64(_MOST_LOW))


@compiled(i64(*[Int64s] * 5, Bools, Int64sOut, Int64sOut, BoolsOut, Int64sOut, Int64sOut, BoolsOut))
def running_decimal_sum(
    rows: NDArray[np.int64],
    slots: NDArray[np.int64],
    absorbed: NDArray[np.int64],
    highs: NDArray[np.int64],
    lows: NDArray[np.int64],
    valid: NDArray[np.bool_],
    state_high: NDArray[np.int64],
    state_low: NDArray[np.int64],
    seen: NDArray[np.bool_],
    out_high: NDArray[np.int64],
    out_low: NDArray[np.int64],
    out_seen: NDArray[np.bool_],
) -> int:
    """The sum of decimals of one scale.

    Returns:
        The first update whose sum has more than 38 digits, where it stops; `NO_UPDATE` if none has.
    """
    for update in range(len(rows)):
        slot, row = slots[update], rows[update]
        other = other_slot(absorbed, update)
        if other != NO_SLOT and seen[other]:
            high = _sum_high(state_high[slot], state_low[slot], state_high[other], state_low[other])
            low = state_low[slot] + state_low[other]
            if _does_not_fit(state_high[slot], state_high[other], high, low):
                return update
            state_high[slot], state_low[slot], seen[slot] = high, low, True
        if has_value(row, valid):
            high = _sum_high(state_high[slot], state_low[slot], highs[row], lows[row])
            low = state_low[slot] + lows[row]
            if _does_not_fit(state_high[slot], highs[row], high, low):
                return update
            state_high[slot], state_low[slot], seen[slot] = high, low, True
        if len(out_high):
            out_high[update], out_low[update], out_seen[update] = state_high[slot], state_low[slot], seen[slot]
    return NO_UPDATE


@compiled(i64(Int64s, Bools, *[Int64s] * 5, *[Int64sOut] * 4))
def running_decimal_change(
    slots: NDArray[np.int64],
    takes_back: NDArray[np.bool_],
    new_high: NDArray[np.int64],
    new_low: NDArray[np.int64],
    old_high: NDArray[np.int64],
    old_low: NDArray[np.int64],
    left: NDArray[np.int64],
    state_high: NDArray[np.int64],
    state_low: NDArray[np.int64],
    out_high: NDArray[np.int64],
    out_low: NDArray[np.int64],
) -> int:
    """Sums of decimals that are taken back before others are added; ``left``: how many values there are afterwards.

    Returns:
        The first change after which a sum has more than 38 digits, where it stops; `NO_UPDATE` if all have less.
    """
    for change in range(len(slots)):
        slot = slots[change]
        high, low = state_high[slot], state_low[slot]
        if takes_back[change]:
            minus_high = ~old_high[change] + (1 if old_low[change] == 0 else 0)
            minus_low = -old_low[change]
            sum_high = _sum_high(high, low, minus_high, minus_low)
            if _does_not_fit(high, minus_high, sum_high, low + minus_low):
                return change
            high, low = sum_high, low + minus_low
        sum_high = _sum_high(high, low, new_high[change], new_low[change])
        if _does_not_fit(high, new_high[change], sum_high, low + new_low[change]):
            return change
        high, low = sum_high, low + new_low[change]
        if left[change] == 0:
            high = low = 0
        state_high[slot], state_low[slot] = high, low
        out_high[change], out_low[change] = high, low
    return NO_UPDATE
