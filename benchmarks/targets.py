"""What Hindstream is to reach, as ratios of net CPU time a record in one run, and what it has reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.runner import Measured

US = "hindstream"
FLOOR = "floor"


@dataclass(frozen=True)
class Target:
    """Against one contestant in one work.

    Attributes:
        work: Its name.
        against: The contestant's name.
        factor: How many times less than the contestant at least; against the floor: how many times as much at most.
    """

    work: str
    against: str
    factor: float

    def is_met(self, ratio: float) -> bool:
        """Whether ``ratio``, as `ratio` gives it, reaches the factor."""
        return ratio <= self.factor if self.against == FLOOR else ratio >= self.factor

    def ratio(self, ours_us: float, theirs_us: float) -> float:
        """How many times less than the contestant, or how many times the floor."""
        return ours_us / theirs_us if self.against == FLOOR else theirs_us / ours_us


_FACTORS = {
    "kafka-streams": (10, 10, 20, 30),
    "kafka-streams-broker": (20, 15, 30, 40),
    FLOOR: (3, 3, 3, 4),
    "spark-batch": (5, 5, 5, 5),
}
TARGETS = [
    Target(work, against, factor)
    for against, factors in _FACTORS.items()
    for work, factor in zip(("W1", "W2", "W3", "W4"), factors, strict=True)
]


@dataclass(frozen=True)
class Verdict:
    """A target and the ratio that was measured; None: too little was measured to tell."""

    target: Target
    ratio: float | None

    @property
    def is_met(self) -> bool | None:
        """Whether it is reached; None: see above."""
        return None if self.ratio is None else self.target.is_met(self.ratio)

    def __str__(self) -> str:
        name = f"{self.target.work}/{self.target.against}"
        if self.ratio is None:
            return name
        bound = "at most" if self.target.against == FLOOR else "at least"
        return f"{name} {self.ratio:.1f} ({bound} {self.target.factor:g})"

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        target = self.target
        return {
            "work": target.work,
            "against": target.against,
            "factor": target.factor,
            "ratio": self.ratio,
            "is_met": self.is_met,
        }


def verdicts(measured: Sequence[Measured]) -> list[Verdict]:
    """Of the targets both of whose sides were measured. A side that cost no more than its start tells nothing."""
    net_us = {(one.work, one.contestant): one.net_us for one in measured}
    found = []
    for target in TARGETS:
        ours_us, theirs_us = net_us.get((target.work, US)), net_us.get((target.work, target.against))
        if ours_us is not None and theirs_us is not None:
            found.append(Verdict(target, target.ratio(ours_us, theirs_us) if ours_us and theirs_us else None))
    return found


def summary(found: Sequence[Verdict]) -> str:
    """One line: how many are met, and each one's figure."""
    parts = [f"{sum(v.is_met is True for v in found)} of {len(found)} targets met ({len(TARGETS)} in all)"]
    for name, is_met in (("missed", False), ("met", True), ("too little to tell", None)):
        if chosen := [str(verdict) for verdict in found if verdict.is_met is is_met]:
            parts.append(f"{name}: {', '.join(chosen)}")
    return "; ".join(parts)
