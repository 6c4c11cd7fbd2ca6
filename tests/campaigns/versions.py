"""Other Pythons and other versions of packages: each in a new environment, in which the demo and tests run.

``--packages`` takes sets by name, and single versions to try beyond the ranges of ``pyproject.toml``:

    locked            those of requirements.lock
    lowest            the lowest that pyproject.toml allows, of what it names
    newest            the newest that pyproject.toml allows
    pyspark==4.2.1    this one, whatever pyproject.toml says, and the newest of all others; also several: a==1,b==2

``--record`` writes what came of it into the table of docs/tested-versions.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tests.campaigns.wheel import YEAR, bare_environ, build_wheel, run_demo
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
TABLE = ROOT / "docs" / "tested-versions.md"
SHOWN = {
    "pyspark": "Spark",
    "apache-airflow": "Airflow",
    "great-expectations": "Great Expectations",
    "deltalake": "deltalake",
    "pyarrow": "pyarrow",
    "numba": "numba",
    "obstore": "obstore",
    "rocksdict": "rocksdict",
}
"""The packages whose versions the table shows, by their columns."""
COLUMNS = ("Python", "packages", *SHOWN.values(), "demo", "tests")
_TESTS = (
    "tests/formats",
    "tests/golden",
    "tests/hindstream/spark/phases/test_pipeline.py",
    "tests/hindstream/airflow/test_replay.py",
)
"""Formats, the answers of Kafka Streams, the phases on Spark, and DAGs."""
_TOOLS = ("cryptography", "hypothesis", "opentelemetry-sdk", "pytest", "pytest-timeout")
"""What the tests need; of the lock in each try."""


@dataclass(frozen=True)
class Row:
    """What came of a try."""

    python: str
    packages: str
    versions: tuple[str, ...] = ()
    demo: str = "-"
    tests: str = "-"

    @property
    def works(self) -> bool:
        return self.demo == "ok" and re.fullmatch(r"\d+ passed", self.tests) is not None

    def cells(self) -> list[str]:
        return [self.python, self.packages, *(self.versions or ("-",) * len(SHOWN)), self.demo, self.tests]


def main(arguments: Sequence[str]) -> int:
    """Tries each Python with each set of packages; 1 if anything does not work, 2 if a Python is not there."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False,
        prog="./dev campaign versions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--python", nargs="+", default=PYTHONS, help=f"versions or paths (default: {PYTHONS})")
    parser.add_argument("--packages", nargs="+", default=("locked", "lowest", "newest"), help="see above")
    parser.add_argument("--tests", nargs="+", default=_TESTS, help="what pytest runs in each")
    parser.add_argument("--record", action="store_true", help=f"write into {TABLE.relative_to(ROOT)}")
    parser.add_argument("--logs", type=Path, help="a folder for what is printed (default: a new one)")
    options = parser.parse_args(arguments)
    logs: Path = options.logs or Path(tempfile.mkdtemp(prefix="versions-logs-"))
    logs.mkdir(parents=True, exist_ok=True)
    pythons = {name: find_python(name) for name in options.python}
    rows = []
    with tempfile.TemporaryDirectory(prefix="versions-", ignore_cleanup_errors=True) as folder:
        trial = _Trial(Path(folder), logs.absolute(), options.tests)
        for python in filter(None, pythons.values()):
            for packages in options.packages:
                rows.append(trial.run(python, packages))
                print(_line(rows[-1].cells()), flush=True)
                if options.record:
                    record(rows[-1:])
    missing = [name for name, python in pythons.items() if python is None]
    print(f"logs: {logs}")
    if missing:
        print(f"not on this machine: Python {', '.join(missing)}")
    return 1 if not all(row.works for row in rows) else 2 if missing else 0


def find_python(name: str) -> str | None:
    """A Python by its version or its path: on ``PATH``, or of pyenv."""
    candidates = [name, f"python{name}", *Path.home().glob(f".pyenv/versions/{name}.*/bin/python{name}")]
    for candidate in candidates:
        program = shutil.which(candidate)
        if program and subprocess.run([program, "-c", ""], capture_output=True, check=False).returncode == 0:
            return program
    return None


def install_uv(folder: Path) -> Path:
    """Installs uv, of the version that ``./dev lock`` takes, into ``folder / "uv"``."""
    pinned = re.search(r"^UV_VERSION=(\S+)", (ROOT / "dev").read_text(encoding="utf-8"), re.MULTILINE)
    assert pinned is not None
    subprocess.run([sys.executable, "-m", "venv", folder / "uv"], check=True)
    pip = [folder / "uv" / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, f"uv=={pinned[1]}"], check=True)
    return folder / "uv" / "bin" / "uv"


