"""A driver that gets no more memory and no more threads from some step on, or a few MB only.

Python, numpy and Arrow say so, which becomes a clean error. Code of others does what it does: RocksDB, delta-rs and the
dynamic linker end the process, and a thread of delta-rs that could not be started may be waited for without end, which
an alarm ends here. (What a host does by itself, the kernel's `SIGKILL`, is in ``kill``.) However it ends, the next
driver goes on.
"""

from __future__ import annotations

import random
import resource
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from statelib.errors.exhausted import exhaustion_told
from statelib.errors.kinds import RetryableError
from tests.faults import subject
from tests.faults.campaign.case import Case, Fault, Outcome
from tests.faults.campaign.scenarios import Run, scenarios
from tests.faults.children import Child
from tests.faults.killer import at_step

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST_SECONDS = 60
_ENDED_BY_THE_LINKER = 127
"""What glibc's dynamic linker ends a process with where a library that is loaded late gets no memory."""

_ENDED_BY_OTHERS = {-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGALRM, _ENDED_BY_THE_LINKER}
_LEFT_BYTES = (0, 1 << 20, 4 << 20, 16 << 20)


def _cases(_: Path, seed: int, quick: bool) -> Sequence[tuple[str, int]]:
    return [("no more", seed + number) for number in range(10 if quick else 200)]


def _run(case: Case, folder: Path, made: Path) -> Outcome:
    chance = random.Random(case.seed)
    run = Run(folder, made, chance.choice(subject.CHOSEN_BY_SEED))
    step, often = chance.choice(sorted(run.scenario.steps.items()))
    left_bytes = chance.choice(_LEFT_BYTES)
    work = run.work(at_step((step, chance.randint(1, often)), lambda: _limit(left_bytes)))

    def limited() -> None:
        signal.alarm(_LONGEST_SECONDS)
        with exhaustion_told():
            work()

    ended = Child(folder, limited).run()
    clean = isinstance(ended.error, RetryableError) and ended.error.next_step
    if ended.code not in {0, *_ENDED_BY_OTHERS} and not clean:
        return Outcome(wrong=f"from {step} on {left_bytes} bytes: it ends with {ended}")
    return run.recovered(f"from {step} on {left_bytes >> 20} MiB: {ended}")


def _limit(left_bytes: int) -> None:
    used_bytes = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used_bytes + left_bytes, resource.RLIM_INFINITY))


MEMORY = Fault("memory", "no more memory or threads from a step on: resumed as undisturbed", _cases, _run, scenarios)
