"""A driver that may not write: each call that makes, opens, names or deletes a file fails with ``EACCES``.

Once, as where one directory belongs to somebody else, or from then on, as where a disk has become read-only to us. The
driver says so as an error of the configuration, and goes on when it may write again.
"""

from __future__ import annotations

import errno
import random
from typing import TYPE_CHECKING

from statelib.errors import ConfigurationError
from tests.faults import subject
from tests.faults.calls import NEEDS_PERMISSION, Call
from tests.faults.campaign.case import Case, Fault, Outcome
from tests.faults.campaign.scenarios import Run, scenario, scenarios

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

_CASES, _QUICK_CASES = 500, 20


def _cases(made: Path, seed: int, quick: bool) -> Sequence[tuple[str, int]]:
    """``seed``: at which call, from 1."""
    every = [
        (f"{name} {how}", number)
        for name in subject.SCENARIOS
        for number in range(1, 1 + sum(call in NEEDS_PERMISSION for call, _, _ in scenario(made, name).calls))
        for how in ("once", "from then on")
    ]
    return sorted(random.Random(seed).sample(every, _QUICK_CASES if quick else _CASES))


def _denied_at(number: int, *, stays: bool) -> Callable[[Call], int | None]:
    """Fails the n-th call that needs permission; ``stays``: and all that follow."""
    seen = 0

    def before(call: Call) -> int | None:
        nonlocal seen
        if call.name not in NEEDS_PERMISSION:
            return None
        seen += 1
        return errno.EACCES if seen == number or (stays and seen > number) else None

    return before


def _run(case: Case, folder: Path, made: Path) -> Outcome:
    name, _, how = case.what.partition(" ")
    run = Run(folder, made, name)
    ended = run.driver().run_traced(run.root, _denied_at(case.seed, stays=how != "once"))
    if ended.code and not (isinstance(ended.error, ConfigurationError) and ended.error.next_step):
        return Outcome(wrong=f"it ends with {ended}")
    return run.recovered(f"{ended.error}" if ended.code else "it went on")


NO_PERMISSION = Fault(
    "no-permission",
    "a file may not be written: an error that says so, and resumed as undisturbed",
    _cases,
    _run,
    scenarios,
)
