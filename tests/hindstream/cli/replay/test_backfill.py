"""``hindstream backfill`` as a user runs it: slices of real archives through Airflow, Spark and Great Expectations."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hindstream.report.documents import load_runs
from hindstream.spark.phases import pipeline
from statelib.commits import CommitLog, published_through
from statelib.commits.layout import topic_path
from statelib.commits.versions.fork import fork
from statelib.job.job import load_job
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


@pytest.mark.long
def test_a_fork_goes_on_slice_by_slice_as_its_job_does(tmp_path) -> None:
    settings = make_settings(tmp_path)
    warehouse = Storage(settings.warehouse)
    archive_orders(settings, orders(days=4))
    shutil.copy(JOB_FILE, tmp_path / "job.py")
    given = ("--every", "day", "--warehouse", "warehouse", "--engine", "local")

    def backfill(*arguments: str, **environ: str) -> list[str]:
        result = hindstream("backfill", "job.py:job", *arguments, *given, cwd=tmp_path, **environ)
        assert (result.returncode, besides_progress(result.stderr)) == (0, [])
        return [line.partition("UTC: ")[2] for line in result.stdout.splitlines()]

    job = load_job(f"{JOB_FILE}:job")
    local = settings.model_copy(update={"engine": "local"})
    pipeline.run_slice(job, local, DAY_MS)
    for name in ("by-option", "by-environment"):
        fork(warehouse, "orders", name, now_ms=0)
    rest = ("--from", "1970-01-02T00:00Z", "--to", "1970-01-04T00:00Z")
    runs = ["run 00000002-1", "run 00000003-1"]
    for days in (2, 3):
        pipeline.run_slice(job, local, days * DAY_MS)
    assert backfill(*rest, "--fork", "by-option") == runs
    assert backfill(*rest, HINDSTREAM_FORK="by-environment") == runs
    of_job = [written(warehouse, "orders", n) for n in (2, 3)]
    assert all(of_job)
    for name in ("by-option", "by-environment"):
        assert [written(warehouse, name, n) for n in (2, 3)] == [
            [(f"{topic}.{name}", partition, rows) for topic, partition, rows in files] for files in of_job
        ]
        assert published_through(warehouse, name) == 3


def written(warehouse: Storage, job: str, commit: int) -> list[tuple[str, int, list[dict[str, object]]]]:
    """The records that a commit has published: topic, partition, and the rows without offsets."""
    found = []
    for sink in CommitLog(warehouse, job).read(commit).sinks:
        with warehouse.open_input(f"{topic_path(sink.topic)}/{sink.file.path}") as stream:
            rows = pq.read_table(stream).drop_columns(["offset"]).to_pylist()
        found.append((sink.topic, sink.file.partition, rows))
    return sorted(found, key=lambda one: one[:2])
