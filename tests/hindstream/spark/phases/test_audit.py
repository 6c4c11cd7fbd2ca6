"""The audit with real Great Expectations, on both engines: what passes, what fails, and what a failure leaves."""

from __future__ import annotations

import dataclasses
import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from hindstream.runs import open_warehouse
from hindstream.spark.phases import audit, audited_records, commit, plan, publish, replay, report
from hindstream.spark.phases.audited_tables import AuditedTables
from hindstream.spark.screening import suspects
from statelib.commits import CommitLog, NothingToDo, Runs
from statelib.errors.kinds import ConfigurationError, InputError
from statelib.job.job import Job, expect
from tests.hindstream.spark.orders import archive_orders, make_settings, orders
from tests.hindstream.spark.orders_job import SINK

if TYPE_CHECKING:
    from statelib.documents.manifests import Audit
    from statelib.settings.settings import Settings
    from tests.hindstream.spark.conftest import Replayed

pytestmark = pytest.mark.spark

DEFECTS = (
    expect("expect_column_values_to_be_in_set", column="key.key", value_set=["de", "fr"]),
    expect("expect_column_values_to_be_between", column="value.amount", max_value=100),
    expect("expect_table_row_count_to_be_between", max_value=3),
    expect("expect_column_values_to_not_be_null", column="value.nothing"),
)
"""Of the orders, three are violated, and one is about a column that is not there."""


def audited(replayed: Replayed, engine: str, job: Job | None = None) -> Audit:
    settings = replayed.settings.model_copy(update={"audit_engine": engine})
    warehouse = open_warehouse(settings)
    return audit._audit(AuditedTables(job or replayed.job, settings, warehouse, replayed.plan, replayed.staged))


def with_defects(job: Job) -> Job:
    return dataclasses.replace(job, expectations={SINK: DEFECTS})


