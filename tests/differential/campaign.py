"""``differential [--programs N] [--seed N] [--kafka VERSION,...]``: new random programs, in Kafka Streams and here.

Of each seed there is also a program of names, of which only the topology's text is compared, plain and optimised; of
every fifth one in which windows close, and one that Kafka Streams optimises.
What differs is made as small as possible and printed with its seed; the exit code is 1 then.
Once mended, its line belongs into ``found.jsonl``. Files are in memory, where that can be (``TMPDIR`` says otherwise):
thousands of small jobs would wait for the disk most of the time.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import secrets
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.differential.closing import program_of as closing_of
from tests.differential.comparison import difference, difference_of_names, smallest
from tests.differential.generator import program_of
from tests.differential.kafka import KafkaStreams, Versions
from tests.differential.naming import program_of as names_of
from tests.differential.optimizing import difference_of as optimizing_difference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.differential.comparison import Difference

_TOLD_EVERY = 250
_CLOSING_EVERY = 5
_MEMORY = Path("/dev/shm")
_ROOT = Path(__file__).parents[2]


def main(arguments: Sequence[str]) -> int:
    """Runs it."""
    options = argparse.ArgumentParser(allow_abbrev=False, prog="differential", description=__doc__)
    options.add_argument("--programs", type=int, default=5_000, help="how many")
    options.add_argument("--seed", type=int, help="of the first one, the others follow; if left out, a new one")
    options.add_argument("--every-slice", type=int, default=20, help="each how manieth is also run as a job")
    options.add_argument("--kafka", help="versions of Kafka Streams, with commas; if left out, that of the pom.xml")
    options.add_argument("--most", type=int, default=5, help="how many differences are made small and shown")
    options.add_argument("--processes", type=int, default=1, help="how many do it, each a part of the programs")
    options.add_argument("--failing", type=float, default=0.1, help="how many programs have functions that fail")
    options.add_argument("--record", type=Path, help="a file to which a line is added that says what was run")
    given = options.parse_args(arguments)
    first = secrets.randbelow(1 << 31) if given.seed is None else given.seed
    if "TMPDIR" not in os.environ and _MEMORY.is_dir():
        tempfile.tempdir = str(_MEMORY)
    if given.processes > 1:
        return _in_parts(arguments, first, given.programs, given.processes)
    print(f"programs {first} to {first + given.programs - 1}", flush=True)
    different: list[int] = []
    with ExitStack() as stack:
        kafka = Versions(
            [
                stack.enter_context(KafkaStreams(Path(stack.enter_context(tempfile.TemporaryDirectory())), version))
                for version in ([None] if given.kafka is None else given.kafka.split(","))
            ]
        )
        for seed in range(first, first + given.programs):
            for shown in _differences(seed, kafka, given):
                different.append(seed)
                print(shown(len(different) <= given.most), flush=True)
            if (seed - first + 1) % _TOLD_EVERY == 0:
                print(f"{seed - first + 1} programs, {len(different)} differ", flush=True)
        if given.record is not None:
            _record(given.record, kafka.names, first, given.programs, different)
    print(f"{given.programs} programs, {len(different)} differ: {different}", flush=True)
    return 1 if different else 0


def _differences(seed: int, kafka: Versions, given: argparse.Namespace) -> Iterator[Callable[[bool], str]]:
    """What differs of the programs of a seed: what shows it, made small or not."""
    by_slices = given.every_slice > 0 and seed % given.every_slice == 0
    found = {f"program {seed}": difference(program_of(seed, failing=given.failing), kafka, ways=3, by_slices=by_slices)}
    if seed % _CLOSING_EVERY == 0:
        closing = closing_of(seed, failing=given.failing)
        found[f"closing windows of {seed}"] = difference(closing, kafka, ways=3)
        found[f"optimising of {seed}"] = optimizing_difference(seed, kafka, failing=given.failing)
    for what, differs in found.items():
        if differs is not None:
            yield partial(_shown, what, differs, kafka)
    named = difference_of_names(names_of(seed), kafka)
    if named is not None:
        yield lambda _: f"\nnames of {seed}: {named}"


def _shown(what: str, found: Difference, kafka: Versions, small: bool) -> str:
    return f"\n{what}: {smallest(found, kafka) if small else found}"


def _record(file: Path, versions: Sequence[str], first: int, programs: int, different: Sequence[int]) -> None:
    """Adds a line of JSON that says what was run, of which commit, and what differed."""
    commit = subprocess.run(
        ["git", "-C", _ROOT, "describe", "--always", "--dirty"], check=True, capture_output=True, text=True
    ).stdout.strip()
    told = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": commit,
        "kafka": list(versions),
        "seeds": [first, first + programs - 1],
        "programs": programs,
        "cpu_seconds": round(sum(os.times()[:4])),
        "differing": sorted(set(different)),
    }
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(told) + "\n")


def _in_parts(arguments: Sequence[str], first: int, programs: int, processes: int) -> int:
    """The same by several processes; 1 if any of them found a difference."""
    bounds = [first + programs * part // processes for part in range(processes + 1)]
    command = [sys.executable, "-P", "-m", "tests.campaigns", "differential", *arguments, "--processes", "1"]
    parts = [
        subprocess.Popen([*command, "--seed", str(start), "--programs", str(end - start)])
        for start, end in itertools.pairwise(bounds)
    ]
    return max([process.wait() for process in parts])
