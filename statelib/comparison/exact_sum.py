"""The sum of doubles without rounding, so that it does not depend on their order."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DIGITS = 53
_HALF = 26


@dataclass(slots=True)
class ExactSum:
    """Adds up finite doubles exactly.

    A double is a whole number of 53 bits times a power of two; those of one power are added as whole numbers.
    """

    _of_power: dict[int, int] = field(default_factory=dict)

    def add(self, numbers: NDArray[np.float64]) -> None:
        """Adds numbers, all finite; fewer than 2**36 at a time."""
        if not len(numbers):
            return
        fractions, powers = np.frexp(numbers)
        whole = np.ldexp(fractions, _DIGITS).astype(np.int64)
        found, of = np.unique(powers, return_inverse=True)
        high, low = whole >> _HALF, whole & ((1 << _HALF) - 1)
        highs, lows = np.zeros(len(found), np.int64), np.zeros(len(found), np.int64)
        np.add.at(highs, of, high)
        np.add.at(lows, of, low)
        for power, upper, lower in zip(found.tolist(), highs.tolist(), lows.tolist(), strict=True):
            self._of_power[power] = self._of_power.get(power, 0) + (upper << _HALF) + lower

    @property
    def total(self) -> float:
        """The sum, rounded once; infinite beyond the range of doubles."""
        exact = sum(
            (Fraction(whole) * Fraction(2) ** (power - _DIGITS) for power, whole in self._of_power.items()), Fraction()
        )
        try:
            return float(exact)
        except OverflowError:
            return float("inf") if exact > 0 else float("-inf")
