"""What a fault is to the campaign: cases, each of which comes to an outcome."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.faults.subject import Difference

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path


@dataclass(frozen=True)
class Case:
    """One case of a fault; what happens in it follows from ``what`` and ``seed`` alone."""

    fault: str
    what: str
    seed: int

    def __str__(self) -> str:
        return f"{self.fault}:{self.what}:{self.seed}"

    @classmethod
    def parse(cls, text: str) -> Case:
        """The case that `str` has named."""
        fault, rest = text.split(":", 1)
        what, _, seed = rest.rpartition(":")
        return cls(fault, what, int(seed))


@dataclass(frozen=True)
class Outcome:
    """What a case has come to.

    Attributes:
        injected: How many faults there were.
        recovered: After how many of them all was as if nothing had been.
        refused: How many ended in an error that says what is wrong and what to do.
        difference: To an undisturbed run.
        wrong: What else should not be; empty: nothing.
        note: What happened, in a few words.
    """

    injected: int = 1
    recovered: int = 0
    refused: int = 0
    difference: Difference = field(default_factory=Difference)
    wrong: str = ""
    note: str = ""

    @property
    def failed(self) -> bool:
        return bool(self.wrong or self.difference)


@dataclass(frozen=True)
class Fault:
    """A kind of fault.

    Attributes:
        name: One word.
        shape: What happens, and what must hold, in a few words.
        cases: From what ``prepare`` gave, the seed and whether it shall be quick: what there is to do (``what``, seed).
        run: Does a case in a folder of its own, in a process of its own that has one thread.
        prepare: What all cases need, below a folder; must be picklable.
        batch: So many cases are done with one ``prepare``; None: all.
        at_once: How many cases a worker does at a time: several where they mostly wait; 0: one case at a time in all.
    """

    name: str
    shape: str
    cases: Callable[[Any, int, bool], Sequence[tuple[str, int]]]
    run: Callable[[Case, Path, Any], Outcome]
    prepare: Callable[[Path], AbstractContextManager[Any]] = lambda _: nullcontext(None)
    batch: int | None = None
    at_once: int = 1
