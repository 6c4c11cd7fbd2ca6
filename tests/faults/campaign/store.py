"""An object store that refuses, breaks, delays and cuts; and creates that landed although the client was told not."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from statelib.errors.kinds import RetryableError
from tests.faults import object_store, storage_verbs, subject
from tests.faults.campaign.case import Case, Fault, Outcome
from tests.faults.proxy import Fault as Answer
from tests.faults.proxy import FaultProxy, First
from tests.faults.subject import Result
from tests.storage.s3 import S3Server, s3_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_SEEDS_OF_A_SERVER = 20
"""What they write, some hundred MB, is gone with the server."""

_CARRIED_OUT = (Answer.FAILED, Answer.LOST, Answer.SLOW, Answer.CUT)
_CREATED = ("plan.json", "staged.json", "audit.json", "commits/0", "_delta_log/0", "head.json", "expired", "/state/")
"""What a run stores, as a part of the path: the first of each is met."""


@dataclass(frozen=True)
class _Prepared:
    server: S3Server
    expected: Result


@contextmanager
def _prepare(folder: Path) -> Iterator[_Prepared]:
    (folder / "undisturbed").mkdir()
    expected = object_store.undisturbed(folder / "undisturbed")
    (folder / "server").mkdir()
    with s3_server(folder / "server") as server:
        yield _Prepared(server, expected)


def _cases(_: _Prepared, seed: int, quick: bool) -> Sequence[tuple[str, int]]:
    return [("job and verbs", seed + number) for number in range(5 if quick else 500)]


def _run(case: Case, folder: Path, prepared: _Prepared) -> Outcome:
    verbs = storage_verbs.run_case(case.seed, prepared.server, _made(folder / "verbs"))
    job = object_store.run_case(case.seed, prepared.server, _made(folder / f"job{case.seed}"))
    injected = verbs.faults.total() + job.faults.total()
    refused = verbs.failed.total() + len(job.failed_tries)
    found = subject.difference(prepared.expected, job.result)
    return Outcome(
        injected,
        recovered=0 if found else max(injected - refused, 0),
        refused=min(refused, injected),
        difference=found,
        note=f"{injected} faults, {refused} calls and tries ended in an error",
    )


_TRIES = 5


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def _ambiguous_cases(_: _Prepared, seed: int, quick: bool) -> Sequence[tuple[str, int]]:
    every = [(f"{words} {answer.name}", number) for words in _CREATED for number, answer in enumerate(_CARRIED_OUT)]
    return every[seed % 4 :: 4] if quick else every


def _ambiguous(case: Case, folder: Path, prepared: _Prepared) -> Outcome:
    """The first request that stores such an object is carried out, and answered otherwise; tried again if need be."""
    words, _, name = case.what.rpartition(" ")
    first = First("PUT", words, Answer[name])
    tries = 0
    root = f"s3://warehouse/ambiguous/{case.seed}-{words.strip('/').replace('/', '-')}"
    with FaultProxy(prepared.server.endpoint, first, slow_seconds=1.5) as proxy:
        options = prepared.server.options | {"aws_endpoint_url": proxy.endpoint} | object_store.PATIENT.options()
        while True:
            tries += 1
            try:
                object_store.run_all(_made(folder / f"try{tries}"), root, options, f"t{tries}-")
            except RetryableError:
                if tries > _TRIES:  # there was one fault only, but a busy machine's store may be late by itself
                    raise
            else:
                break
    result = subject.result_of(
        subject.pipeline(folder / "look", "look", warehouse=root, options=prepared.server.options)
    )
    found = subject.difference(prepared.expected, result)
    wrong = "" if first.met else f"nothing was stored at {words}"
    return Outcome(recovered=0 if found or wrong else 1, difference=found, wrong=wrong, note=f"done in {tries} tries")


STORE = Fault(
    "store",
    "errors, time-outs, cut answers: retried, or a clean error and nothing half-done",
    _cases,
    _run,
    _prepare,
    _SEEDS_OF_A_SERVER,
    at_once=4,
)
AMBIGUOUS = Fault(
    "ambiguous", "landed, then an error is returned: made exactly once", _ambiguous_cases, _ambiguous, _prepare
)
