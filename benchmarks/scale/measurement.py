"""What is measured against a target, and how it is told."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """One figure, and what it should be.

    Attributes:
        name: What was measured, at which size.
        value: The figure.
        unit: Its unit; empty: a ratio.
        at_most: The target, an upper bound; None: there is none.
        at_least: The target, a lower bound; None: there is none.
        details: Figures from which it is made, and those beside it.
        is_answer: Whether it says that answers are right: 1, or 0.
    """

    name: str
    value: float
    unit: str = ""
    at_most: float | None = None
    at_least: float | None = None
    details: dict[str, Any] = field(default_factory=dict)
    is_answer: bool = False

    @classmethod
    def of_answers(cls, name: str, *, are_right: bool) -> Figure:
        """Whether answers are what they must be: where they are not, other figures say nothing."""
        return cls(name, float(are_right), at_least=1, is_answer=True)

    @property
    def is_met(self) -> bool | None:
        """Whether the target is met; None: it has none."""
        if self.at_most is None and self.at_least is None:
            return None
        above = self.at_least is None or self.value >= self.at_least
        return above and (self.at_most is None or self.value <= self.at_most)

    def __str__(self) -> str:
        """A line for a person."""
        target = "" if self.at_most is None else f", target at most {self.at_most:g}"
        target += "" if self.at_least is None else f", target at least {self.at_least:g}"
        verdict = {None: "", True: ": met", False: ": MISSED"}[self.is_met]
        details = "; ".join(f"{name} {_text(value)}" for name, value in self.details.items())
        return (
            f"{self.name}: {_text(self.value)} {self.unit}".rstrip()
            + target
            + verdict
            + f" ({details})" * bool(details)
        )

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return {**asdict(self), "is_met": self.is_met}


@dataclass
class Measurement(ABC):
    """Measures one of the targets; its fields are the sizes.

    Attributes:
        name: For the command line.
    """

    name: ClassVar[str]

    @abstractmethod
    def figures(self, folder: Path) -> Iterator[Figure]:
        """Measures, each figure as soon as it is there.

        Args:
            folder: For all that is made, empty.
        """


def _text(value: Any) -> str:
    return (
        f"{value:,.4g}"
        if isinstance(value, float) and abs(value) < 1000
        else f"{value:,}"
        if isinstance(value, int) and not isinstance(value, bool)
        else f"{value:,.0f}"
        if isinstance(value, float)
        else str(value)
    )
