"""GitHub's workflow in `docs/versions.md` says in a pull request what it changes: its scripts run as a runner does.

GitHub itself, and its program ``gh``, are not to be had: a script of that name writes down what it was called with.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import yaml

from statelib import load_job
from tests.conftest import ROOT
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

DAY_MS = 86_400_000

JOB = """
import pyarrow.compute as pc
from hindstream import Job, StreamsBuilder

builder = StreamsBuilder("flights")
builder.stream("departures").filter(pc.field("value") > LEAST).to("late-departures")
job = Job("flights", builder.build())
"""


def steps() -> dict[str, dict[str, Any]]:
    """The steps that run a script, by their names."""
    page = (ROOT / "docs" / "versions.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```yaml\n(name: What changes\n.*?)^```$", page, re.DOTALL | re.MULTILINE)
    workflow = yaml.safe_load(text)
    assert workflow["permissions"]["pull-requests"] == "write"
    return {step["name"]: step for step in workflow["jobs"]["try"]["steps"] if "name" in step and "run" in step}


class Runner:
    """A machine that has checked a pull request out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "checkout"
        self.warehouse = folder / "warehouse"
        self.summary = folder / "summary.md"
        self._bin = folder / "bin"
        for made in (self.folder / "jobs", self._bin):
            made.mkdir(parents=True)
        self._program("hindstream", f'exec "{sys.executable}" -m hindstream "$@"')
        self._program("gh", f"printf '%s\\n' \"$@\" > {folder}/gh.txt; cat comment.md > {folder}/commented.md")
        self.commented = folder / "commented.md"
        self.gh = folder / "gh.txt"

    def check_out(self, source: str) -> None:
        (self.folder / "jobs" / "flights.py").write_text(source)

    def run(self) -> subprocess.CompletedProcess[str]:
        """Runs the steps as a runner does: `bash -e`, and none after one that has failed."""
        known = {"${{ github.event.number }}": "7"}
        for step in steps().values():
            script = re.sub(r"\$\{\{.*?\}\}", lambda found: known[found[0]], step["run"])
            told = {"HINDSTREAM_WAREHOUSE": str(self.warehouse), "GITHUB_STEP_SUMMARY": str(self.summary)}
            kept = {name: value for name, value in os.environ.items() if not name.startswith(("HINDSTREAM_", "AWS_"))}
            done = subprocess.run(
                ["bash", "-e", "-c", script],
                cwd=self.folder,
                env={**kept, "PATH": f"{self._bin}:{os.environ['PATH']}", **told},
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                break
        return done

    def _program(self, name: str, script: str) -> None:
        file = self._bin / name
        file.write_text(f"#!/bin/bash\n{script}\n")
        file.chmod(0o755)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """The main branch has run, on departures of the last sixty days."""
    runner = Runner(tmp_path)
    runner.check_out(JOB.replace("LEAST", "10"))
    made = Pipeline(
        tmp_path, load_job(f"{runner.folder}/jobs/flights.py:job").topology, "flights", warehouse=str(runner.warehouse)
    )
    today_ms = int(time.time() * 1000) // DAY_MS * DAY_MS
    made.archive("departures", [("JFK", n, today_ms - (60 - n) * DAY_MS) for n in range(60)], (pa.string(), pa.int64()))
    made.run(today_ms - 40 * DAY_MS)
    made.run()
    return runner


def test_what_changes_is_said_and_commented(runner: Runner) -> None:
    runner.check_out(JOB.replace("LEAST", "40 + 5"))  # a file of another size: Python caches by size and second
    done = runner.run()
    assert done.returncode == 0, done.stderr
    said = runner.commented.read_text()
    lines = said.splitlines()
    assert lines[:2] == ["This pull request:", "```"]
    assert lines[-1] == "```"
    assert "of late-departures differ (26 of 40)" in said
    assert runner.summary.read_text() == said
    assert (runner.folder / "review.html").read_text().startswith("<!doctype html>")
    expected = ["pr", "comment", "7", "--body-file", "comment.md", "--edit-last", "--create-if-none"]
    assert runner.gh.read_text().splitlines() == expected


def test_what_changes_nothing_is_said_too(runner: Runner) -> None:
    done = runner.run()
    assert done.returncode == 0, done.stderr
    assert "late-departures is equal (40 compared)." in runner.commented.read_text()


def test_what_cannot_run_fails(runner: Runner) -> None:
    runner.check_out("import no_such_module\n")
    done = runner.run()
    assert done.returncode == 1
    assert "no_such_module" in done.stderr
    assert not runner.gh.exists()
    assert not runner.summary.exists()
