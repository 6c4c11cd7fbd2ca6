"""``hindstream backfill`` as a user runs it: slices of real archives through Airflow, Spark and Great Expectations."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pytest

from hindstream.report.documents import load_runs
from statelib.commits import published_through
from statelib.storage import Storage
from tests.command import besides_progress, hindstream
from tests.hindstream.spark.orders import (
    DAY_MS,
    JOB_FILE,
    archive_orders,
    check_published,
    expected_totals,
    make_settings,
    orders,
    published,
)

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.slow]


def test_slices_run_one_after_the_other_until_there_is_nothing_to_do(tmp_path) -> None:
    settings = make_settings(tmp_path)
    archive_orders(settings, orders(days=4))
    (tmp_path / "dags").mkdir()  # as repositories of Airflow's users have it
    (tmp_path / "dags" / "__init__.py").write_text("")
    shutil.copy(JOB_FILE, tmp_path / "dags" / "job.py")
    result = hindstream(
        "backfill", "dags.job:job", "--from", "1970-01-03T00:00Z", "--to", "1970-01-06T00:00Z", "--every", "day",
        "--warehouse", "warehouse", "--engine", "local",
        cwd=tmp_path,
    )  # fmt: skip
    assert (result.returncode, besides_progress(result.stderr)) == (0, [])
    assert result.stdout.splitlines() == [
        "before 1970-01-04 00:00 UTC: run 00000001-1",
        "before 1970-01-05 00:00 UTC: run 00000002-1",
        "before 1970-01-06 00:00 UTC: nothing to do",
    ]
    warehouse = Storage(settings.warehouse)
    runs = load_runs(warehouse, "orders")
    assert [(run.status, run.plan.until_ms) for run in runs] == [("committed", 3 * DAY_MS), ("committed", 4 * DAY_MS)]
    assert published_through(warehouse, "orders") == 2
    check_published(settings, orders(days=4))
    assert runs[-1].sealed is False
    sealed = hindstream(
        "backfill", "dags/job.py:job",
        "--from", "1970-01-05", "--to", "1970-01-07", "--every", "day", "--timezone", "UTC",
        "--warehouse", "warehouse", "--engine", "local", "--seal",
        cwd=tmp_path,
    )  # fmt: skip
    assert sealed.stdout.splitlines() == [
        "before 1970-01-06 00:00 UTC: nothing to do",
        "before 1970-01-07 00:00 UTC: run 00000003-1",
    ]
    last = load_runs(warehouse, "orders")[-1]
    assert last.sealed
    found = {(row["key"]["key"], row["key"]["window_start"]) for row in published(settings)}
    assert len(found) == len(published(settings)) == len(expected_totals(orders(days=4)))
    folder = tmp_path / ".hindstream" / "airflow"
    assert {path.name for path in folder.iterdir()} >= {"airflow.db", "backfill.log", "dags"}


def test_a_record_that_holds_a_slice_back_is_told(tmp_path) -> None:
    settings = make_settings(tmp_path)
    two = orders(days=1).slice(0, 2)
    times = pa.array([4_102_444_800_000, DAY_MS], pa.timestamp("ms", "UTC"))  # of 2100, then of 1970
    table = two.set_column(0, "key", pa.array(["k", "k"])).set_column(2, "timestamp", times)
    archive_orders(settings, table)
    (tmp_path / "dags").mkdir()  # as repositories of Airflow's users have it
    (tmp_path / "dags" / "__init__.py").write_text("")
    shutil.copy(JOB_FILE, tmp_path / "dags" / "job.py")
    result = hindstream(
        "backfill", "dags.job:job", "--from", "1970-01-02T00:00Z", "--to", "1970-01-03T00:00Z", "--every", "day",
        "--warehouse", "warehouse", "--engine", "local",
        cwd=tmp_path,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    nothing, held_back = result.stdout.splitlines()
    assert nothing == "before 1970-01-03 00:00 UTC: nothing to do"
    assert "offset 0 is stamped 2100-01-01T00:00:00.000Z: the slice ends before it" in held_back
    assert "set max_future to set such records apart" in held_back
