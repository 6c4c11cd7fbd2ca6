"""Runs cases, each in a process of its own, some at a time, and prints what came of them."""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import pickle
import secrets
import shutil
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.faults.calls import why_unsupported
from tests.faults.campaign.case import Case, Outcome
from tests.faults.campaign.catalogue import FAULTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.faults.campaign.case import Fault

_LONGEST_SECONDS = 1800
"""A case that takes longer hangs."""

_MEMORY_DISK = Path("/dev/shm")
_MEMORY_DISK_BYTES = 4 << 30

_COLUMNS = ("cases", "faults", "recovered", "refused", "lost", "duplicated", "differing bytes", "other failures")

# A process that has imported all that cases need and has one thread: cases are forked from it.
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["tests.faults.campaign.catalogue", "numba", "deltalake", "obstore", "rocksdict"])


@dataclass
class Row:
    """What the cases of one fault have come to."""

    fault: Fault
    outcomes: list[Outcome] = field(default_factory=list)
    failures: int = 0
    seconds: float = 0.0

    def add(self, case: Case, outcome: Outcome) -> None:
        """Counts a case, and shows one that failed with what it takes to see it again."""
        self.outcomes.append(outcome)
        if outcome.failed:
            self.failures += 1
            print(f"FAILED {case} ({outcome.note}): {outcome.wrong} {outcome.difference}", flush=True)
            print(f"  again: ./dev campaign faults --case '{case}'", flush=True)

    def __str__(self) -> str:
        return ", ".join(f"{figure} {column}" for figure, column in zip(self.figures, _COLUMNS, strict=True))

    @property
    def figures(self) -> tuple[int, ...]:
        """Cases, faults, recovered, refused, lost, duplicated, differing bytes, other failures."""
        done = self.outcomes
        return (
            len(done),
            sum(one.injected for one in done),
            sum(one.recovered for one in done),
            sum(one.refused for one in done),
            sum(one.difference.lost for one in done),
            sum(one.difference.duplicated for one in done),
            sum(one.difference.differing_bytes for one in done),
            sum(bool(one.wrong or one.difference.others) for one in done),
        )


