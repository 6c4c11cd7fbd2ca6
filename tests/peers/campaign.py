"""``peers [--only WORD] [--kafka VERSION] [--by-slices] [--recordings FOLDER] [--write]``: Kafka Streams' own tests.

They are done here again. The tests are always those of the last release that has published them.

What differs is printed with its test; the exit code is 1 then.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.peers import page, sample
from tests.peers.replay import Outcome, outcome
from tests.peers.tracing import test_classes, tests_of, trace

if TYPE_CHECKING:
    from collections.abc import Sequence

_WORKERS = 2


def main(arguments: Sequence[str]) -> int:
    """Runs it."""
    options = argparse.ArgumentParser(allow_abbrev=False, prog="peers", description=__doc__)
    options.add_argument("--only", default="", help="a part of the names of test classes")
    options.add_argument("--kafka", help="a version of the library; if left out, that of tracer/pom.xml")
    options.add_argument("--by-slices", action="store_true", help="also as jobs, with a slice for each record")
    options.add_argument("--recordings", type=Path, help="a folder for them; what is there already is not traced again")
    options.add_argument("--write", action="store_true", help="makes the page and the sample anew")
    given = options.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder: Path = given.recordings or Path(temporary)
        if not (folder / "tests.tsv").exists():
            folder.mkdir(exist_ok=True)
            trace([name for name in test_classes(given.kafka) if given.only in name], folder, given.kafka)
        ran = tests_of(folder)
        print(f"{len(ran)} tests, {dict(Counter(one.status for one in ran))}", flush=True)
        files = sorted(folder.glob("*.json"))
        with ProcessPoolExecutor(_WORKERS) as workers:
            outcomes = list(workers.map(partial(_outcome, by_slices=given.by_slices), files, chunksize=4))
        if given.write:
            page.write(ran, outcomes)
            both = zip(files, outcomes, strict=True)
            sample.write([(one.test, file.read_bytes()) for file, one in both if one.kind == "agrees" and one.compared])
    for one in outcomes:
        if one.kind == "differs":
            print(f"\n{one.test}\n{one.reason}", flush=True)
    kinds = Counter(one.kind for one in outcomes)
    print(f"{len(outcomes)} cases: {dict(kinds)}", flush=True)
    return 1 if kinds["differs"] else 0


def _outcome(file: Path, *, by_slices: bool) -> Outcome:
    return outcome(file.read_bytes(), by_slices=by_slices)
