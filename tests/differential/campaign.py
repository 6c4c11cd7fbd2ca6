"""``differential [--programs N] [--seed N] [--kafka VERSION]``: new random programs, in Kafka Streams and here.

Of each seed there is also a program of names, of which only the topology's text is compared, plain and optimised; of
every fifth one in which windows close, and one that Kafka Streams optimises.
What differs is made as small as possible and printed with its seed; the exit code is 1 then.
Once mended, its line belongs into ``found.jsonl``. Files are in memory, where that can be (``TMPDIR`` says otherwise):
thousands of small jobs would wait for the disk most of the time.
"""

from __future__ import annotations

import argparse
import itertools
import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.differential.closing import program_of as closing_of
from tests.differential.comparison import difference, difference_of_names, smallest
from tests.differential.generator import program_of
from tests.differential.kafka import KafkaStreams
from tests.differential.naming import program_of as names_of
from tests.differential.optimizing import difference_of as optimizing_difference

if TYPE_CHECKING:
    from collections.abc import Sequence

_TOLD_EVERY = 250
_CLOSING_EVERY = 5
_MEMORY = Path("/dev/shm")


def main(arguments: Sequence[str]) -> int:
    """Runs it."""
    options = argparse.ArgumentParser(allow_abbrev=False, prog="differential", description=__doc__)
    options.add_argument("--programs", type=int, default=5_000, help="how many")
    options.add_argument("--seed", type=int, help="of the first one, the others follow; if left out, a new one")
    options.add_argument("--every-slice", type=int, default=20, help="each how manieth is also run as a job")
    options.add_argument("--kafka", help="a version of Kafka Streams; if left out, that of streams-driver/pom.xml")
    options.add_argument("--most", type=int, default=5, help="how many differences are made small and shown")
    options.add_argument("--processes", type=int, default=1, help="how many do it, each a part of the programs")
    options.add_argument("--failing", type=float, default=0.1, help="how many programs have functions that fail")
    given = options.parse_args(arguments)
    first = secrets.randbelow(1 << 31) if given.seed is None else given.seed
    if "TMPDIR" not in os.environ and _MEMORY.is_dir():
        tempfile.tempdir = str(_MEMORY)
    if given.processes > 1:
        return _in_parts(arguments, first, given.programs, given.processes)
    print(f"programs {first} to {first + given.programs - 1}", flush=True)
    different = []
    with tempfile.TemporaryDirectory() as folder, KafkaStreams(Path(folder), given.kafka) as kafka:
        for seed in range(first, first + given.programs):
            by_slices = given.every_slice > 0 and seed % given.every_slice == 0
            found = difference(program_of(seed, failing=given.failing), kafka, ways=3, by_slices=by_slices)
            if found is not None:
                different.append(seed)
                shown = smallest(found, kafka) if len(different) <= given.most else found
                print(f"\nprogram {seed}: {shown}", flush=True)
            closing = (
                difference(closing_of(seed, failing=given.failing), kafka, ways=3)
                if seed % _CLOSING_EVERY == 0
                else None
            )
            if closing is not None:
                different.append(seed)
                print(f"\nclosing windows of {seed}: {smallest(closing, kafka)}", flush=True)
            optimized = (
                optimizing_difference(seed, kafka, failing=given.failing) if seed % _CLOSING_EVERY == 0 else None
            )
            if optimized is not None:
                different.append(seed)
                print(f"\noptimising of {seed}: {smallest(optimized, kafka)}", flush=True)
            named = difference_of_names(names_of(seed), kafka)
            if named is not None:
                different.append(seed)
                print(f"\nnames of {seed}: {named}", flush=True)
            if (seed - first + 1) % _TOLD_EVERY == 0:
                print(f"{seed - first + 1} programs, {len(different)} differ", flush=True)
    print(f"{given.programs} programs, {len(different)} differ: {different}", flush=True)
    return 1 if different else 0


def _in_parts(arguments: Sequence[str], first: int, programs: int, processes: int) -> int:
    """The same by several processes; 1 if any of them found a difference."""
    bounds = [first + programs * part // processes for part in range(processes + 1)]
    command = [sys.executable, "-P", "-m", "tests.campaigns", "differential", *arguments, "--processes", "1"]
    parts = [
        subprocess.Popen([*command, "--seed", str(start), "--programs", str(end - start)])
        for start, end in itertools.pairwise(bounds)
    ]
    return max([process.wait() for process in parts])
