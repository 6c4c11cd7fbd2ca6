"""``python -m tests.campaigns NAME``."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import tests.campaigns
from tests.campaigns import airflow_chaos, bare_machine, kafka_versions, oldest_airflow, stack, versions, wheel
from tests.campaigns.placement import run as placement
from tests.differential import campaign as differential
from tests.differential import invariance as programs
from tests.faults.campaign import runner
from tests.peers import campaign as peers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROOT = Path(__file__).parents[2]


def properties(arguments: Sequence[str]) -> int:
    """Every test that Hypothesis drives, in its profile ``campaign`` (`tests.conftest`)."""
    os.environ["HYPOTHESIS_PROFILE"] = "campaign"
    paths = [argument for argument in arguments if not argument.startswith("-")]
    options = ["-m", "hypothesis", "-n", "auto", "--dist", "load", "-q", "--durations", "10", "-p", "no:cacheprovider"]
    return _pytest([*options, *arguments, *([] if paths else [str(ROOT / "tests")])])


def long(arguments: Sequence[str]) -> int:
    """The tests that a plain run leaves out (marked ``long``)."""
    options = ["-m", "long", "-n", "2", "--dist", "load", "--durations", "10", "-p", "no:cacheprovider"]
    paths = [argument for argument in arguments if not argument.startswith("-")]
    return _pytest([*options, *arguments, *([] if paths else [str(ROOT / "tests")])])


def invariance(arguments: Sequence[str]) -> int:
    """The whole surface over records of new seeds; with ``--programs N``, random programs instead."""
    if arguments and arguments[0].startswith("-"):
        return programs.main(arguments)
    runs = int(arguments[0]) if arguments else 10
    os.environ["SURFACE_RECORDS"] = arguments[1] if len(arguments) > 1 else "100"
    os.environ["SURFACE_SLICES"] = "12"
    for run in range(runs):
        os.environ["SURFACE_SEED"] = seed = str(secrets.randbelow(1 << 31))
        print(
            f"run {run + 1} of {runs}: SURFACE_SEED={seed} SURFACE_RECORDS={os.environ['SURFACE_RECORDS']}", flush=True
        )
        tests = [str(ROOT / "tests" / "task" / f"{name}.py") for name in ("test_invariance", "test_windowed_keys")]
        code = _pytest(["-m", "", "-q", "-x", "-n", "2", "--timeout", "7200", *tests])
        if code:
            return code
    return 0


def _pytest(arguments: Sequence[str]) -> int:
    """In a process of its own, with this environment: campaigns import what pytest has to import first."""
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode


CAMPAIGNS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "properties": properties,
    "long": long,
    "invariance": invariance,
    "faults": runner.main,
    "airflow-chaos": airflow_chaos.main,
    "oldest-airflow": oldest_airflow.main,
    "stack": stack.main,
    "bare-machine": bare_machine.main,
    "wheel": wheel.main,
    "versions": versions.main,
    "kafka-versions": kafka_versions.main,
    "placement": placement.main,
    "differential": differential.main,
    "peers": peers.main,
}


def main(arguments: Sequence[str]) -> int:
    """Runs a campaign; 2 if there is none of that name."""
    if not arguments or arguments[0] not in CAMPAIGNS:
        print(tests.campaigns.__doc__, file=sys.stderr)
        return 2
    return CAMPAIGNS[arguments[0]](arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
