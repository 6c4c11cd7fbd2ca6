"""``hindstream demo`` as a user runs it: Airflow, Spark, Great Expectations, the whole year."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hindstream.demo import NAME
from hindstream.report.documents import load_runs
from statelib.commits import CommitLog, JobLayout
from statelib.storage import Storage
from tests.command import besides_progress, hindstream
from tests.hindstream.demo.replay import equal_bytes, published

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.slow]

PATIENCE_S = 120
"""For a process that is slow; only one that has ended without its pages takes as long."""


@pytest.fixture(scope="module")
def first(tmp_path_factory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    folder = tmp_path_factory.mktemp("user")
    result = hindstream("demo", cwd=folder, HINDSTREAM_DATA_DOCS="beside")
    _wait_for_data_docs(Storage(str(folder / "demo-warehouse")))
    return folder, result


def _wait_for_data_docs(warehouse: Storage) -> None:
    """A process beside the demo writes them, which goes on when the demo has ended."""
    root = JobLayout(NAME).root
    pages = [f"{root}/{run.audit.data_docs}" for run in load_runs(warehouse, NAME) if run.audit is not None]
    until = time.monotonic() + PATIENCE_S
    while missing := [page for page in pages if not warehouse.exists(page)]:
        assert time.monotonic() < until, missing
        time.sleep(0.1)


@pytest.fixture
def warehouse(first) -> Storage:
    folder, result = first
    assert result.returncode == 0, result.stderr
    return Storage(str(folder / "demo-warehouse"))


def test_it_replays_the_year_and_sums_it_up(first, warehouse) -> None:
    _, result = first
    assert CommitLog(warehouse, NAME).head_number() == 12
    assert re.search(r"year +369,789 +6,736 +27 +19,448", result.stdout)
    assert "not accounted for: 0." in result.stdout
    assert "found nothing new and changed nothing" in result.stdout
    assert besides_progress(result.stderr) == []


def test_its_answer_is_that_of_the_engine_alone(warehouse, by_month) -> None:
    assert equal_bytes(published(warehouse), published(by_month))


def test_every_run_has_passed_its_audit(warehouse) -> None:
    runs = load_runs(warehouse, NAME)
    assert [run.status for run in runs] == ["committed"] * 12
    assert all(run.audit is not None and len(run.audit.checks) > 10 for run in runs)


def test_the_report_and_what_it_links_are_there(first, warehouse) -> None:
    folder, result = first
    (page,) = re.findall(r"Report: (\S+)", result.stdout)
    html = Path(page).read_text(encoding="utf-8")
    for title in ("Every day of the year", "Delays grow through the day", "Wind costs time", "Where every record went"):
        assert title in html
    reports = folder / "demo-warehouse" / "jobs" / NAME / "reports"
    for run in load_runs(warehouse, NAME):
        text = (reports / f"{run.run_id}.html").read_text(encoding="utf-8")
        links = re.findall(r'href="([^"]+)"', text)
        assert any("great_expectations" in link for link in links)
        assert [link for link in links if not (reports / link).exists()] == []
        assert "Where every record went" in text


def test_a_second_run_repeats_nothing_and_changes_nothing(first, warehouse) -> None:
    folder, _ = first
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    result = hindstream("demo", cwd=folder)
    assert result.returncode == 0, result.stderr
    assert "nothing is repeated" in result.stdout
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()} == before
    del warehouse


def test_the_report_written_anew_is_the_same(first, warehouse) -> None:
    folder, _ = first
    path = f"jobs/{NAME}/reports/index.html"
    before = warehouse.get(path)
    result = hindstream("report", "hindstream.demo.job:job", "--warehouse", "demo-warehouse", cwd=folder)
    assert result.returncode == 0, result.stderr
    assert warehouse.get(path) == before


def test_a_second_run_needs_neither_airflow_nor_spark(first, warehouse) -> None:
    folder, _ = first
    code = (
        "import sys; from hindstream.demo.run import run_demo; run_demo('demo-warehouse');"
        "print('loaded', *{name.partition('.')[0] for name in sys.modules})"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = result.stdout.rpartition("loaded")[2].split()
    assert {"airflow", "pyspark", "great_expectations", "numba"}.isdisjoint(loaded)
    del warehouse


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["weather-by-origin", "JFK", "--as-of", "2013-12-30T12:30Z"], "2013-12-30T12:00:00.000Z"),
        (["weather-by-origin", "JFK", "--commit", "6", "--as-of", "2013-06-30T12:30Z"], "commit 6"),
        (["weather-by-origin", "JFK"], "holds nothing"),  # the year ends with tombstones
        (["delays", "EWR", "--as-of", "2014-01-01T02:30Z"], '"flights": 4'),
        (["final-delays-store", "EWR"], "leaves_at"),
    ],
)
def test_stores_can_be_looked_into(first, warehouse, arguments, expected) -> None:
    folder, _ = first
    result = hindstream("inspect", "hindstream.demo.job:job", *arguments, "--warehouse", "demo-warehouse", cwd=folder)
    assert result.returncode == 0, result.stderr
    assert expected in result.stdout
    del warehouse


def test_a_store_that_is_not_there_names_those_that_are(first, warehouse) -> None:
    folder, _ = first
    result = hindstream(
        "inspect", "hindstream.demo.job:job", "delay", "EWR", "--warehouse", "demo-warehouse", cwd=folder
    )
    assert result.returncode == 78
    assert "weather-by-origin" in result.stderr
    del warehouse
