"""What the parts of a process have taken, of what `benchmarks.scale.spans` has written down."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import astuple, dataclass
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.scale.spans import START

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

AFTER_START = f"after {START}"
"""The part from `benchmarks.scale.spans.watch` to the first call."""

PHASES = {
    f"hindstream.spark.phases.{phase}:run": phase
    for phase in ("plan", "replay", "audit", "commit", "publish", "maintain", "report")
}
"""What `benchmarks.scale.spans.watch` is to watch of a run, and how a reader says it."""


@dataclass(frozen=True)
class Spent:
    """Seconds of time, and of CPU.

    Attributes:
        seconds: Of time; of clocks as they stand: since 1970.
        own: CPU of the process itself.
        java: CPU of its Java.
        workers: CPU of its other descendants.
    """

    seconds: float = 0.0
    own: float = 0.0
    java: float = 0.0
    workers: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(*(one + another for one, another in zip(astuple(self), astuple(other), strict=True)))

    def __sub__(self, other: Spent) -> Spent:
        return Spent(*(one - another for one, another in zip(astuple(self), astuple(other), strict=True)))

    @property
    def cpu_seconds(self) -> float:
        """Of all processes."""
        return self.own + self.java + self.workers

    @classmethod
    def median(cls, several: Sequence[Spent]) -> Spent:
        """Of each quantity by itself."""
        return cls(*map(median, zip(*map(astuple, several), strict=True)))


@dataclass(frozen=True)
class Span:
    """A call that was watched: its name, and the clocks at its beginning and its end."""

    name: str
    began: Spent
    ended: Spent


def read_spans(file: Path) -> dict[int, list[Span]]:
    """Those of each process, by its id, in order of time; of spans that begin at once the longest is first."""
    found: dict[int, list[Span]] = defaultdict(list)
    for line in file.read_text(encoding="utf-8").splitlines():
        pid, name, began, ended = json.loads(line)
        found[pid].append(Span(name, Spent(*began), Spent(*ended)))
    return {pid: sorted(spans, key=lambda s: (s.began.seconds, -s.ended.seconds)) for pid, spans in found.items()}


def parts(spans: Sequence[Span]) -> dict[str, Spent]:
    """What each span has taken without those inside it, and under ``after NAME`` what was before the next; by name.

    Args:
        spans: Of one thread of a process, as `read_spans` gives them. All of them together are the time from the
            beginning of the first to the end of the last.
    """
    found: dict[str, Spent] = defaultdict(Spent)
    open_: list[Span] = []
    before: Span | None = None
    for span in spans:
        while open_ and open_[-1].ended.seconds <= span.began.seconds:
            before = open_.pop()
        if open_:
            found[open_[-1].name] -= span.ended - span.began
        elif before is not None:
            found[f"after {before.name}"] += span.began - before.ended
        found[span.name] += span.ended - span.began
        open_.append(span)
    return dict(found)
