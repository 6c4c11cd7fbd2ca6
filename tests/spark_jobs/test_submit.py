"""The phases as another scheduler runs them: scripts given to ``spark-submit``, each in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hindstream.runs import open_warehouse
from hindstream.spark.session.session import quick_start
from statelib.commits import published_through
from tests.command import spark_submit
from tests.hindstream.spark.orders import JOB_FILE, archive_orders, check_published, make_settings, orders

if TYPE_CHECKING:
    import subprocess

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCRIPTS = Path(__file__).parents[2] / "spark_jobs"


def submit(phase: str, folder: Path) -> subprocess.CompletedProcess[str]:
    configuration = {"spark.ui.enabled": "false", **quick_start("driver")}
    options = ["--master", "local[2,4]", *(f"--conf={name}={value}" for name, value in configuration.items())]
    job = ["--job", f"{JOB_FILE}:job", "--warehouse", "warehouse", "--state-dir", "state"]
    return spark_submit(*options, SCRIPTS / f"{phase}.py", *job, cwd=folder)


def test_a_slice_from_plan_to_publish(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    archive_orders(settings, orders())
    for phase, said in (
        ("plan", "will replay 3,300 records"),
        ("replay", "replayed 3,300 records"),
        ("audit", "passed"),
        ("commit", "is commit 1"),
        ("publish", "records to orders-by-country"),
    ):
        result = submit(phase, tmp_path)
        assert result.returncode == 0, result.stdout + result.stderr
        assert said in result.stdout  # spark-submit puts both of Python's streams there
    assert published_through(open_warehouse(settings), "orders") == 1
    check_published(settings, orders())


def test_an_error_is_one_message_and_its_exit_code(tmp_path: Path) -> None:
    result = submit("commit", tmp_path)
    assert result.returncode == 78
    assert result.stdout.startswith("there is no such run (job orders). Next: plan one")
    assert result.stdout.count("\n") == 1


def test_each_phase_has_its_script() -> None:
    assert {file.stem for file in SCRIPTS.glob("*.py")} == {
        "audit",
        "commit",
        "maintain",
        "pipeline",
        "plan",
        "publish",
        "replay",
        "report",
    }
    for file in SCRIPTS.glob("*.py"):
        assert f"from hindstream.spark.phases.{file.stem} import main" in file.read_text()
