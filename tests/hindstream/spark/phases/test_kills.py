"""The driver of a real Spark run is killed, in the replay and in the audit, and run again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hindstream.runs import open_warehouse
from hindstream.spark.phases import pipeline
from statelib.commits import CommitLog, Runs
from statelib.errors.fault_points import observed
from statelib.job.job import load_job
from statelib.settings.settings import load_settings
from tests.hindstream.spark.orders import JOB_FILE, make_settings, published

if TYPE_CHECKING:
    from statelib.job.job import Job
    from statelib.settings.settings import Settings


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def drive(moment: str, warehouse: str, state_dir: str) -> None:
    """Runs a slice in this process; kills it when a task is at work (``replay``) or at a named step."""
    settings = load_settings({"warehouse": warehouse, "state_dir": state_dir, "spark_master": "local[2]"}, environ={})

    def wait_for_a_task() -> None:
        while not list(Path(state_dir, "attempts").glob("*/*/db/CURRENT")):
            time.sleep(0.002)
        die()

    def observe(step: str) -> None:
        if step == moment:
            die()

    if moment == "replay":
        threading.Thread(target=wait_for_a_task, daemon=True).start()
    with observed(observe):
        pipeline.run_slice(load_job(f"{JOB_FILE}:job"), settings)


def run(moment: str, settings: Settings) -> int:
    code = f"import sys; from tests.hindstream.spark.phases.test_kills import drive; drive({moment!r}, *sys.argv[1:])"
    command = [sys.executable, "-c", code, settings.warehouse, str(settings.state_dir)]
    return subprocess.run(command, cwd=Path(__file__).parents[4], check=False, capture_output=True).returncode


@pytest.mark.spark
@pytest.mark.long
def test_a_killed_driver_is_run_again_and_the_answer_is_the_same(
    settings: Settings, orders_job: Job, tmp_path: Path
) -> None:
    other = make_settings(tmp_path / "killed")
    source = open_warehouse(settings)
    for entry in source.list("topics/orders"):
        open_warehouse(other).put(entry.path, source.get(entry.path))
    runs = Runs(open_warehouse(other), "orders")

    assert run("replay", other) == -signal.SIGKILL
    assert runs.plan("00000001-1") is not None
    assert runs.staged("00000001-1") is None

    assert run("audit.before-create", other) == -signal.SIGKILL
    assert runs.staged("00000001-1") is not None
    assert runs.audit("00000001-1") is None

    assert run("", other) == 0
    pipeline.run_slice(orders_job, settings)
    assert published(other) == published(settings)
    assert CommitLog(open_warehouse(other), "orders").head_number() == 1
