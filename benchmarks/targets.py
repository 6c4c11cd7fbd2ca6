"""What Hindstream is to reach, as ratios of CPU time a record in one run, net and gross, and what it has reached."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hindstream.console.numbers import count_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.regression import Estimate
    from benchmarks.runner import Measured

US = "hindstream"
US_LOCAL = "hindstream-local"
US_IN_SESSION = "hindstream-session"
_COLD = (US,)
_WARM_OR_LOCAL = (US_LOCAL, US_IN_SESSION)
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
        ours: Which of us; of several the one that takes the least of those that were measured.
    """

    work: str
    against: tuple[str, ...]
    at_most: float | None = None
    at_least: float | None = None
    clicks: int | None = None
    ours: tuple[str, ...] = _COLD

    def ratio(self, ours: Estimate, theirs: Estimate) -> Estimate | None:
        """How many times theirs, or how many times less; None if one of them cannot be told from nothing."""
        return theirs.over(ours) if self.at_most is None else ours.over(theirs)

    def is_met(self, ratio: float) -> bool:
        """Whether ``ratio``, as `ratio` gives it, reaches the bound."""
        return ratio <= self.at_most if self.at_most is not None else ratio >= (self.at_least or 0)

    def figure(self, one: Measured) -> Estimate | None:
        """What is compared of a contestant; None: it did not run over so many clicks, or, net, over one size alone."""
        if self.clicks is None:
            return one.net if one.net.is_known else None
        return one.gross(self.clicks) if self.clicks in one.costs else None

    @property
    def name(self) -> str:
        """Work, contestants, quantity."""
        ours = " warm or local" if self.ours == _WARM_OR_LOCAL else ""
        quantity = "net" if self.clicks is None else f"gross at {count_text(self.clicks)}"
        return f"{self.work}{ours}/{' or '.join(self.against)} {quantity}"

    @property
    def bound(self) -> str:
        """As a reader says it."""
        return f"at least {self.at_least:g}" if self.at_most is None else f"at most {self.at_most:g}"


def _at_least(against: str, *factors: float, ours: tuple[str, ...] = _COLD, clicks: int | None = None) -> list[Target]:
    return [Target(w, (against,), at_least=f, clicks=clicks, ours=ours) for w, f in zip(_WORKS, factors, strict=True)]


def _at_most(
    against: tuple[str, ...], *factors: float, ours: tuple[str, ...] = _COLD, clicks: int | None = None
) -> list[Target]:
    return [Target(w, against, at_most=f, clicks=clicks, ours=ours) for w, f in zip(_WORKS, factors, strict=True)]


_WORKS = ("W1", "W2", "W3", "W4")
TARGETS = [
    *_at_least("kafka-streams", 10, 10, 20, 30),
    *_at_least("kafka-streams-broker", 20, 15, 30, 40),
    *_at_least("spark-batch", 5, 5, 5, 5),
    *_at_most((FLOOR,), 2, 2, 3, 2),
    *_at_most(_EMBEDDED, 0.4, 0.4, 0.4, 0.4),
    *_at_most(("polars",), 1.6, 1.6, 3, 1.6, clicks=10_000_000),
    *_at_most(("polars",), 0.7, 0.7, 0.9, 0.7, clicks=10_000_000, ours=_WARM_OR_LOCAL),
    *_at_most(("polars",), 7, 7, 12, 7, clicks=2_000_000),
    *_at_most(("polars",), 2, 2, 3, 2, clicks=2_000_000, ours=_WARM_OR_LOCAL),
    *_at_least("spark-batch", 3, 3, 3, 3, clicks=2_000_000),
    *_at_least("kafka-streams", 4, 4, 4, 10, clicks=2_000_000, ours=_WARM_OR_LOCAL),
]


@dataclass(frozen=True)
class Verdict:
    """A target and the ratio that was measured.

    Attributes:
        target: What is to be reached.
        ratio: Of the best of us; None: too little was measured to tell.
        others: The ratios of the others of us, by name.
        by: Whose ratio it is.
    """

    target: Target
    ratio: Estimate | None
    by: str
    others: dict[str, Estimate | None] = field(default_factory=dict)

    @property
    def is_met(self) -> bool | None:
        """Whether it is reached; None: see above."""
        return None if self.ratio is None else self.target.is_met(self.ratio.value)

    def __str__(self) -> str:
        if self.ratio is None:
            return self.target.name
        told = f"{self.target.name} {_text(self.ratio)} ({self.target.bound})"
        if len(self.target.ours) == 1:
            return told
        others = "".join(f"; {name} {_text(ratio)}" for name, ratio in self.others.items())
        return f"{told} by {self.by}{others}"

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "target": self.target.name,
            "bound": self.target.bound,
            "ratio": None if self.ratio is None else self.ratio.as_json(),
            "is_met": self.is_met,
            "by": self.by,
            "others": {name: None if ratio is None else ratio.as_json() for name, ratio in self.others.items()},
        }


def verdicts(measured: Sequence[Measured]) -> list[Verdict]:
    """Of the targets whose sides were measured. A side that cannot be told from nothing tells nothing."""
    found_by = {(one.work, one.contestant): one for one in measured}

    def figures(target: Target, names: Sequence[str]) -> dict[str, Estimate]:
        sides = {name: found_by[target.work, name] for name in names if (target.work, name) in found_by}
        known = {name: target.figure(side) for name, side in sides.items()}
        return {name: figure for name, figure in known.items() if figure is not None}

    found = []
    for target in TARGETS:
        ours, theirs = figures(target, target.ours), figures(target, target.against)
        if ours and len(theirs) == len(target.against):
            least = min(theirs.values(), key=_value)
            ratios = {name: target.ratio(ours[name], least) for name in sorted(ours, key=lambda name: ours[name].value)}
            best, *others = ratios
            found.append(Verdict(target, ratios[best], best, {name: ratios[name] for name in others}))
    return found


def _value(estimate: Estimate) -> float:
    return estimate.value


def _text(ratio: Estimate | None) -> str:
    return "cannot be told" if ratio is None else f"{ratio.value:.2g}{ratio.mark}"


def summary(found: Sequence[Verdict]) -> str:
    """How many are met, and each one's figure, a line each."""
    lines = [f"{sum(v.is_met is True for v in found)} of {len(found)} targets met ({len(TARGETS)} in all)"]
    for name, is_met in (("missed", False), ("met", True), ("too little to tell", None)):
        lines += [f"{name}: {verdict}" for verdict in found if verdict.is_met is is_met]
    return "\n".join(lines)
