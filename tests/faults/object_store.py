"""A job whose object store fails by chance: one case for each seed."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from statelib.errors.kinds import RetryableError
from statelib.settings.storage_options import RequestLimits
from tests.faults import subject
from tests.faults.proxy import Fault, FaultProxy, SeededFaults

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.faults.subject import Result
    from tests.storage.s3 import S3Server
    from tests.task.pipeline import Pipeline

CUTS = (*subject.CUTS, None)
PATIENT = RequestLimits(request_timeout_ms=1_000, retries=2, retry_backoff_ms=1, retry_backoff_max_ms=5)
_IMPATIENT = RequestLimits(request_timeout_ms=500, retries=2, retry_backoff_ms=1, retry_backoff_max_ms=5)
_TRIES = 3
"""Of a slice while the store fails; the next one meets a store that works."""

_SHARES = (0.01, 0.03, 0.1, 0.4)


@dataclass(frozen=True)
class Outcome:
    """What a case has come to.

    Attributes:
        seed: Of the case.
        faults: How often each was met.
        failed_tries: What the tries that failed said.
        result: All that a reader or the next run can see.
    """

    seed: int
    faults: Counter[Fault]
    failed_tries: tuple[str, ...]
    result: Result


def run_case(seed: int, server: S3Server, folder: Path) -> Outcome:
    """Replays a job slice by slice over a store that fails, each slice until it has been done.

    Any error but a `RetryableError` ends the case.

    Args:
        seed: Decides how often the store fails, in which ways, and at what.
        server: Has the warehouse, below ``faults/<folder's name>-<seed>``.
        folder: For local state; must be empty.
    """
    chance = random.Random(seed)
    kinds = tuple(chance.sample(list(Fault), chance.randint(1, len(Fault))))
    faults = SeededFaults(seed, chance.choice(_SHARES), kinds)
    root = f"s3://warehouse/faults/{folder.name}-{seed}"
    calm = subject.pipeline(folder, "calm", warehouse=root, options=server.options)
    for part in range(subject.PARTS):
        subject.ingest(calm, part)
    errors = []
    with FaultProxy(server.endpoint, faults, slow_seconds=0.6) as proxy:
        options = server.options | {"aws_endpoint_url": proxy.endpoint} | _IMPATIENT.options()
        for number, cut in enumerate(CUTS):
            for attempt in range(_TRIES):
                try:
                    _run(subject.pipeline(folder, f"s{number}a{attempt}-", warehouse=root, options=options), cut)
                except RetryableError as error:
                    errors.append(str(error))
                    if chance.random() < 0.3:
                        shutil.rmtree(folder, ignore_errors=True)  # the next try is on another host
                else:
                    break
            else:
                _run(subject.pipeline(folder, f"s{number}calm-", warehouse=root, options=server.options), cut)
    return Outcome(seed, proxy.happened, tuple(errors), subject.result_of(calm))


def undisturbed(folder: Path) -> Result:
    """The result on a local disk."""
    run_all(folder, None, {}, "local")
    return subject.result_of(subject.pipeline(folder, "look"))


def run_all(folder: Path, root: str | None, options: Mapping[str, str], attempt: str) -> None:
    """The whole job, or what is left of it."""
    job = subject.pipeline(folder, attempt, warehouse=root, options=options)
    for part in range(subject.PARTS):
        subject.ingest(job, part)
    for cut in CUTS:
        _run(job, cut)


def _run(job: Pipeline, cut: int | None) -> None:
    subject.replay_slice(job, cut)
