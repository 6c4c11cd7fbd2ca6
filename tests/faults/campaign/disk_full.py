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

from statelib.errors.kinds import RetryableError
from tests.faults.calls import NEEDS_SPACE, SYNCS
from tests.faults.campaign.case import Fault
from tests.faults.campaign.refused_calls import Refusal
from tests.faults.campaign.scenarios import scenarios

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_QUICK_CASES = 50
_DIARY = ("/LOG", "/LOG.old")


def needs_room(name: str, path: str, flags: int) -> bool:
    """Whether a call may find that the disk is full."""
    if path.endswith(_DIARY) or "/LOG.old." in path:
        return False
    return name in SYNCS or (name in NEEDS_SPACE and (name != "open" or bool(flags & os.O_CREAT)))


_FULL = Refusal(errno.ENOSPC, needs_room, RetryableError)


def _cases(made: Path, seed: int, quick: bool) -> Sequence[tuple[str, int]]:
    """``seed``: at which call, from 1."""
    every = [
        (f"{name} {'once' if (number + seed) % 2 else 'from then on'}", number) for name, number in _FULL.places(made)
    ]
    return sorted(random.Random(seed).sample(every, _QUICK_CASES)) if quick else every


DISK_FULL = Fault(
    "disk-full",
    "no room at each write in turn: a clean error, and resumed as undisturbed",
    _cases,
    _FULL.run,
    scenarios,
)
