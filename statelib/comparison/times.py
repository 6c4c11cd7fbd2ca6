"""When what differs happened: counts by hour, day or longer."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HOUR = 3_600_000
_DAY = 24 * _HOUR
_MOST = 400
_WIDTHS = (_HOUR, _DAY, 7 * _DAY, 28 * _DAY, 364 * _DAY)
_FINE = 4 * 24


@dataclass(frozen=True, slots=True)
class TimeCounts:
    """How many rows differ, by time: of a window its start, else the timestamp.

    Attributes:
        width_ms: An hour where all that differs spans four days at most, else a day, seven days, or longer.
        starts_ms: Milliseconds since 1970: where each interval with a difference begins, ascending.
        only_a: By interval.
        only_b: By interval.
        changed: By interval.
    """

    width_ms: int
    starts_ms: tuple[int, ...]
    only_a: tuple[int, ...]
    only_b: tuple[int, ...]
    changed: tuple[int, ...]


class TimeTally:
    """Counts rows by hour."""

    def __init__(self) -> None:
        self._counts = {kind: Counter[int]() for kind in ("only_a", "only_b", "changed")}

    def add(self, kind: str, times_ms: NDArray[np.int64]) -> None:
        """Adds rows of a kind."""
        hours, counts = np.unique(times_ms // _HOUR, return_counts=True)
        self._counts[kind].update(dict(zip(hours.tolist(), counts.tolist(), strict=True)))

    def result(self) -> TimeCounts | None:
        """The counts; None: there are none."""
        hours = sorted(set().union(*self._counts.values()))
        if not hours:
            return None
        span = (hours[-1] - hours[0] + 1) * _HOUR
        width = _HOUR
        if span > _FINE * _HOUR:
            width = next((w for w in _WIDTHS[1:] if span <= _MOST * w), -(-span // _MOST // _DAY) * _DAY)
        by = {kind: Counter[int]() for kind in self._counts}
        for kind, counts in self._counts.items():
            for hour, count in counts.items():
                by[kind][hour * _HOUR // width] += count
        starts = sorted(set().union(*by.values()))
        return TimeCounts(
            width,
            tuple(start * width for start in starts),
            *(tuple(by[kind][start] for start in starts) for kind in ("only_a", "only_b", "changed")),
        )
