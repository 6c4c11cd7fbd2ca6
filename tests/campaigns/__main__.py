"""``python -m tests.campaigns NAME``."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tests.campaigns
from tests.faults import object_store, storage_verbs
from tests.faults.campaign import runner
from tests.storage.s3 import s3_server

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tests.storage.s3 import S3Server

ROOT = Path(__file__).parents[2]


def properties(arguments: Sequence[str]) -> int:
    """Every test that Hypothesis drives, in its profile ``campaign`` (`tests.conftest`)."""
    os.environ["HYPOTHESIS_PROFILE"] = "campaign"
    paths = [argument for argument in arguments if not argument.startswith("-")]
    options = ["-m", "hypothesis", "-n", "auto", "--dist", "load", "-q", "--durations", "10", "-p", "no:cacheprovider"]
    return pytest.main([*options, *arguments, *([] if paths else [str(ROOT / "tests")])])


def invariance(arguments: Sequence[str]) -> int:
    """The whole surface over records of new seeds."""
    runs = int(arguments[0]) if arguments else 10
    os.environ["SURFACE_RECORDS"] = arguments[1] if len(arguments) > 1 else "100"
    for run in range(runs):
        os.environ["SURFACE_SEED"] = seed = str(secrets.randbelow(1 << 31))
        print(
            f"run {run + 1} of {runs}: SURFACE_SEED={seed} SURFACE_RECORDS={os.environ['SURFACE_RECORDS']}", flush=True
        )
        # In a process of its own: the records are made when the test's module is imported.
        test = str(ROOT / "tests" / "task" / "test_invariance.py")
        code = os.spawnv(
            os.P_WAIT,
            sys.executable,
            [sys.executable, "-m", "pytest", "-q", "-x", "-n", "2", "--timeout", "7200", test],
        )
        if code:
            return code
    return 0


_SEEDS_OF_A_SERVER = 10
"""What they write, some hundred MB, is gone with the server."""


def store(arguments: Sequence[str]) -> int:
    """Jobs and storage verbs over an object store that fails by chance."""
    seeds = int(arguments[0]) if arguments else 500
    first = int(arguments[1]) if len(arguments) > 1 else secrets.randbelow(1 << 31)
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        expected = object_store.undisturbed(_made(Path(name) / "undisturbed"))
    for block in range(first, first + seeds, _SEEDS_OF_A_SERVER):
        with tempfile.TemporaryDirectory() as name, s3_server(Path(name)) as server:
            for seed in range(block, min(block + _SEEDS_OF_A_SERVER, first + seeds)):
                wrong = _wrong_with(seed, server, Path(name) / "cases", expected)
                failures += bool(wrong)
                print(f"seed {seed}: {wrong or 'as if nothing had been'}", flush=True)
    print(f"{seeds - failures} passed, {failures} failed")
    return 1 if failures else 0


def _wrong_with(seed: int, server: S3Server, folder: Path, expected: Mapping[str, object]) -> str:
    """What is wrong with the cases of a seed; nothing if all is well."""
    wrong = []
    try:
        storage_verbs.run_case(seed, server, _made(folder))
        shutil.rmtree(folder)
        result = object_store.run_case(seed, server, _made(folder)).result
        wrong += [f"{name} differs" for name in expected if result[name] != expected[name]]
    except Exception:  # noqa: BLE001 - a campaign goes on
        wrong.append(traceback.format_exc())
    shutil.rmtree(folder, ignore_errors=True)
    return ", ".join(wrong)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


CAMPAIGNS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "properties": properties,
    "invariance": invariance,
    "store": store,
    "faults": runner.main,
}


def main(arguments: Sequence[str]) -> int:
    """Runs a campaign; 2 if there is none of that name."""
    if not arguments or arguments[0] not in CAMPAIGNS:
        print(tests.campaigns.__doc__, file=sys.stderr)
        return 2
    return CAMPAIGNS[arguments[0]](arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
