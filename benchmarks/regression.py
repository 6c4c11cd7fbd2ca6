"""What a record costs and what a start costs, from runs over growing sizes: a line, with the error of both.

Runs scatter in proportion to what they take: a machine that is slower by a tenth adds a tenth to a run of one second
and to one of a minute. So each run weighs as much as the inverse square of what the line says it takes, found by
iteration (McCullagh and Nelder, Generalized Linear Models, chapter 8: constant coefficient of variation, identity
link). With equal weights the largest size alone would decide.

Nothing is weighed away as an outlier: of a dozen runs nobody can tell which was disturbed. A disturbed run makes the
interval wider instead, and the figure is marked as uncertain. So does a cost that does not grow in a line.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE = 0.95
MARKED_FROM = 0.2
"""The relative error above which a figure is marked."""
_ITERATIONS = 8
_LEAST_SHARE = 0.05
"""Of what was measured: less the line is not taken to say, since it could not weigh what is below zero."""


@dataclass(frozen=True)
class Estimate:
    """A figure and how far it may be off.

    Attributes:
        value: Its best value; NaN if it is unknown.
        error: Half the width of its interval of `CONFIDENCE`; infinite if too little was measured to tell.
    """

    value: float
    error: float = math.inf

    @property
    def is_known(self) -> bool:
        """Whether there is a value."""
        return not math.isnan(self.value)

    @property
    def relative_error(self) -> float:
        """``error`` as a share of the value; infinite if the value is not above zero."""
        return self.error / self.value if self.value > 0 else math.inf

    @property
    def is_positive(self) -> bool:
        """Whether zero lies below the interval, or the error is unknown and the value positive."""
        return self.value > (self.error if math.isfinite(self.error) else 0)

    def over(self, other: Estimate) -> Estimate | None:
        """The ratio of two independent figures; None where one of them cannot be told from zero."""
        if not (self.is_positive and other.is_positive):
            return None
        ratio = self.value / other.value
        return Estimate(ratio, ratio * math.hypot(self.relative_error, other.relative_error))

    def scaled(self, factor: float) -> Estimate:
        """In another unit."""
        return Estimate(self.value * factor, self.error * factor)

    def text(self, digits: int) -> str:
        """The figure; marked if it is uncertain by more than a fifth: ``0.31 ±30 %``, ``< 0.62``, ``0.31 ±?``.

        Nothing of what is unknown.
        """
        if not self.is_known:
            return ""
        if not self.is_positive:
            return (
                f"< {self.value + self.error:.{digits}f}"
                if math.isfinite(self.error)
                else f"{self.value:.{digits}f} ±?"
            )
        return f"{self.value:.{digits}f}{self.mark}"

    @property
    def mark(self) -> str:
        """What `text` appends."""
        if not math.isfinite(self.error):
            return " ±?"
        return f" ±{self.relative_error:.0%}".replace("%", " %") if self.relative_error > MARKED_FROM else ""

    def as_json(self) -> dict[str, Any]:
        """Both; what is unknown is null."""
        return {
            "value": self.value if self.is_known else None,
            "error": self.error if math.isfinite(self.error) else None,
        }


_UNKNOWN = Estimate(math.nan)


@dataclass(frozen=True)
class Line:
    """``start + slope * size``, fitted to runs.

    Attributes:
        start: What a run of no records would take.
        slope: What each record adds.
        scatter: Standard deviation of a run, as a share of what it takes; infinite if no degree of freedom is left.
        degrees_of_freedom: Runs beyond two, or of one size, beyond one.
    """

    start: Estimate
    slope: Estimate
    scatter: float
    degrees_of_freedom: int

    def mean(self, costs: Sequence[float]) -> Estimate:
        """The mean of runs of one size, with the error that the scatter of all runs lets expect."""
        value = sum(costs) / len(costs)
        if not math.isfinite(self.scatter):
            return Estimate(value)
        return Estimate(value, value * self.scatter * _quantile(self.degrees_of_freedom) / math.sqrt(len(costs)))


def fit(sizes: Sequence[float], costs: Sequence[float]) -> Line:
    """The line through runs. Of runs of one size, only `Line.mean` is known.

    Args:
        sizes: Records of each run.
        costs: What each run took, in any unit, above zero.

    Raises:
        ValueError: A run took nothing.
    """
    size, cost = np.asarray(sizes, np.float64), np.asarray(costs, np.float64)
    if not (cost > 0).all():
        raise ValueError("a run that took nothing has no scatter")
    if len(np.unique(size)) == 1:
        scatter = stdev(costs) / fmean(costs) if len(costs) > 1 else math.inf
        return Line(_UNKNOWN, _UNKNOWN, scatter, len(costs) - 1)
    unit = float(size.max())  # so that both columns are of like magnitude
    columns = np.stack([np.ones_like(size), size / unit], axis=1)
    expected = cost
    for _ in range(_ITERATIONS):
        weighed = columns / expected[:, None]
        parameters = np.linalg.lstsq(weighed, cost / expected, rcond=None)[0]
        expected = np.maximum(columns @ parameters, _LEAST_SHARE * cost)
    start, slope = (float(parameter) for parameter in parameters)
    degrees = len(size) - 2
    if not degrees:
        return Line(Estimate(start), Estimate(slope / unit), math.inf, 0)
    scatter = math.sqrt(float((((cost - columns @ parameters) / expected) ** 2).sum()) / degrees)
    weighed = columns / expected[:, None]
    deviations = scatter * np.sqrt(np.diag(np.linalg.inv(weighed.T @ weighed)))
    errors = [float(deviation) * _quantile(degrees) for deviation in deviations]
    return Line(Estimate(start, errors[0]), Estimate(slope / unit, errors[1] / unit), scatter, degrees)


def mean_of(values: Sequence[float]) -> Estimate:
    """The mean of repeats of one thing; of a single one the error is unknown."""
    mean = fmean(values)
    if len(values) < 2:
        return Estimate(mean)
    return Estimate(mean, stdev(values) / math.sqrt(len(values)) * _quantile(len(values) - 1))


def _quantile(degrees_of_freedom: int) -> float:
    """Of Student's distribution, two-sided."""
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, degrees_of_freedom))
