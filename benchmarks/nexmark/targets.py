"""How many times more CPU Flink is to take than Hindstream, net and gross, over the queries of both."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.runner import Measured
from benchmarks.targets import US

FLINKS = ("flink", "flink-rocksdb")
AT_LEAST = 10.0
QUANTITIES = ("net", "gross")


@dataclass(frozen=True)
class Verdict:
    """One quantity, and the Flink that takes the least of it.

    Attributes:
        quantity: ``net`` or ``gross``.
        by: Which Flink; None: none was measured, or nothing of it can be told.
        times: Geometric mean of its CPU an event, as a multiple of ours.
        queries: Over how many.
        others: The mean of the other.
    """

    quantity: str
    by: str | None = None
    times: float = math.nan
    queries: int = 0
    others: Mapping[str, float] | None = None

    @property
    def is_met(self) -> bool | None:
        """Whether it is at least `AT_LEAST`; None: see above."""
        return None if self.by is None else self.times >= AT_LEAST

    def __str__(self) -> str:
        if self.by is None:
            return f"too little to tell: Flink {self.quantity}"
        met = "met" if self.is_met else "missed"
        over = "1 query" if self.queries == 1 else f"{self.queries} queries"
        others = "".join(f"; {name} {times:.2g}" for name, times in (self.others or {}).items())
        return f"{met}: Flink {self.quantity} {self.times:.2g} (at least {AT_LEAST:g}) by {self.by}, {over}{others}"

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        times = None if self.by is None else self.times
        return {**asdict(self), "times": times, "at_least": AT_LEAST, "is_met": self.is_met}


def verdicts(measured: Sequence[Measured]) -> list[Verdict]:
    """Net and gross."""
    found = []
    for quantity in QUANTITIES:
        ours = microseconds(measured, US, quantity)
        means = {name: geometric_mean(microseconds(measured, name, quantity), ours) for name in FLINKS}
        known = sorted((mean, name) for name, mean in means.items() if mean is not None)
        if not known:
            found.append(Verdict(quantity))
            continue
        ((times, queries), by), *others = known
        found.append(Verdict(quantity, by, times, queries, {name: of for (of, _), name in others}))
    return found


def microseconds(measured: Sequence[Measured], contestant: str, quantity: str) -> dict[str, float]:
    """CPU an event of each query that a contestant has come through, by query."""
    return {
        one.work: one.net_us if quantity == "net" else one.gross_us
        for one in measured
        if one.contestant == contestant and one.costs and not one.failed
    }


def geometric_mean(theirs: Mapping[str, float], ours: Mapping[str, float]) -> tuple[float, int] | None:
    """Of theirs to ours, over the queries in which both are above 0, and how many those are; None: none."""
    logs = [math.log(theirs[query] / ours[query]) for query in ours if theirs.get(query, 0) > 0 and ours[query] > 0]
    return (math.exp(sum(logs) / len(logs)), len(logs)) if logs else None
