"""The hot loops of variances: count, mean, and the sum of the squared differences from the mean (``m2``).

A value is added as in Welford's method (Technometrics 4, 1962), and taken back by the reverse of it; two states are
merged as by Chan, Golub and LeVeque (1979). None of them subtracts large sums of squares from one another, so figures
far from zero lose no digits.

Arrays are as in `statelib.operators.aggregation.accumulators.kernel` and
`statelib.operators.aggregation.accumulators.table_kernel`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.kernels.compiled import Bools, Floats, FloatsOut, Int64s, Int64sOut, compiled, nothing
from statelib.operators.aggregation.accumulators.kernel import NO_SLOT, has_value, other_slot

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@compiled(nothing(*[Int64s] * 3, Floats, Bools, Int64sOut, FloatsOut, FloatsOut, Int64sOut, FloatsOut, FloatsOut))
def running_moments(
    rows: NDArray[np.int64],
    slots: NDArray[np.int64],
    absorbed: NDArray[np.int64],
    values: NDArray[np.float64],
    valid: NDArray[np.bool_],
    counts: NDArray[np.int64],
    means: NDArray[np.float64],
    m2s: NDArray[np.float64],
    out_counts: NDArray[np.int64],
    out_means: NDArray[np.float64],
    out_m2s: NDArray[np.float64],
) -> None:
    """Moments of float64 values."""
    for update in range(len(rows)):
        slot, row = slots[update], rows[update]
        other = other_slot(absorbed, update)
        if other != NO_SLOT and counts[other] > 0:
            if counts[slot] == 0:
                counts[slot], means[slot], m2s[slot] = counts[other], means[other], m2s[other]
            else:
                count = counts[slot] + counts[other]
                apart = means[other] - means[slot]
                m2s[slot] += m2s[other] + apart * apart * counts[slot] * counts[other] / count
                means[slot] += apart * counts[other] / count
                counts[slot] = count
        if has_value(row, valid):
            counts[slot] += 1
            apart = values[row] - means[slot]
            means[slot] += apart / counts[slot]
            m2s[slot] += apart * (values[row] - means[slot])
        if len(out_counts):
            out_counts[update], out_means[update], out_m2s[update] = counts[slot], means[slot], m2s[slot]


@compiled(
    nothing(Int64s, Bools, Floats, Int64s, Floats, Int64s, Int64sOut, FloatsOut, FloatsOut, Int64sOut, *[FloatsOut] * 2)
)
def running_moments_change(
    slots: NDArray[np.int64],
    takes_back: NDArray[np.bool_],
    new: NDArray[np.float64],
    added: NDArray[np.int64],
    old: NDArray[np.float64],
    taken: NDArray[np.int64],
    counts: NDArray[np.int64],
    means: NDArray[np.float64],
    m2s: NDArray[np.float64],
    out_counts: NDArray[np.int64],
    out_means: NDArray[np.float64],
    out_m2s: NDArray[np.float64],
) -> None:
    """Moments of float64 values that are taken back before others are added; of no values all are 0."""
    for change in range(len(slots)):
        slot = slots[change]
        for step in range(2):
            sign, value = (-taken[change], old[change]) if step == 0 else (added[change], new[change])
            if sign == 0 or (step == 0 and not takes_back[change]):
                continue
            counts[slot] += sign
            if counts[slot] == 0:
                means[slot] = m2s[slot] = 0.0
            else:
                apart = value - means[slot]
                means[slot] += sign * apart / counts[slot]
                m2s[slot] += sign * apart * (value - means[slot])
        out_counts[change], out_means[change], out_m2s[change] = counts[slot], means[slot], m2s[slot]
