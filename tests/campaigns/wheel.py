"""The wheel as a user installs it: ``pip install 'hindstream[demo]'`` into a new environment, then ``hindstream demo``.

Everything is downloaded, by pip and with its settings; the Java is the one that comes with the packages.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

_OURS = re.compile(r"(HINDSTREAM|AIRFLOW|PYSPARK|NUMBA|SPARK|GX)_|JAVA_HOME$|VIRTUAL_ENV$|PYTHON")
YEAR = re.compile(r"^ year +369,789 ", re.MULTILINE)
"""The last line of the demo's summary."""


def build_wheel(folder: Path) -> Path:
    """Builds the wheel of this checkout, with the packages of this environment: nothing is downloaded."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT]
    subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    (wheel,) = folder.glob("hindstream-*.whl")
    return wheel


def bare_environ(home: Path) -> dict[str, str]:
    """This process's environment without what ``./dev`` and others put there for Hindstream, and without a Java."""
    kept = {name: value for name, value in os.environ.items() if not _OURS.match(name)}
    return kept | {"HOME": str(home), "PATH": "/usr/bin:/bin", "HINDSTREAM_JAVA": "bundled"}


def run_demo(environment: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """``hindstream demo`` of an environment, in an empty folder that is the user's home, too."""
    folder.mkdir(parents=True)
    return subprocess.run(
        [environment / "bin" / "hindstream", "demo"],
        cwd=folder,
        env=bare_environ(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def main(arguments: Sequence[str]) -> int:
    """Installs and runs; 1 if the demo does not end as it should."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False, prog="./dev campaign wheel", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--extra", default="demo", help="what is installed with it (default: demo)")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="wheel-"))
    try:
        return _try(folder, options.extra)
    finally:
        shutil.rmtree(folder)


def _try(folder: Path, extra: str) -> int:
    wheel, environment = build_wheel(folder), folder / "venv"
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB", flush=True)
    venv.create(environment, with_pip=True)
    begun = time.monotonic()
    pip = [environment / "bin" / "python", "-m", "pip", "--no-input", "--disable-pip-version-check", "install"]
    subprocess.run([*pip, "--quiet", f"hindstream[{extra}] @ {wheel.as_uri()}"], check=True)
    used = int(subprocess.check_output(["du", "--summarize", "--block-size=MB", environment]).split(b"M")[0])
    print(f"pip install 'hindstream[{extra}]': {time.monotonic() - begun:.0f} s, {used} MB on disk", flush=True)
    for run in ("first", "second"):
        begun = time.monotonic()
        done = run_demo(environment, folder / run)
        print(f"hindstream demo, {run}: exit code {done.returncode} after {time.monotonic() - begun:.0f} s", flush=True)
        if done.returncode != 0 or not YEAR.search(done.stdout):
            print(done.stdout)
            return 1
    print(done.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
