"""A disk that is full at each call in turn that needs room: of Python, RocksDB, Arrow and delta-rs.

The call fails with ``ENOSPC`` instead of being carried out. In every other case the disk stays full until the driver
has ended, so its cleaning up meets a full disk too. ``fsync`` counts: a disk over a network, or one that promises room
before it has it, says so only there. RocksDB's diary (``LOG``) does not: nobody reads it.
"""

from __future__ import annotations

import errno
import os
import random
from typing import TYPE_CHECKING

from statelib.errors import RetryableError
from tests.faults import subject
from tests.faults.calls import NEEDS_SPACE, SYNCS, Call
from tests.faults.campaign.case import Case, Fault, Outcome
from tests.faults.campaign.scenarios import Run, scenario, scenarios

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

_QUICK_CASES = 50
_DIARY = ("/LOG", "/LOG.old")


def needs_room(name: str, path: str, flags: int) -> bool:
    """Whether a call may find that the disk is full."""
    if path.endswith(_DIARY) or "/LOG.old." in path:
        return False
    return name in SYNCS or (name in NEEDS_SPACE and (name != "open" or bool(flags & os.O_CREAT)))


def _cases(made: Path, seed: int, quick: bool) -> Sequence[tuple[str, int]]:
    """``seed``: at which call, from 1."""
    calls = {name: sum(needs_room(*call) for call in scenario(made, name).calls) for name in subject.SCENARIOS}
    every = [
        (f"{name} {how}", number)
        for name, most in calls.items()
        for number in range(1, most + 1)
        for how in ["once" if (number + seed) % 2 else "from then on"]
    ]
    return sorted(random.Random(seed).sample(every, _QUICK_CASES)) if quick else every


def full_at(number: int, *, stays: bool) -> Callable[[Call], int | None]:
    """Fails the n-th call that needs room; ``stays``: and all that follow."""
    seen = 0

    def before(call: Call) -> int | None:
        nonlocal seen
        if not needs_room(call.name, call.path, call.flags):
            return None
        seen += 1
        return errno.ENOSPC if seen == number or (stays and seen > number) else None

    return before


def _run(case: Case, folder: Path, made: Path) -> Outcome:
    name, _, how = case.what.partition(" ")
    run = Run(folder, made, name)
    ended = run.driver().run_traced(run.root, full_at(case.seed, stays=how != "once"))
    if ended.code and not (isinstance(ended.error, RetryableError) and ended.error.next_step):
        return Outcome(wrong=f"it ends with {ended}")
    return run.recovered(f"{ended.error}" if ended.code else "it went on")


DISK_FULL = Fault(
    "disk-full", "no room at each write in turn: a clean error, and resumed as undisturbed", _cases, _run, scenarios
)
