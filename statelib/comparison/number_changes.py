"""By how much numbers changed: count, extremes, sum and quantiles, in any order and in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from statelib.comparison.exact_sum import ExactSum

if TYPE_CHECKING:
    from numpy.typing import NDArray

SAMPLE = 1 << 16
_QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
_BARS = 24


@dataclass(frozen=True, slots=True)
class NumberChanges:
    """How B's numbers differ from A's, where both are numbers: B - A, of rows in which the field changed.

    Attributes:
        count: How many there are.
        min: The least difference.
        max: The greatest.
        sum: Of all differences.
        quantiles: By share, such as ``0.5``; of a sample of 65,536 beyond that many.
        bars: How many of the sample lie from one bound to the next one, in 24 steps of equal width from the quantile
            0.01 to 0.99; what lies outside is counted in the outermost.
        bounds: Theirs, one more; a single one if all of the sample are equal.
    """

    count: int
    min: float
    max: float
    sum: float
    quantiles: dict[str, float]
    bars: tuple[int, ...]
    bounds: tuple[float, ...]


class NumberTally:
    """Collects differences. The sample are those with the least hashes, so it does not depend on their order."""

    def __init__(self) -> None:
        self._count = 0
        self._sum = ExactSum()
        self._min, self._max = np.inf, -np.inf
        self._hashes = np.empty(0, np.uint64)
        self._sample = np.empty(0, np.float64)

    def add(self, differences: NDArray[np.float64], hashes: NDArray[np.uint64]) -> None:
        """Adds finite differences, each with a hash of what it is of."""
        if not len(differences):
            return
        self._count += len(differences)
        self._sum.add(differences)
        self._min, self._max = min(self._min, differences.min()), max(self._max, differences.max())
        hashes = np.concatenate([self._hashes, hashes])
        sample = np.concatenate([self._sample, differences])
        order = np.lexsort((sample, hashes))[:SAMPLE]
        self._hashes, self._sample = hashes[order], sample[order]

    def result(self) -> NumberChanges | None:
        """What was found; None: there was no difference."""
        if not self._count:
            return None
        values = np.quantile(self._sample, _QUANTILES, method="inverted_cdf")
        low, high = float(values[0]), float(values[-1])
        with np.errstate(over="ignore"):
            bounds = low / 2 + (high / 2 - low / 2) * np.arange(_BARS + 1) / _BARS  # halves: no span is infinite
        bounds = np.unique(np.concatenate([[low], np.clip(2 * bounds[1:-1], low, high), [high]]))
        places = np.searchsorted(bounds, self._sample, side="right") - 1
        bars = np.bincount(np.clip(places, 0, max(len(bounds) - 2, 0)), minlength=max(len(bounds) - 1, 1))
        return NumberChanges(
            count=self._count,
            min=float(self._min),
            max=float(self._max),
            sum=self._sum.total,
            quantiles={str(share): float(value) for share, value in zip(_QUANTILES, values, strict=True)},
            bars=tuple(bars.tolist()),
            bounds=tuple(bounds.tolist()),
        )
