"""The oldest Airflow that is supported: its schedulers, backfills, bundles and triggers, in an environment of its own.

That has the packages of requirements.lock, but for those of oldest-airflow.lock. Airflow's tests run in it, the long
ones too, and then ``airflow-chaos`` with Celery and PostgreSQL, where this machine has them.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

from tests.campaigns.airflow_servers import REDIS
from tests.campaigns.versions import install_uv
from tests.conftest import ROOT
from tests.postgres import PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Sequence

LOCK = Path(__file__).with_name("oldest-airflow.lock")
"""Its packages, where they are others than those of requirements.lock."""

_TESTS = ("tests/hindstream/airflow",)


def main(arguments: Sequence[str]) -> int:
    """Makes the environment and runs all; 1 if anything fails."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False,
        prog="./dev campaign oldest-airflow",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("tests", nargs="*", default=_TESTS, help=f"what pytest runs (default: {' '.join(_TESTS)})")
    parser.add_argument("--slices", type=int, default=10, help="of airflow-chaos; 0: without it (default: 10)")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="oldest-airflow-", ignore_cleanup_errors=True) as folder:
        python, environ = _environment(Path(folder))
        version = [python, "-c", "import platform, airflow; print(airflow.__version__, platform.python_version())"]
        airflow, of_python = subprocess.check_output(version, env=environ, text=True).split()[-2:]
        print(f"Airflow {airflow}, Python {of_python}", flush=True)
        # What the oldest packages only warn of is no failure here.
        pytest = [
            "pytest",
            "-m",
            "",
            "-q",
            "-p",
            "no:xdist",
            "-p",
            "no:cacheprovider",
            "-W",
            "default",
            "--durations",
            "5",
        ]
        runs = [[*pytest, *given.tests]]
        if given.slices and all(map(which, (REDIS, *PROGRAMS))):
            runs.append(["tests.campaigns", "airflow-chaos", "--celery", "--slices", str(given.slices)])
        elif given.slices:
            print(f"without Celery: this machine lacks one of {', '.join((REDIS, *PROGRAMS))}")
        codes = [_run([python, "-m", *run], environ) for run in runs]
    return int(any(codes))


def _run(command: Sequence[str | Path], environ: dict[str, str]) -> int:
    """Runs it, and says how long that took."""
    began = time.monotonic()
    code = subprocess.run(command, cwd=ROOT, env=environ, check=False).returncode
    print(f"{command[2]}: exit code {code} after {(time.monotonic() - began) / 60:.0f} min", flush=True)
    return code


def _environment(folder: Path) -> tuple[Path, dict[str, str]]:
    """Its Python, and what the environment of processes has to be."""
    uv, place = install_uv(folder), folder / "venv"
    into = [uv, "pip", "install", "--quiet", "--python", place, "--no-deps"]
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, place], check=True)
    for lock in (_without_its_packages(folder), LOCK):
        subprocess.run([*into, "--require-hashes", "-r", lock], check=True)
    subprocess.run([*into, "--no-build-isolation", "--editable", ROOT], check=True)
    subprocess.run([uv, "pip", "check", "--quiet", "--python", place], check=True)
    programs = place / "bin"
    return programs / "python", os.environ | {
        "VIRTUAL_ENV": str(place),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYSPARK_PYTHON": str(programs / "python"),
        "PYSPARK_DRIVER_PYTHON": str(programs / "python"),
        "AIRFLOW_HOME": str(folder / "airflow"),
    }


def _without_its_packages(folder: Path) -> Path:
    """requirements.lock without what the other lock has."""
    entry = re.compile(r"^([a-z0-9-]+)==(?:.*\\\n)*.*\n", re.MULTILINE)
    others = set(entry.findall(LOCK.read_text(encoding="utf-8")))
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    rest = folder / "requirements.lock"
    rest.write_text(entry.sub(lambda found: "" if found[1] in others else found[0], text), encoding="utf-8")
    return rest


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
