"""A driver that sleeps at a named step, also inside a task; another one overtakes it; then it wakes up.

The late one may find that all is done, or end with an error that says who has won. Whatever it wrote nobody sees, and
the maintenance of the next slice removes it.
"""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from typing import TYPE_CHECKING

from statelib.errors.kinds import FencedError
from tests.faults import subject
from tests.faults.campaign.case import Case, Fault, Outcome
from tests.faults.campaign.scenarios import Run, scenario, scenarios
from tests.faults.children import Child
from tests.faults.killer import at_step

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.faults.subject import Result

_FURTHER = "overtaken by two slices"


def _cases(made: Path, seed: int, quick: bool) -> Sequence[tuple[str, int]]:
    """``seed``: at which step of the name."""
    cases = []
    for name in subject.SCENARIOS:
        for step, often in sorted(scenario(made, name).steps.items()):
            some = [1 + seed % often] if quick else sorted({1, 1 + often // 2, often})
            cases += [(f"{name}/{step}/{how}", number) for number in some for how in ("overtaken", _FURTHER)]
    return cases[seed % 6 :: 6] if quick else cases


def _run(case: Case, folder: Path, made: Path) -> Outcome:
    name, step, how = case.what.split("/")
    run = Run(folder, made, name)
    zombie = run.driver(observer=at_step((step, case.seed), lambda: os.kill(os.getpid(), signal.SIGSTOP)))
    zombie.start()
    if not zombie.wait_until_stopped():
        return Outcome(wrong=f"it has not come to {step}")
    try:
        ahead = run.driver().run()
        if not ahead.code and how == _FURTHER:
            ahead = Child(folder, lambda: _further(run)).run()
        before = _look(run)
    finally:
        late = zombie.go_on()
    if ahead.code:
        return Outcome(wrong=f"the one that overtook it ends with {ahead}")
    if late.code and not isinstance(late.error, FencedError):
        return Outcome(wrong=f"the late one ends with {late}")
    note = f"the late one: {late}"
    found = subject.difference(_without_leftovers(before), _without_leftovers(_look(run)))
    if how != _FURTHER:  # there it may have come after the last look at its run, which costs room and nothing else
        found += run.difference(before)
        further = Child(folder, lambda: _further(run)).run()
        if further.code:
            return Outcome(wrong=f"{note}: the next slice ends with {further}")
        found += subject.difference(run.scenario.further, _look(run))
    return Outcome(recovered=0 if found else 1, difference=found, note=note)


def _further(run: Run) -> None:
    subject.drive_further(subject.pipeline(run.root, "further"), run.scenario.name)


def _look(run: Run) -> Result:
    ended = Child(run.folder, lambda: subject.result_of(subject.pipeline(run.root, "look"))).run()
    assert ended.code == 0, ended
    result: Result = ended.value
    return result


def _without_leftovers(result: Result) -> Result:
    return replace(result, others={name: what for name, what in result.others.items() if name != "left behind"})


ZOMBIES = Fault("zombie", "a driver stopped at a step, overtaken, woken: it changes nothing", _cases, _run, scenarios)
