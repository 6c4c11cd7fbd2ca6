"""``./dev test --fast`` chooses tests that start no process, and says which of them take long."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

TESTS = """
import multiprocessing, os, subprocess, sys
import pytest

def test_plain():
    pass

def test_that_asks_git():
    subprocess.run(["git", "--version"], check=True)

STARTS = {
    "run": lambda: subprocess.run([sys.executable, "-c", ""]),
    "system": lambda: os.system("true"),
    "spawn": lambda: multiprocessing.get_context("spawn").Process(target=print).start(),
    "fork": lambda: multiprocessing.get_context("fork").Process(target=print).start(),
}

@pytest.mark.parametrize("start", STARTS)
def test_that_starts_a_process(start):
    STARTS[start]()
    assert False

@pytest.mark.parametrize("mark", MARKS)
def test_that_is_marked(mark):
    assert False

@pytest.mark.thorough
@pytest.mark.parametrize("n", range(24))
def test_of_many_cases(n):
    pass

@pytest.mark.thorough
def test_of_one_long_history():
    assert False

def test_that_takes_long():
    import time
    time.process_time = lambda times=[0.0]: times.append(times[-1] + 3600.0) or times[-1]
"""
MARKS = ", ".join(f"pytest.param({mark!r}, marks=pytest.mark.{mark})" for mark in ("airflow", "long", "slow", "spark"))


def chosen(*arguments: str | Path, cwd: Path = ROOT) -> list[str]:
    """What pytest says."""
    options = ["-c", ROOT / "pyproject.toml", "-n", "0", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, *arguments]
    environ = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 5}, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_no_process_no_mark_and_some_cases_of_many(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_some.py").write_text(TESTS.replace("MARKS", f"[{MARKS}]"))
    (tmp_path / "tests" / "test_others.py").write_text(
        "import pytest\npytestmark = [pytest.mark.spark]\nimport nothing"
    )
    (tmp_path / "tests" / "helper.py").write_text("import nothing")
    lines = chosen("-p", "tests.fast", "-rs", "--rootdir", tmp_path, tmp_path / "tests", cwd=tmp_path)
    assert "5 passed, 4 skipped, 27 deselected" in lines[-1]
    assert any("[4]" in line and "starts a process" in line for line in lines)
    assert any("too long for a fast run" in line for line in lines)
    took_long = [line for line in lines if "s of a processor" in line]
    assert [line.rpartition("::")[2] for line in took_long] == ["test_that_takes_long"]


def test_what_takes_the_session_of_spark_is_left_out() -> None:
    file = "tests/hindstream/spark/frames/test_state_source.py"
    on_spark = set(re.findall(r"^def (test_\w+)\([^)]*\bspark\b", (ROOT / file).read_text(), re.MULTILINE))
    fast = {re.split(r"::|\[", line)[1] for line in chosen("--co", "-q", "-p", "tests.fast", file) if "::" in line}
    assert on_spark
    assert fast
    assert not fast & on_spark


def test_the_help_of_dev_has_it() -> None:
    done = subprocess.run([ROOT / "dev", "help"], capture_output=True, text=True, check=True)
    assert "\n  test --fast [ARGS] " in done.stdout


def test_dev_runs_it(tmp_path: Path) -> None:
    script = tmp_path / "dev"
    script.write_text(re.sub(r"^  is_complete \|\| set_up$", "", (ROOT / "dev").read_text(), flags=re.MULTILINE))
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "$*"\n')
    python.chmod(0o755)
    command = ["bash", script, "test", "--fast", "-k", "a or b"]
    done = subprocess.run(command, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True)
    compiled, tests = done.stdout.splitlines()
    assert compiled == "-m statelib.kernels.compile"
    assert tests.startswith("-m pytest -n 2 ")
    assert tests.endswith(" -p tests.fast -k a or b")
