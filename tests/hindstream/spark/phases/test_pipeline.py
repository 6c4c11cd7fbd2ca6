"""All phases in one process, and the command lines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from hindstream.runs import open_warehouse
from hindstream.spark.phases import audit, commit, maintain, pipeline, plan, replay, report
from statelib.commits import CommitLog, NothingToDo, published_through, rollback
from statelib.commits.archives import open_archive
from statelib.errors.kinds import ConfigurationError
from statelib.job.job import load_job
from tests.hindstream.spark.orders import (
    DAY_MS,
    HOUR_MS,
    JOB_FILE,
    archive_orders,
    check_published,
    expected_totals,
    make_settings,
    orders,
    published,
)
from tests.hindstream.spark.orders_job import SINK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from statelib.job.job import Job
    from statelib.settings.settings import Settings


def arguments(settings: Settings) -> list[str]:
    return ["--job", f"{JOB_FILE}:job", "--warehouse", settings.warehouse, "--state-dir", str(settings.state_dir)]


@pytest.mark.spark
def test_slices_continue_and_an_old_one_does_nothing(settings: Settings, orders_job: Job) -> None:
    first = pipeline.run_slice(orders_job, settings, DAY_MS)
    second = pipeline.run_slice(orders_job, settings)
    assert isinstance(first, pipeline.SliceResult)
    assert isinstance(second, pipeline.SliceResult)
    assert list(first.seconds) == ["plan", "replay", "audit", "commit", "publish", "maintain", "report"]
    assert (first.commit.commit, second.commit.commit) == (1, 2)
    published = first.published + second.published
    assert open_archive(open_warehouse(settings), SINK).rows == sum(part.rows for part in published) > 0
    outcome = pipeline.run_slice(orders_job, settings, DAY_MS // 2)
    assert outcome == NothingToDo("orders", "replayed-further", 2)
    assert pipeline.run_slice(orders_job, settings) == NothingToDo("orders", "no-new-records", 2)
    assert CommitLog(open_warehouse(settings), "orders").head_number() == 2


@pytest.mark.spark
def test_workers_have_the_module_beside_the_job(settings: Settings, tmp_path: Path) -> None:
    """By a name that it gives, and by itself: the job's function looks into it when it runs, there."""
    (tmp_path / "amounts").mkdir()
    (tmp_path / "amounts" / "__init__.py").write_text("LEAST = 0\n")
    (tmp_path / "amounts" / "checks.py").write_text(
        "import pyarrow.compute as pc\n\nfrom amounts import LEAST\n\n\n"
        "def has_amount(columns):\n"
        "    return pc.greater_equal(pc.struct_field(columns.column('value'), 'amount'), LEAST)\n"
    )
    text = Path(JOB_FILE).read_text().replace("\nfrom statelib.dsl", "\nimport amounts.checks\nfrom statelib.dsl", 1)
    old = 'return pc.is_valid(pc.struct_field(columns.column("value"), "amount"))'
    assert old in text
    file = tmp_path / "beside_job.py"
    file.write_text(text.replace(old, "return amounts.checks.has_amount(columns)"))
    made = pipeline.run_slice(load_job(f"{file}:job"), settings)
    assert isinstance(made, pipeline.SliceResult)
    check_published(settings, orders())


@pytest.mark.spark
def test_a_slice_after_a_rollback_gives_what_it_gave(settings: Settings, orders_job: Job) -> None:
    warehouse = open_warehouse(settings)
    pipeline.run_slice(orders_job, settings, DAY_MS)
    pipeline.run_slice(orders_job, settings)
    rows = published(settings)
    made = rollback(warehouse, "orders", 1, now_ms=1)
    assert published(settings) != rows
    report.run(orders_job, settings, made.run_id)
    page = warehouse.get(f"jobs/orders/reports/{made.run_id}.html").decode()
    assert "rollback to 1" in page
    again = pipeline.run_slice(orders_job, settings)
    assert isinstance(again, pipeline.SliceResult)
    assert again.commit.commit == 4
    assert published(settings) == rows
    assert "rolled back by 3" in warehouse.get("jobs/orders/reports/index.html").decode()


@pytest.mark.spark
def test_what_an_interrupted_publish_has_missed_is_made_good(settings: Settings, orders_job: Job) -> None:
    plan.run(orders_job, settings)
    for phase in (replay, audit, commit):
        phase.run(orders_job, settings)
    warehouse = open_warehouse(settings)
    assert published_through(warehouse, "orders") == 0
    assert isinstance(plan.run(orders_job, settings), NothingToDo)
    assert published_through(warehouse, "orders") == 1


@pytest.mark.spark
def test_a_command_line_for_each_phase(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    given = [*arguments(settings), "--spark-master", "local[2]", "--spark-conf", "spark.x=1", "--spark-conf", "y=2"]
    for phase in (plan, replay, audit, commit, maintain):
        phase.main(given)
    assert CommitLog(open_warehouse(settings), "orders").head_number() == 1


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        (["--keep-commits", "0"], 78, "keep_commits cannot be used"),
        (["--run", "00000007-1"], 78, "there is no such run"),
        (["--spark-conf", "novalue"], 2, "takes NAME=VALUE"),
    ],
)
def test_an_error_is_one_message_and_an_exit_code(
    tmp_path: object, capsys: pytest.CaptureFixture[str], given: list[str], code: int, message: str
) -> None:
    with pytest.raises(SystemExit) as raised:
        commit.main(["--job", f"{JOB_FILE}:job", "--warehouse", str(tmp_path), *given])
    printed = capsys.readouterr().err
    assert raised.value.code == code
    assert message in printed
    assert "Traceback" not in printed


def test_planning_needs_no_spark() -> None:
    code = (
        "import sys, hindstream.spark.phases.plan, hindstream.spark.phases.commit;"
        "print([name for name in ('pyspark', 'great_expectations') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.spark
def test_late_records_are_kept_and_the_last_slice_sealed(tmp_path: Path, spark: SparkSession, orders_job: Job) -> None:
    settings = make_settings(tmp_path, on_late_record="topic")
    table = orders(days=2)
    late = table.slice(len(table) - 20).to_pylist()
    late = [row | {"value": row["value"] | {"order_id": f"late-{n}"}} for n, row in enumerate(late)]
    early = pa.array([HOUR_MS] * len(late), table.schema.field("timestamp").type)
    late_table = pa.Table.from_pylist(late, table.schema).set_column(2, "timestamp", early)
    archive_orders(settings, pa.concat_tables([table, late_table]))
    first = pipeline.run_slice(orders_job, settings, DAY_MS)
    sealed = pipeline.run_slice(orders_job, settings.model_copy(update={"end_of_input": "seal"}))
    assert isinstance(first, pipeline.SliceResult)
    assert isinstance(sealed, pipeline.SliceResult)
    assert sealed.audit.success
    assert sealed.commit.end_of_input == "seal"
    found = {(row["key"]["key"], row["key"]["window_start"]) for row in published(settings)}
    assert len(found) == len(published(settings)) == len(expected_totals(table))
    kept = open_archive(open_warehouse(settings), "orders-late")
    ids = {
        json.loads(row["value"]["value"])["order_id"]
        for partition in range(kept.partitions)
        for batch in kept.reader(partition)
        for row in batch.to_pylist()
    }
    assert ids == {f"late-{n}" for n in range(20)}
    assert pipeline.run_slice(orders_job, settings) == NothingToDo("orders", "sealed", 2)
    archive_orders(settings, table.slice(0, 1), version=2)
    with pytest.raises(ConfigurationError, match="sealed by commit 2"):
        pipeline.run_slice(orders_job, settings)
