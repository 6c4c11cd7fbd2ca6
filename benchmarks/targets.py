"""What Hindstream is to reach, as ratios of CPU time a record in one run, net and gross, and what it has reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hindstream.console.numbers import count_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.regression import Estimate
    from benchmarks.runner import Measured

US = "hindstream"
US_LOCAL = "hindstream-local"
FLOOR = "floor"
_EMBEDDED = ("duckdb", "polars")


@dataclass(frozen=True)
class Target:
    """Against other contestants in one work.

    Attributes:
        work: Its name.
        against: The contestants' names; of several the one that takes the least.
        at_most: The greatest ratio of ours to theirs; None: see ``at_least``.
        at_least: The least ratio of theirs to ours.
        clicks: Gross, over that many clicks; None: net.
        ours: Which of us.
    """

    work: str
    against: tuple[str, ...]
    at_most: float | None = None
    at_least: float | None = None
    clicks: int | None = None
    ours: str = US

    def ratio(self, ours: Estimate, theirs: Estimate) -> Estimate | None:
        """How many times theirs, or how many times less; None if one of them cannot be told from nothing."""
        return theirs.over(ours) if self.at_most is None else ours.over(theirs)

    def is_met(self, ratio: float) -> bool:
        """Whether ``ratio``, as `ratio` gives it, reaches the bound."""
        return ratio <= self.at_most if self.at_most is not None else ratio >= (self.at_least or 0)

    def figure(self, one: Measured) -> Estimate | None:
        """What is compared of a contestant; None: it did not run over so many clicks."""
        if self.clicks is None:
            return one.net
        return one.gross(self.clicks) if self.clicks in one.costs else None

    @property
    def name(self) -> str:
        """Work, contestants, quantity."""
        ours = "" if self.ours == US else " local"
        quantity = "net" if self.clicks is None else f"gross at {count_text(self.clicks)}"
        return f"{self.work}{ours}/{' or '.join(self.against)} {quantity}"

    @property
    def bound(self) -> str:
        """As a reader says it."""
        return f"at least {self.at_least:g}" if self.at_most is None else f"at most {self.at_most:g}"


def _at_least(against: str, *factors: float, ours: str = US, clicks: int | None = None) -> list[Target]:
    return [Target(w, (against,), at_least=f, clicks=clicks, ours=ours) for w, f in zip(_WORKS, factors, strict=True)]


def _at_most(against: tuple[str, ...], *factors: float, ours: str = US, clicks: int | None = None) -> list[Target]:
    return [Target(w, against, at_most=f, clicks=clicks, ours=ours) for w, f in zip(_WORKS, factors, strict=True)]


_WORKS = ("W1", "W2", "W3", "W4")
TARGETS = [
    *_at_least("kafka-streams", 10, 10, 20, 30),
    *_at_least("kafka-streams-broker", 20, 15, 30, 40),
    *_at_least("spark-batch", 5, 5, 5, 5),
    *_at_most((FLOOR,), 2, 2, 3, 2),
    *_at_most(_EMBEDDED, 0.4, 0.4, 0.4, 0.4),
    *_at_most(("polars",), 1.6, 1.6, 3, 1.6, clicks=10_000_000),
    *_at_most(("polars",), 0.7, 0.7, 0.9, 0.7, clicks=10_000_000, ours=US_LOCAL),
    *_at_most(("polars",), 7, 7, 12, 7, clicks=2_000_000),
    *_at_most(("polars",), 2, 2, 3, 2, clicks=2_000_000, ours=US_LOCAL),
    *_at_least("spark-batch", 3, 3, 3, 3, clicks=2_000_000),
    *_at_least("kafka-streams", 4, 4, 4, 10, clicks=2_000_000, ours=US_LOCAL),
]


@dataclass(frozen=True)
class Verdict:
    """A target and the ratio that was measured; None: too little was measured to tell."""

    target: Target
    ratio: Estimate | None

    @property
    def is_met(self) -> bool | None:
        """Whether it is reached; None: see above."""
        return None if self.ratio is None else self.target.is_met(self.ratio.value)

    def __str__(self) -> str:
        if self.ratio is None:
            return self.target.name
        return f"{self.target.name} {self.ratio.value:.2g}{self.ratio.mark} ({self.target.bound})"

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "target": self.target.name,
            "bound": self.target.bound,
            "ratio": None if self.ratio is None else self.ratio.as_json(),
            "is_met": self.is_met,
        }


def verdicts(measured: Sequence[Measured]) -> list[Verdict]:
    """Of the targets all of whose sides were measured. A side that cannot be told from nothing tells nothing."""
    found_by = {(one.work, one.contestant): one for one in measured}
    found = []
    for target in TARGETS:
        sides = [found_by.get((target.work, name)) for name in (target.ours, *target.against)]
        figures = [None if side is None else target.figure(side) for side in sides]
        known = [figure for figure in figures if figure is not None]
        if len(known) == len(sides):
            ours, *theirs = known
            found.append(Verdict(target, target.ratio(ours, min(theirs, key=lambda figure: figure.value))))
    return found


def summary(found: Sequence[Verdict]) -> str:
    """How many are met, and each one's figure, a line each."""
    lines = [f"{sum(v.is_met is True for v in found)} of {len(found)} targets met ({len(TARGETS)} in all)"]
    for name, is_met in (("missed", False), ("met", True), ("too little to tell", None)):
        lines += [f"{name}: {verdict}" for verdict in found if verdict.is_met is is_met]
    return "\n".join(lines)