def main(arguments: Sequence[str]) -> int:
    """Runs a campaign; 1 if anything is not as it should be."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False, prog="./dev campaign faults", description="Faults of every kind."
    )
    parser.add_argument("--seed", type=int, default=None, help="decides everything that is by chance (default: new)")
    parser.add_argument("--quick", action="store_true", help="a sample that takes ten minutes at most on two cores")
    parser.add_argument("--only", nargs="+", choices=list(FAULTS), default=list(FAULTS), help="these faults")
    parser.add_argument("--case", nargs="+", default=None, help="these cases, as a failure has named them")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="so many cases at a time")
    parser.add_argument("--verbose", action="store_true", help="a line for each case")
    given = parser.parse_args(arguments)
    if (why := why_unsupported()) is not None:
        print(f"the campaign cannot run here: {why}", file=sys.stderr)
        return 2
    seed = secrets.randbelow(1 << 31) if given.seed is None else given.seed
    wanted = [Case.parse(text) for text in given.case or ()]
    names = list(dict.fromkeys(case.fault for case in wanted)) or given.only
    print(f"seed {seed}{', quick' if given.quick else ''}", flush=True)
    rows = []
    with tempfile.TemporaryDirectory(prefix="hindstream-faults-", dir=_place()) as folder:
        for name in names:
            fault = FAULTS[name]
            row = Row(fault)
            rows.append(row)
            begin = time.monotonic()
            for case, outcome in _outcomes(fault, Path(folder), seed, given.quick, wanted, given.workers):
                row.add(case, outcome)
                if given.verbose:
                    print(f"{case}: {'FAILED' if outcome.failed else outcome.note}", flush=True)
            row.seconds = time.monotonic() - begin
            print(f"{name} in {row.seconds:.0f} s: {row}", flush=True)
    _print_table(rows)
    return int(any(row.failures for row in rows))


def _place() -> str | None:
    """A disk in memory, where ``fsync`` is free, if there is room; TMPDIR wins."""
    if "TMPDIR" in os.environ or not os.access(_MEMORY_DISK, os.W_OK):
        return None
    return str(_MEMORY_DISK) if shutil.disk_usage(_MEMORY_DISK).free > _MEMORY_DISK_BYTES else None


def _outcomes(
    fault: Fault, folder: Path, seed: int, quick: bool, wanted: Sequence[Case], workers: int
) -> Iterator[tuple[Case, Outcome]]:
    done = 0
    for number in itertools.count():
        place = folder / f"{fault.name}{number}"
        place.mkdir()
        with fault.prepare(place) as prepared:
            cases = [case for case in wanted if case.fault == fault.name] or [
                Case(fault.name, what, one) for what, one in fault.cases(prepared, seed, quick)
            ]
            some = cases[done : done + (fault.batch or len(cases))]
            yield from _run_all(fault, some, place, prepared, max(workers * fault.at_once, 1))
        shutil.rmtree(place, ignore_errors=True)
        done += len(some)
        if done >= len(cases):
            return


def _run_all(
    fault: Fault, cases: Sequence[Case], folder: Path, prepared: Any, workers: int
) -> Iterator[tuple[Case, Outcome]]:
    waiting = list(enumerate(cases))[::-1]
    running: dict[int, tuple[Case, Any, float]] = {}
    while waiting or running:
        while waiting and len(running) < workers:
            number, case = waiting.pop()
            process = _processes.Process(target=_run_case, args=(case, folder / str(number), prepared))
            process.start()
            running[number] = case, process, time.monotonic()
        first_hangs_at = min(since for _, _, since in running.values()) + _LONGEST_SECONDS
        ended = wait([process.sentinel for _, process, _ in running.values()], first_hangs_at - time.monotonic())
        for number, (case, process, since) in list(running.items()):
            hangs = time.monotonic() - since > _LONGEST_SECONDS
            if process.sentinel not in ended and not hangs:
                continue
            if hangs:
                os.killpg(process.pid, signal.SIGKILL)
            process.join()
            del running[number]
            yield case, _read(folder / str(number), process.exitcode, hangs=hangs)
            shutil.rmtree(folder / str(number), ignore_errors=True)


def _run_case(case: Case, folder: Path, prepared: Any) -> None:
    os.setpgid(0, 0)  # so that all that it starts can be ended with it
    folder.mkdir()
    try:
        outcome = FAULTS[case.fault].run(case, folder, prepared)
    except BaseException:  # noqa: BLE001 - a campaign goes on
        outcome = Outcome(wrong=traceback.format_exc())
    (folder / "outcome").write_bytes(pickle.dumps(outcome))


def _read(folder: Path, code: int | None, *, hangs: bool) -> Outcome:
    try:
        outcome = pickle.loads((folder / "outcome").read_bytes())
    except (OSError, EOFError, pickle.UnpicklingError):
        return Outcome(wrong="hangs" if hangs else f"the case's process has ended with {code}")
    assert isinstance(outcome, Outcome)
    return outcome


def _print_table(rows: Sequence[Row]) -> None:
    lines = [("fault", *_COLUMNS, "seconds", "what must hold")]
    lines += [(row.fault.name, *map(str, row.figures), f"{row.seconds:.0f}", row.fault.shape) for row in rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    for number, line in enumerate(lines):
        print("| " + " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) + " |")
        if number == 0:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    _, faults, recovered, refused, lost, duplicated, differing, failed = (
        sum(row.figures[place] for row in rows) for place in range(len(_COLUMNS))
    )
    print(
        f"{faults} faults injected, {recovered} recovered, {refused} refused clearly, {lost} lost records,"
        f" {duplicated} duplicated records, {differing} differing bytes; {failed} other failures"
    )
