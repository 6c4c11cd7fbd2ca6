"""A driver of which calls fail with an error number instead of being carried out: once, or from one of them on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.faults import subject
from tests.faults.campaign.case import Outcome
from tests.faults.campaign.scenarios import Run, scenario

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from statelib.errors.kinds import HindstreamError
    from tests.faults.calls import Call
    from tests.faults.campaign.case import Case


@dataclass(frozen=True)
class Refusal:
    """What fails, and how.

    Attributes:
        number: The error number.
        is_met: Whether a call may fail so, by its name, path and flags of ``open``.
        told_as: The kind of error that the driver must end with, if it ends.
    """

    number: int
    is_met: Callable[[str, str, int], bool]
    told_as: type[HindstreamError]

    def places(self, made: Path) -> list[tuple[str, int]]:
        """Each scenario, with each of its calls that may fail, from 1."""
        counts = {name: sum(self.is_met(*call) for call in scenario(made, name).calls) for name in subject.SCENARIOS}
        return [(name, number) for name, most in counts.items() for number in range(1, most + 1)]

    def run(self, case: Case, folder: Path, made: Path) -> Outcome:
        """A case: "<scenario> once" or "<scenario> from then on", and at which call as its seed."""
        name, _, how = case.what.partition(" ")
        run = Run(folder, made, name)
        ended = run.driver().run_traced(run.root, self._at(case.seed, stays=how != "once"))
        if ended.code and not (isinstance(ended.error, self.told_as) and ended.error.next_step):
            return Outcome(wrong=f"it ends with {ended}")
        return run.recovered(f"{ended.error}" if ended.code else "it went on")

    def _at(self, place: int, *, stays: bool) -> Callable[[Call], int | None]:
        """Fails the call at ``place``; ``stays``: and all that follow."""
        seen = 0

        def before(call: Call) -> int | None:
            nonlocal seen
            if not self.is_met(call.name, call.path, call.flags):
                return None
            seen += 1
            return self.number if seen == place or (stays and seen > place) else None

        return before