def test_a_good_run_passes_with_a_page_in_data_docs(replayed: Replayed, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    settings = replayed.settings.model_copy(update={"data_docs": "report"})
    result = audit.run(replayed.job, settings, replayed.plan.run_id)
    assert result.success
    report.run(replayed.job, settings, replayed.plan.run_id)
    assert {check.topic for check in result.checks} == {SINK, "files", "ledger"}
    page = Path(replayed.settings.warehouse) / "jobs" / "orders" / str(result.data_docs)
    assert "expectation" in page.read_text().lower()
    assert Runs(open_warehouse(replayed.settings), "orders").audit(replayed.plan.run_id) == result
    assert "passed" in caplog.text


ENGINES = ("pandas", "screened", "spark")


def by_check(found: Audit) -> dict[str, dict[str, object]]:
    checks = {json.dumps([c.topic, c.expectation, c.parameters]): c.model_dump() for c in found.checks}
    assert len(checks) == len(found.checks)
    return checks


@pytest.mark.long
def test_all_engines_say_the_same(replayed: Replayed) -> None:
    pandas, screened, spark, decided = (audited(replayed, engine) for engine in (*ENGINES, "auto"))
    assert pandas.success
    assert by_check(pandas) == by_check(screened) == by_check(spark) == by_check(decided)


def test_all_engines_find_the_same_defects(replayed: Replayed) -> None:
    job = with_defects(replayed.job)
    counts = []
    for engine in ENGINES:
        found = by_check(audited(replayed, engine, job))
        failed = {str(check["expectation"]): check for check in found.values() if not check["success"]}
        assert set(failed) == {expectation.type for expectation in DEFECTS}
        countries = failed["expect_column_values_to_be_in_set"]
        rows: list[dict[str, object]] = list(countries["unexpected_rows"])  # type: ignore[call-overload]
        assert len(rows) == 20
        assert {row["key.key"] for row in rows} == {"us"}
        assert {"partition", "offset", "value.orders"} <= set(rows[0])
        assert int(str(failed["expect_table_row_count_to_be_between"]["observed"])) > 3
        assert "value.nothing" in str(failed["expect_column_values_to_not_be_null"]["error"])
        counts.append({name: check["unexpected_count"] for name, check in found.items()})
    assert counts[0] == counts[1] == counts[2]


@pytest.mark.long
def test_defects_of_most_rows_are_shown_all_the_same(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suspects, "MOST_SUSPECTS", 5)
    job = with_defects(replayed.job)
    assert by_check(audited(replayed, "screened", job)) == by_check(audited(replayed, "spark", job))


def test_a_failed_run_is_in_quarantine(
    replayed: Replayed, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    job = with_defects(replayed.job)
    with pytest.raises(InputError, match=r"the audit failed, 4 of \d+ checks") as raised:
        audit.run(job, settings)
    assert '"key.key": "us"' in caplog.text
    assert raised.value.place["run"] == replayed.plan.run_id
    page = Path(raised.value.place["report"])
    assert page.name == f"{replayed.plan.run_id}.html"
    assert "the run is in quarantine" in page.read_text()
    assert replayed.plan.run_id in page.with_name("index.html").read_text()
    warehouse = open_warehouse(settings)
    recorded = Runs(warehouse, "orders").audit(replayed.plan.run_id)
    assert recorded is not None
    assert not recorded.success
    json.dumps([check.model_dump() for check in recorded.checks])
    with pytest.raises(InputError, match="quarantine"):
        commit.run(job, settings, replayed.plan.run_id)
    with pytest.raises(InputError, match="the audit failed"):  # mending the job does not free a run that has failed
        audit.run(replayed.job, settings, replayed.plan.run_id)
    assert CommitLog(warehouse, "orders").head() is None

    planned = plan.run(replayed.job, settings)
    assert not isinstance(planned, NothingToDo)
    assert planned.run_id == "00000001-2"
    for phase in (replay, audit, commit, publish):
        phase.run(replayed.job, settings, planned.run_id)
    head = CommitLog(warehouse, "orders").head()
    assert head is not None
    assert head.run_id == "00000001-2"


@pytest.mark.parametrize("engine", ["pandas", "screened"])
def test_a_damaged_file_is_a_failed_audit_and_the_next_try_makes_it_anew(replayed: Replayed, engine: str) -> None:
    settings = replayed.settings.model_copy(update={"audit_engine": engine})
    path = next(sink.file.path for task in replayed.staged.tasks for sink in task.sinks if sink.topic == SINK)
    file = Path(str(settings.warehouse)) / "topics" / SINK / path
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(InputError, match=f"can_be_read.* could not be evaluated: a staged file cannot be read.*{path}"):
        audit.run(replayed.job, settings)
    planned = plan.run(replayed.job, settings)
    assert not isinstance(planned, NothingToDo)
    assert planned.run_id == "00000001-2"
    replay.run(replayed.job, settings)
    assert audit.run(replayed.job, settings).success


def test_lost_records_show_in_the_ledger(replayed: Replayed) -> None:
    first, *others = replayed.staged.tasks
    metrics = {name: dataclasses.replace(node) for name, node in first.metrics.items()}
    name, node = next((name, node) for name, node in metrics.items() if node.accounts)
    metrics[name] = dataclasses.replace(node, records_in=node.records_in + 2)
    staged = replayed.staged.model_copy(update={"tasks": (first.model_copy(update={"metrics": metrics}), *others)})
    failed = [
        check for check in audited(dataclasses.replace(replayed, staged=staged), "pandas").checks if not check.success
    ]
    assert {check.topic for check in failed} == {"ledger"}
    rows = [row for check in failed for row in check.unexpected_rows]
    assert any(row["node"] == name and row["task_id"] == first.task_id and abs(row["difference"]) == 2 for row in rows)


def test_records_in_quarantine_are_part_of_the_ledger(tmp_path: Path, spark: object, orders_job: Job) -> None:
    settings = make_settings(tmp_path, on_bad_record="quarantine")
    table = orders(300)
    timestamp = table.column("timestamp").cast(pa.int64()).to_pylist()
    timestamp[50] = timestamp[200] = -5
    bad = pa.array(timestamp, pa.int64()).cast(pa.timestamp("ms", "UTC"))
    archive_orders(settings, table.set_column(2, "timestamp", bad))
    plan.run(orders_job, settings)
    staged = replay.run(orders_job, settings)
    files = [sink.file for outcome in staged.tasks for sink in outcome.sinks if sink.topic == "orders-quarantine"]
    assert sum(file.rows for file in files) == 2
    assert audit.run(orders_job, settings).success


def test_many_rows_are_screened(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    sinks = [sink for outcome in replayed.staged.tasks for sink in outcome.sinks]
    rows = sum(sink.file.rows for sink in sinks)
    screened = f"Run over 0 of {rows} rows: those that can fail one of these checks."
    for threshold, note in ((rows, ""), (rows - 1, screened)):
        monkeypatch.setattr(audited_records, "SCREEN_FROM_ROWS", threshold)
        warehouse = open_warehouse(replayed.settings)
        tables = AuditedTables(replayed.job, replayed.settings, warehouse, replayed.plan, replayed.staged).frames()
        assert next(suite.note for suite, _ in tables if suite.name == SINK) == note


def test_very_many_rows_are_screened_on_spark(replayed: Replayed, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [sink.file for outcome in replayed.staged.tasks for sink in outcome.sinks]
    rows, size = sum(file.rows for file in files), sum(file.size_bytes for file in files)
    monkeypatch.setattr(audited_records, "SCREEN_FROM_ROWS", 0)
    asked, real = [], audited_records.spark_context
    monkeypatch.setattr(audited_records, "spark_context", lambda settings: asked.append(1) or real(settings))
    for most_rows, most_bytes, on_spark in ((rows, size, []), (rows - 1, size, [1]), (rows, size - 1, [1])):
        monkeypatch.setattr(audited_records, "SCREEN_ON_SPARK_FROM_ROWS", most_rows)
        monkeypatch.setattr(audited_records, "SCREEN_ON_SPARK_FROM_BYTES", most_bytes)
        warehouse = open_warehouse(replayed.settings)
        suites = AuditedTables(replayed.job, replayed.settings, warehouse, replayed.plan, replayed.staged).frames()
        assert next(suite.note for suite, _ in suites if suite.name == SINK).startswith("Run over 0 of")
        assert asked == on_spark
        asked.clear()


def test_a_run_that_has_staged_nothing_cannot_be_audited(settings: Settings, orders_job: Job) -> None:
    plan.run(orders_job, settings)
    with pytest.raises(ConfigurationError, match="has staged nothing"):
        audit.run(orders_job, settings)


def test_sql_is_asked_on_spark_where_there_are_few_rows(replayed: Replayed) -> None:
    sql = expect("unexpected_rows_expectation", unexpected_rows_query="SELECT * FROM {batch} WHERE value.amount < -1e9")
    found = audited(replayed, "auto", dataclasses.replace(replayed.job, expectations={SINK: (sql,)}))
    (check,) = [check for check in found.checks if check.expectation == sql.type]
    assert (check.success, check.error) == (True, None)


def test_what_great_expectations_cannot_take_is_no_traceback(replayed: Replayed) -> None:
    wrong = expect("expect_column_values_to_not_be_null", column="key", catch_exceptions="perhaps")
    with pytest.raises(ConfigurationError, match=f"cannot run the checks: .*catch_exceptions.*topic {SINK}"):
        audited(replayed, "pandas", dataclasses.replace(replayed.job, expectations={SINK: (wrong,)}))
