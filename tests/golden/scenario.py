"""What a module of ``tests.golden.scenarios`` must be: the contract between `tests.golden.check` and the scenarios."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tests.golden.trace import Case


class UnsupportedCase(Exception):
    """The case needs an operator that does not exist yet; it is listed as skipped, and its steps are not counted."""


class Compare(Protocol):
    """Notes that a step was compared, and a difference if ``expected`` (the trace) and ``got`` (Hindstream) differ."""

    def __call__(self, step: int, field: str, expected: object, got: object) -> None: ...


class Scenario(Protocol):
    """A checker of one scenario."""

    def check(self, case: Case, compare: Compare) -> None:
        """Runs ``case``, calling ``compare`` at least once for each of its steps.

        Raises:
            UnsupportedCase: At once, if the case needs an operator that does not exist yet.
        """
