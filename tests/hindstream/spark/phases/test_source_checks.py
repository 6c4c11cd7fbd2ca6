"""What is expected of sources: looked at before the replay, whole or a sample; what fails, what warns, what is told."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from hindstream.lineage.datasets import Datasets
from hindstream.report.layout import report_path
from hindstream.runs import open_warehouse
from hindstream.spark.phases import audited_records, pipeline, plan, replay
from hindstream.spark.phases.source_checks import source_slice
from hindstream.spark.screening.slices import in_sample
from hindstream.spark.validation.validator import Validator
from statelib.commits import CommitLog, NothingToDo, Runs
from statelib.commits.archives import open_archive
from statelib.errors.kinds import InputError
from statelib.job.job import Job, expect, load_job
from tests.hindstream.spark.orders import DAY_MS, JOB_FILE, archive_orders, make_settings, orders
from tests.hindstream.spark.orders_job import SINK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from statelib.documents.manifests import AuditCheck
    from statelib.documents.plans import Plan
    from statelib.settings.settings import Settings

BETWEEN = "expect_column_values_to_be_between"
GOOD = (
    expect("expect_column_values_to_not_be_null", column="value.order_id"),
    expect(BETWEEN, column="value.amount", min_value=0),
)
TOO_MUCH = {"column": "value.amount", "max_value": 400}
REPEATED = expect("expect_compound_columns_to_be_unique", column_list=["value.order_id", "key"])


@pytest.fixture
def local(tmp_path: Path) -> Settings:
    settings = make_settings(tmp_path).model_copy(update={"engine": "local", "data_docs": "failed"})
    archive_orders(settings, orders(600))
    return settings


def job(*expected: Any, **others: Any) -> Job:
    of_file = load_job(f"{JOB_FILE}:job")
    return replace(of_file, expectations={**of_file.expectations, "orders": expected}, **others)


def planned(of: Job, settings: Settings) -> Plan:
    made = plan.run(of, settings)
    assert not isinstance(made, NothingToDo)
    return made


def of_sources(checks: tuple[AuditCheck, ...]) -> list[AuditCheck]:
    return [check for check in checks if check.topic == "orders"]


def test_what_is_right_passes_without_great_expectations(
    local: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr("hindstream.spark.phases.examined.examined", None)  # would be called
    done = pipeline.run_slice(job(*GOOD), local, DAY_MS)
    assert isinstance(done, pipeline.SliceResult)
    assert [(check.success, check.severity) for check in of_sources(done.audit.checks)] == [(True, "fail")] * 2
    assert done.staged.source_checks == done.audit.checks[:2]
    assert f"passed 2 checks of its sources ({done.plan.records} records)" in caplog.text


def test_a_failure_stops_the_run_before_the_replay(local: Settings, caplog: pytest.LogCaptureFixture) -> None:
    wrong = job(expect(BETWEEN, **TOO_MUCH), *GOOD)
    run = planned(wrong, local)
    with pytest.raises(InputError, match=r"a source failed its checks before the replay, 1 of 3 checks") as raised:
        replay.run(wrong, local)
    place, warehouse = raised.value.place, open_warehouse(local)
    assert '"value.amount": 4' in caplog.text
    assert place["topic"] == "orders"
    shown = f"hindstream show orders --partition {place['partition']} --from {place['offset']} --limit 1"
    assert shown in raised.value.next_step
    found = Runs(warehouse, "orders").audit(run.run_id)
    assert found is not None
    expected = [row for batch in read(local) for row in batch if row["amount"] > 400]
    assert found.checks[0].unexpected_count == len(expected)
    assert found.checks[0].unexpected_rows[0]["offset"] == place["offset"]
    page = Path(str(place["report"])).read_text()
    assert "a source is not as expected, so nothing was replayed" in page
    assert "Expect" in Path(str(place["data_docs"])).read_text()
    assert Runs(warehouse, "orders").staged(run.run_id) is None
    assert CommitLog(warehouse, "orders").head() is None
    with pytest.raises(InputError, match="failed its checks"):  # it stays in quarantine, whatever the job says now
        replay.run(job(*GOOD), local)
    again = pipeline.run_slice(job(*GOOD), local)
    assert isinstance(again, pipeline.SliceResult)
    assert again.plan.run_id == "00000001-2"


def read(settings: Settings) -> list[list[dict[str, Any]]]:
    archive = open_archive(open_warehouse(settings), "orders")
    return [archive.reader(n).read_all().column("value").to_pylist() for n in range(archive.partitions)]


def test_a_warning_is_counted_and_shown_and_the_run_goes_on(local: Settings, caplog: pytest.LogCaptureFixture) -> None:
    settings = local.model_copy(update={"data_docs": "report"})
    warned = job(expect(BETWEEN, **TOO_MUCH, severity="warn"), replace(REPEATED, severity="warn"), *GOOD)
    done = pipeline.run_slice(warned, settings)
    assert isinstance(done, pipeline.SliceResult)
    assert done.audit.success
    assert [check.expectation for check in done.audit.warnings] == [BETWEEN, REPEATED.type]
    assert done.audit.warnings[1].unexpected_count == 2 * 60  # one in ten is there twice
    assert caplog.text.count("a check warns: orders:") == 2
    warehouse = open_warehouse(settings)
    page = warehouse.get(report_path("orders", done.plan.run_id)).decode()
    assert "2 warnings" in page
    docs = Path(settings.warehouse) / "jobs/orders" / str(done.audit.data_docs)
    pages = [file.read_text() for file in docs.parent.rglob("validations/orders/**/*.html")]
    assert len(pages) == 1
    assert "value.amount" in pages[0]
    assert "Failed" in pages[0]
    data = Datasets(warned, settings, warehouse, done.plan, done.staged, None)
    (source,) = data.inputs(done.audit)
    assertions = source.inputFacets["dataQualityAssertions"].assertions  # type: ignore[index, union-attr]
    assert [(a.severity, a.success) for a in assertions][:3] == [("warn", False), ("warn", False), ("error", True)]
    (audited, _) = data.audited(done.audit)
    assert audited.name == source.name


def test_warnings_of_sinks_pass_too(local: Settings) -> None:
    of_file = load_job(f"{JOB_FILE}:job")
    few = expect(BETWEEN, column="value.orders", min_value=10**6, severity="warn")
    warned = replace(of_file, expectations={SINK: (few,)})
    done = pipeline.run_slice(warned, local)
    assert isinstance(done, pipeline.SliceResult)
    assert [(check.topic, check.stops) for check in done.audit.warnings] == [(SINK, False)]


def test_only_the_slice_is_looked_at(local: Settings) -> None:
    first = pipeline.run_slice(job(expect("expect_table_row_count_to_equal", value=0, severity="warn")), local, DAY_MS)
    assert isinstance(first, pipeline.SliceResult)
    assert of_sources(first.audit.checks)[0].observed == first.plan.records
    before = {"column": "timestamp", "max_value": "1970-01-02T00:00Z"}
    rest = job(expect("expect_column_max_to_be_between", severity="warn", **before))
    second = pipeline.run_slice(rest, local)
    assert isinstance(second, pipeline.SliceResult)
    assert second.plan.records + first.plan.records == 660
    assert not of_sources(second.audit.checks)[0].success


@pytest.mark.parametrize("engine", ["pandas", "screened", "auto"])
def test_samples_are_the_same_on_every_engine(local: Settings, engine: str) -> None:
    sampled = job(expect(BETWEEN, **TOO_MUCH), source_samples={"orders": 0.25})
    settings = local.model_copy(update={"audit_engine": engine})
    run = planned(sampled, settings)
    with pytest.raises(InputError, match="failed its checks"):
        replay.run(sampled, settings)
    (check,) = Runs(open_warehouse(settings), "orders").audit(run.run_id).checks  # type: ignore[union-attr]
    archive = open_archive(open_warehouse(settings), "orders")
    expected = 0
    for partition in range(archive.partitions):
        table = archive.reader(partition).read_all()
        chosen = table.filter(pa.array(in_sample(table.column("offset").to_numpy(), partition, 0.25)))
        expected += sum(row["amount"] > 400 for row in chosen.column("value").to_pylist())
    assert (check.unexpected_count, check.share) == (expected, 0.25)


def test_a_sample_is_a_share_of_the_records_and_golden() -> None:
    offsets = np.arange(100_000)
    chosen = [in_sample(offsets, partition, 0.1) for partition in (0, 1)]
    assert [abs(int(part.sum()) - 10_000) < 500 for part in chosen] == [True, True]
    assert abs(int((chosen[0] & chosen[1]).sum()) - 1_000) < 200
    assert np.flatnonzero(chosen[0])[:5].tolist() == GOLDEN
    assert (in_sample(offsets, 0, 0.05) <= chosen[0]).all()  # a smaller sample is part of a larger one


GOLDEN = [2, 32, 33, 41, 42]


@pytest.mark.spark
def test_spark_says_the_same(spark: SparkSession, local: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    of_all = (
        expect("expect_column_mean_to_be_between", column="value.amount", max_value=1, severity="warn"),
        expect("expect_column_values_to_be_in_set", column="value.country", value_set=["de", "fr"], mostly=0.5),
        expect(BETWEEN, **TOO_MUCH, severity="warn"),
        replace(REPEATED, severity="warn"),
    )
    on_spark = local.model_copy(update={"engine": "spark"})
    monkeypatch.setattr(audited_records, "SCREEN_ON_SPARK_FROM_ROWS", 0)
    answers = []
    for engine in ("pandas", "screened", "spark"):
        settings = on_spark.model_copy(update={"audit_engine": engine})
        checked = job(*of_all)
        run = planned(checked, settings)
        (source,) = run.sources
        records = source_slice(checked, run, source, open_warehouse(settings), settings)
        validator = Validator(Path(settings.warehouse) / f"gx-{engine}")
        found = [check for frame in records.frames() for check in validator.validate(*frame, run="1").checks]
        answers.append({check.expectation: (check.success, check.unexpected_count) for check in found})
    assert answers[0] == answers[1] == answers[2]
    assert answers[0]["expect_column_values_to_be_in_set"][0]
    assert answers[0][REPEATED.type] == (False, 120)
