"""A new user's path with a stopwatch: getting started, from CSV files of three years to an answer that SQL confirms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from benchmarks.scale.measurement import Figure, Measurement
from tests.docs.first_answer import answer, followed, recomputed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass
class FirstAnswer(Measurement):
    """Each command of the page in a process of its own, with Hindstream set up and nothing else; wall time.

    Attributes:
        shown: How many of the slowest commands are shown.
    """

    name: ClassVar[str] = "first-answer"

    shown: int = 3

    def figures(self, folder: Path) -> Iterator[Figure]:
        """See `Measurement`."""
        took = followed(folder)
        slowest = sorted(took, key=lambda one: -one.seconds)[: self.shown]
        details = {f"{n}. {one.command}": f"{one.seconds:.1f} s" for n, one in enumerate(slowest, 1)}
        yield Figure(
            f"getting started, all {len(took)} commands",
            sum(one.seconds for one in took),
            "s",
            at_most=600,
            details=details,
        )
        expected = recomputed(folder)
        wrong = set(expected) ^ set(answer(folder))
        yield Figure(f"of {len(expected):,} days and countries, those that SQL says otherwise", len(wrong), at_most=0)
