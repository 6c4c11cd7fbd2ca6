"""The command line of the scripts for ``spark-submit``, where they are copied elsewhere."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.command import run
from tests.conftest import ROOT

JOB = """
import {beside}
from hindstream import Job, StreamsBuilder

def job():
    builder = StreamsBuilder("copying")
    builder.stream("in").to({beside}.TOPIC)
    return Job("copying", builder.build())
"""
NO_TOPIC = "there is no topic archive"


def planned(scripts: Path, jobs: Path, beside: str) -> str:
    jobs.mkdir(exist_ok=True)
    (jobs / "job.py").write_text(JOB.format(beside=beside))
    (jobs / f"{beside}.py").write_text("TOPIC = 'out'")
    command = [sys.executable, scripts / "plan.py", "--job", f"{jobs}/job.py:job"]
    return run(*command, cwd=scripts.parent, PYTHONPATH=str(ROOT)).stderr


def test_a_job_may_import_a_module_of_its_own_that_is_named_like_a_script(tmp_path: Path) -> None:
    scripts = tmp_path / "scripts"
    shutil.copytree(ROOT / "spark_jobs", scripts, ignore=shutil.ignore_patterns("__pycache__"))
    assert NO_TOPIC in planned(scripts, tmp_path / "jobs", "report")
    assert NO_TOPIC in planned(scripts, scripts, "totals")  # also where the scripts lie beside the job
    assert "has the name of a module of Python's" in planned(scripts, tmp_path / "jobs", "string")
