"""The power goes at any moment, and takes with it what was not synced: of the warehouse and of the host's state."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.faults import subject
from tests.faults.calls import WRITES
from tests.faults.campaign.case import Case, Fault, Outcome
from tests.faults.campaign.kills import counts, kill_before
from tests.faults.campaign.scenarios import Run, is_refusal, scenarios
from tests.faults.children import Child
from tests.faults.disk import Disk

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.faults.calls import Call, Kill


def _cases(_: Path, seed: int, quick: bool) -> Sequence[tuple[str, int]]:
    return [("cut", seed + number) for number in range(30 if quick else 500)]


def _run(case: Case, folder: Path, made: Path) -> Outcome:
    chance = random.Random(case.seed)
    run = Run(folder, made, chance.choice(subject.CHOSEN_BY_SEED))
    everything = chance.random() < 0.3
    calls = sum(everything or name not in WRITES for name, *_ in run.scenario.calls)
    (folder / "kept").mkdir()
    disk = Disk(run.root, folder / "kept")

    def before(call: Call) -> Kill | None:
        if (answer := kill(call)) is not None:
            return answer
        disk.before(call)
        return None

    for _ in range(chance.choice((1, 1, 2))):  # what a killed driver has not synced, the next one builds upon
        kill = kill_before(chance.randint(1, calls), (lambda _: True) if everything else counts)
        ended = run.driver().run_traced(run.root, before, disk.after)
        if not ended.killed and ended.code:
            return Outcome(wrong=f"it ends with {ended}")
    lost = disk.lose_power(chance)
    found = Child(folder, lambda: subject.promised(subject.pipeline(run.root, "look"))).run()
    if is_refusal(found.error):
        return Outcome(refused=1, note=f"{lost}: {found.error}")
    if found.code:
        return Outcome(wrong=f"{lost}: looked at it ends with {found}")
    forgotten = [f"{what} {number}" for what, number in run.promised().items() if found.value[what] < number]
    if forgotten:
        return Outcome(wrong=f"{lost}: was durable, and is gone: {', '.join(forgotten)}")
    return run.recovered(lost, may_refuse=True)


POWER = Fault("power", "unsynced names and bytes lost: opens at the last commit, or refuses", _cases, _run, scenarios)