class _Trial:
    def __init__(self, folder: Path, logs: Path, tests: Sequence[str]) -> None:
        self._folder, self._logs, self._tests = folder, logs, tests
        self._wheel = build_wheel(folder)
        self._uv = install_uv(folder)

    def run(self, python: str, packages: str) -> Row:
        """Makes the environment, runs the demo and the tests in it, and removes it."""
        version = subprocess.check_output([python, "-c", "import platform as p; print(p.python_version())"], text=True)
        row = Row(version.strip(), packages)
        name = f"{row.python}-{packages}"
        environment = self._folder / name
        with (self._logs / f"{name}.log").open("w", encoding="utf-8") as log:
            try:
                self._install(python, packages, environment, log)
            except subprocess.CalledProcessError:
                return replace(row, demo="cannot be installed")
            listed = json.loads(subprocess.check_output(self._pip("list", environment, "--format", "json")))
            there = {package["name"]: package["version"] for package in listed}
            row = replace(row, versions=tuple(there.get(shown, "-") for shown in SHOWN))
            row = replace(row, demo=self._demo(environment, log))
            row = replace(row, tests=self._run_tests(environment, log))
        shutil.rmtree(environment)
        shutil.rmtree(environment.with_name(f"{name}-home"), ignore_errors=True)
        return row

    def _pip(self, verb: str, environment: Path, *arguments: object) -> list[str]:
        return [str(self._uv), "pip", verb, "--python", str(environment), *map(str, arguments)]

    def _install(self, python: str, packages: str, environment: Path, log: TextIO) -> None:
        def run(*command: object) -> None:
            subprocess.run([*map(str, command)], check=True, cwd=ROOT, stdout=log, stderr=log)

        run(self._uv, "venv", "--quiet", "--python", python, environment)
        if packages == "locked":
            run(*self._pip("install", environment, "--no-deps", "--require-hashes", "-r", "requirements.lock"))
        else:
            wanted = ["-r", "pyproject.toml", "--extra", "all", *_tools()]
            wanted += ["--resolution", "lowest-direct" if packages == "lowest" else "highest"]
            if "==" in packages:
                overrides = environment / "overrides.txt"
                overrides.write_text(packages.replace(",", "\n"), encoding="utf-8")
                wanted += ["--override", str(overrides)]
            run(*self._pip("install", environment, *wanted))
        run(*self._pip("install", environment, "--no-deps", self._wheel))

    def _demo(self, environment: Path, log: TextIO) -> str:
        done = run_demo(environment, environment.with_name(f"{environment.name}-home"))
        print(done.stdout, file=log, flush=True)
        return "ok" if done.returncode == 0 and YEAR.search(done.stdout) else "fails"

    def _run_tests(self, environment: Path, log: TextIO) -> str:
        """The checkout's tests with the environment's packages; what it only warns of is no failure here."""
        home, python = environment.with_name(f"{environment.name}-home"), environment / "bin" / "python"
        environ = bare_environ(home)
        java = subprocess.check_output([python, "-m", "hindstream.spark.session.java"], env=environ, text=True).strip()
        environ |= {"JAVA_HOME": java, "PATH": f"{environment / 'bin'}:{java}/bin:{os.defpath}"}
        environ |= {"NUMBA_CACHE_DIR": str(home / "numba"), "AIRFLOW_HOME": str(home / "airflow")}
        environ |= {"PYTEST_DEBUG_TEMPROOT": str(home)}
        # In one process: pyspark 4.2 takes xdist's workers for doctests, and ends them.
        command = [python, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-W", "default"]
        done = subprocess.run(
            [*command, *self._tests], cwd=ROOT, env=environ, capture_output=True, text=True, check=False
        )
        print(done.stdout, done.stderr, file=log, flush=True)
        counted = re.findall(r"\d+ (?:passed|failed|errors?)", done.stdout.rstrip().rpartition("\n")[2])
        return ", ".join(counted) or f"exit code {done.returncode}"


def _tools() -> list[str]:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    return re.findall(rf"^(?:{'|'.join(_TOOLS)})==[^ ]+", lock, re.MULTILINE)


def record(rows: Sequence[Row], table: Path = TABLE) -> None:
    """Puts rows into the table, for those of the same Python and packages that are there, and sorts it."""
    text = table.read_text(encoding="utf-8")
    before, rest = text.split(_line(COLUMNS) + "\n", 1)
    lines = rest.splitlines(keepends=True)
    end = next((number for number, line in enumerate(lines) if not line.startswith("|")), len(lines))
    there = [line.strip().strip("|").split("|") for line in lines[1:end]]
    cells = {_key(row): row for row in ([cell.strip() for cell in line] for line in there)}
    cells |= {_key(row.cells()): row.cells() for row in rows}
    made = [_line(COLUMNS), "|---" * len(COLUMNS) + "|", *(_line(cells[key]) for key in sorted(cells))]
    table.write_text(before + "\n".join(made) + "\n" + "".join(lines[end:]), encoding="utf-8")


def _key(cells: Sequence[str]) -> tuple[int, int, str]:
    """Rows of a set stand together, the sets by name first, then by Python's minor version."""
    sets = ("locked", "lowest", "newest")
    return (sets.index(cells[1]) if cells[1] in sets else len(sets), int(cells[0].split(".")[1]), cells[1])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
