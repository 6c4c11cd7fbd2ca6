"""A driver that may not write: each call that makes, opens, names or deletes a file fails with ``EACCES``.

Once, as where one directory belongs to somebody else, or from then on, as where a disk has become read-only to us. The
driver says so as an error of the configuration, and goes on when it may write again.
"""

from __future__ import annotations

import errno
import random
from typing import TYPE_CHECKING

from statelib.errors.kinds import ConfigurationError
from tests.faults.calls import NEEDS_PERMISSION
from tests.faults.campaign.case import Fault
from tests.faults.campaign.refused_calls import Refusal
from tests.faults.campaign.scenarios import scenarios

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_CASES, _QUICK_CASES = 500, 20


_DENIED = Refusal(errno.EACCES, lambda name, _, __: name in NEEDS_PERMISSION, ConfigurationError)


def _cases(made: Path, seed: int, quick: bool) -> Sequence[tuple[str, int]]:
    """``seed``: at which call, from 1."""
    every = [(f"{name} {how}", number) for name, number in _DENIED.places(made) for how in ("once", "from then on")]
    return sorted(random.Random(seed).sample(every, _QUICK_CASES if quick else _CASES))


NO_PERMISSION = Fault(
    "no-permission",
    "a file may not be written: an error that says so, and resumed as undisturbed",
    _cases,
    _DENIED.run,
    scenarios,
)
