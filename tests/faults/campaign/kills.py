"""``kill -9`` of the driver, before any call that changes a file, and at every named step."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.faults import subject
from tests.faults.calls import WRITES, Call, Kill
from tests.faults.campaign.case import Case, Fault, Outcome
from tests.faults.campaign.scenarios import Run, scenario, scenarios
from tests.faults.killer import killer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

MOMENT = "moment"


def kill_before(number: int, counted: Callable[[Call], bool]) -> Callable[[Call], Kill | None]:
    """Kills before the n-th call that counts, from 1."""
    left = number

    def before(call: Call) -> Kill | None:
        nonlocal left
        left -= counted(call)
        return Kill.HERE if left == 0 and counted(call) else None

    return before


def counts(call: Call) -> bool:
    """Changes of names and of what is durable; most writes are a few bytes of a log."""
    return call.name not in WRITES


def _cases(made: Path, seed: int, quick: bool) -> Sequence[tuple[str, int]]:
    moments = [(MOMENT, seed + number) for number in range(20 if quick else 1_000)]
    cases = []
    for name in subject.SCENARIOS:
        for step, often in sorted(scenario(made, name).steps.items()):
            cases += [(f"{name}/{step}", number) for number in ([1] if quick else sorted({1, 1 + often // 2, often}))]
    return moments + (cases[seed % 2 :: 2] if quick else cases)


def _run(case: Case, folder: Path, made: Path) -> Outcome:
    return _at_a_moment(case, folder, made) if case.what == MOMENT else _at_a_step(case, folder, made)


def _at_a_step(case: Case, folder: Path, made: Path) -> Outcome:
    """``seed`` says at which of the steps of that name."""
    name, step = case.what.split("/")
    run = Run(folder, made, name)
    ended = run.driver(observer=killer((step, case.seed))).run()
    if not ended.killed:
        return Outcome(wrong=f"not killed: {ended}")
    return run.recovered(f"at {step}")


def _at_a_moment(case: Case, folder: Path, made: Path) -> Outcome:
    """Once or several times in a row, then it is let go."""
    chance = random.Random(case.seed)
    run = Run(folder, made, chance.choice(subject.CHOSEN_BY_SEED))
    everything = chance.random() < 0.3
    counted: Callable[[Call], bool] = (lambda _: True) if everything else counts
    most = sum(everything or name not in WRITES for name, *_ in run.scenario.calls)
    kills = 0
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        ended = run.driver().run_traced(run.root, kill_before(chance.randint(1, most), counted))
        kills += ended.killed
        if not ended.killed:  # it had less to do than an undisturbed run
            if ended.code:
                return Outcome(wrong=f"it ends with {ended}")
            break
    return run.recovered(f"{kills} times", injected=kills)


KILLS = Fault(
    "kill", "kill -9 of a driver at random moments and at every step: output and state equal", _cases, _run, scenarios
)
