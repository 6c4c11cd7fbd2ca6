"""What a real receiver gets of runs that succeed, fail, and are given up."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from openlineage.client import OpenLineageClient
from typer.testing import CliRunner

from hindstream.cli.main import app
from hindstream.lineage import emission, wanted
from hindstream.lineage.reported import copy_reported
from hindstream.runs import open_warehouse
from hindstream.spark.lake.ingest import ingest
from hindstream.spark.phases import audit, commit, pipeline, plan, publish, replay
from statelib.commits import CommitLog
from statelib.errors.kinds import ConfigurationError, InputError, RetryableError
from statelib.job.job import Job, expect, load_job
from statelib.job.kafka_topic import KafkaTopic
from statelib.job.lake_topic import LakeTopic
from tests.hindstream.lineage.receiver import receiver
from tests.hindstream.lineage.specified import Event, events_of
from tests.hindstream.spark.orders import DAY_MS, JOB_FILE, archive_orders, make_settings, orders
from tests.hindstream.spark.orders_job import SINK

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.settings.settings import Settings


@pytest.fixture(autouse=True)
def own_process(monkeypatch) -> None:
    """As if it had told nothing yet."""
    monkeypatch.setattr(emission, "_of_process", {})
    monkeypatch.setattr(wanted, "_missing_told", [])
    for name in ("PARENT_ID", "ROOT_PARENT_ID", "CONTEXT", "NAMESPACE", "URL"):
        monkeypatch.delenv(f"OPENLINEAGE_{name}", raising=False)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    others = {"engine": "local", "data_docs": "failed", "openlineage": True}
    settings = make_settings(tmp_path).model_copy(update=others)
    archive_orders(settings, orders(600))
    return settings


@pytest.fixture
def job() -> Job:
    return load_job(f"{JOB_FILE}:job")


def told(events: list[Event]) -> list[str]:
    return [f"{event['job']['name']} {event['eventType']}" for event in events]


def in_order(events: list[Event]) -> list[Event]:
    times = [event["eventTime"] for event in events]
    assert all(one <= other for one, other in pairwise(times))
    return events


def test_two_slices_in_one_process(settings: Settings, job: Job, monkeypatch) -> None:
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "shop")
    monkeypatch.setenv("OPENLINEAGE_PARENT_ID", "airflow/daily.replay/01a227b0-04da-763b-8503-3293c1b64935")
    kafka = replace(job, kafka_sinks=(KafkaTopic("totals", archive=SINK),), notes=("Made up.",))
    to_kafka = settings.model_copy(update={"kafka": {"bootstrap.servers": "broker:9093,other:9093"}})
    with receiver(monkeypatch) as events:
        assert isinstance(pipeline.run_slice(job, settings, DAY_MS), pipeline.SliceResult)
        first = len(events)
        monkeypatch.setattr(publish, "_publishes_to_kafka", lambda *_: False)  # there is no cluster here
        assert isinstance(pipeline.run_slice(kafka, to_kafka, 2 * DAY_MS), pipeline.SliceResult)
        assert isinstance(pipeline.run_slice(job, settings, 2 * DAY_MS), plan.NothingToDo)
    of_slice = ["START", "RUNNING", "audit START", "audit COMPLETE", "RUNNING", "RUNNING", "COMPLETE"]
    of_slice += ["maintain START", "maintain COMPLETE"]
    names = [f"orders {what}" if " " not in what else f"orders.{what}" for what in of_slice]
    assert told(in_order(events)) == names * 2
    runs = {event["job"]["name"]: event["run"]["runId"] for event in events[first:]}
    assert len({*runs.values()}) == 3
    assert len({event["run"]["runId"] for event in events}) == 6

    (start, *_), (end,) = events[first:], [e for e in events[first:] if told([e]) == ["orders COMPLETE"]]
    assert start["run"]["facets"]["parent"]["job"] == {"namespace": "airflow", "name": "daily.replay", "facets": {}}
    facets = end["run"]["facets"]
    assert facets["nominalTime"]["nominalStartTime"] == "1970-01-02T00:00:00.000Z"
    assert facets["nominalTime"]["nominalEndTime"] == "1970-01-03T00:00:00.000Z"
    assert facets["hindstream"]["runId"] == "00000002-1"
    assert {test["status"] for test in facets["test"]["tests"]} == {"pass"}
    assert end["job"]["namespace"] == "shop"
    assert end["job"]["facets"]["documentation"]["description"] == "Made up."
    assert end["job"]["facets"]["sourceCodeLocation"]["path"].endswith("tests/hindstream/spark/orders_job.py")
    (source,), (sink, topic) = end["inputs"], end["outputs"]
    assert (source["namespace"], source["name"]) == ("file", f"{settings.warehouse}/topics/orders")
    assert source["inputFacets"]["inputStatistics"]["rowCount"] == facets["hindstream"]["records"] > 0
    assert source["facets"]["version"]["datasetVersion"] == "1"
    assert (topic["namespace"], topic["name"]) == ("kafka://broker:9093", "totals")
    made = CommitLog(open_warehouse(settings), "orders").read(2)
    files = [file.file for file in made.sinks]
    statistics = sink["outputFacets"]["outputStatistics"]
    assert (statistics["rowCount"], statistics["fileCount"]) == (sum(f.rows for f in files), len(files))
    assert statistics["size"] == sum(f.size_bytes for f in files)
    assert [field["name"] for field in sink["facets"]["schema"]["fields"]][2:5] == [
        "key.key",
        "key.window_start",
        "key.window_end",
    ]
    (amount,) = sink["facets"]["columnLineage"]["fields"]["value.amount"]["inputFields"]
    assert (amount["name"], amount["field"]) == (source["name"], "value.amount")
    assert [use["subtype"] for use in amount["transformations"]] == ["AGGREGATION"]
    by = {f["field"]: f["transformations"] for f in sink["facets"]["columnLineage"]["dataset"]}
    assert {(use["subtype"], use.get("description")) for use in by["value.country"]} == {
        ("GROUP_BY", None),
        ("FILTER", "a Python function may read it"),
    }
    created = [
        e["outputs"][0]["facets"].get("lifecycleStateChange")
        for e in events
        if e["eventType"] == "COMPLETE" and e["outputs"]
    ]
    assert [bool(change) for change in created] == [True, False]

    audited = next(event for event in events[first:] if told([event]) == ["orders.audit COMPLETE"])
    assert audited["run"]["facets"]["parent"]["run"]["runId"] == end["run"]["runId"]
    assert audited["run"]["facets"]["parent"]["root"]["job"]["name"] == "daily.replay"
    assertions = audited["inputs"][0]["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert {(a["column"], a["severity"], a["success"]) for a in assertions if a.get("column") == "value.orders"} == {
        ("value.orders", "error", True)
    }


def test_an_audit_that_fails_and_the_next_try(settings: Settings, job: Job, monkeypatch) -> None:
    wrong = replace(job, expectations={SINK: (expect("expect_column_values_to_be_null", column="value.orders"),)})
    with receiver(monkeypatch) as events:
        with pytest.raises(InputError, match="the audit failed"):
            pipeline.run_slice(wrong, settings)
        assert told(events)[-2:] == ["orders.audit FAIL", "orders FAIL"]
        assert isinstance(pipeline.run_slice(job, settings), pipeline.SliceResult)
    fails = [event for event in in_order(events) if event["eventType"] == "FAIL"]
    assert {event["run"]["facets"]["errorMessage"]["message"].partition(":")[0] for event in fails} == {
        "the audit failed, 1 of 10 checks"
    }
    (failed,) = [
        a for a in fails[0]["inputs"][0]["inputFacets"]["dataQualityAssertions"]["assertions"] if not a["success"]
    ]
    assert failed["actual"].endswith(" unexpected")
    assert "orders ABORT" not in told(events)  # it had failed already
    assert fails[1]["run"]["runId"] != events[-1]["run"]["facets"]["parent"]["run"]["runId"]


def test_a_source_that_fails_and_one_that_warns(settings: Settings, job: Job, monkeypatch) -> None:
    missing = expect("expect_column_values_to_be_null", column="value.amount")
    warned = replace(job, expectations={"orders": (replace(missing, severity="warn"),)})
    with receiver(monkeypatch) as events:
        with pytest.raises(InputError, match="a source failed its checks"):
            pipeline.run_slice(replace(job, expectations={"orders": (missing,)}), settings)
        assert told(events) == ["orders START", "orders FAIL"]
        assert isinstance(pipeline.run_slice(warned, settings), pipeline.SliceResult)
    failed, audited, end = (
        next(event for event in in_order(events) if told([event]) == [what])
        for what in ("orders FAIL", "orders.audit COMPLETE", "orders COMPLETE")
    )
    assert [(test["status"], test["severity"]) for test in failed["run"]["facets"]["test"]["tests"]] == [
        ("fail", "error")
    ]
    for event, severity in ((failed, "error"), (audited, "warn"), (end, "warn")):
        source = event["inputs"][0]
        assert source["name"].endswith("topics/orders")
        (assertion,) = source["inputFacets"]["dataQualityAssertions"]["assertions"]
        assert (assertion["severity"], assertion["success"]) == (severity, False)


def test_phases_one_by_one_are_one_run(settings: Settings, job: Job, monkeypatch) -> None:
    """Each waits for its own events; a try that another slice takes the place of is given up."""
    with receiver(monkeypatch) as events:
        first = plan.run(job, settings.model_copy(update={"until": DAY_MS}))
        assert told(events) == ["orders START"]
        planned = plan.run(job, settings)
        assert not isinstance(planned, plan.NothingToDo)
        assert not isinstance(first, plan.NothingToDo)
        assert told(events[1:]) == ["orders ABORT", "orders START"]
        assert events[0]["run"]["runId"] == events[1]["run"]["runId"] != events[2]["run"]["runId"]
        for phase in (replay, audit, commit):
            phase.run(job, settings, planned.run_id)
        assert told(events)[-1] == "orders RUNNING"
        publish.run(job, settings)
    assert {event["run"]["runId"] for event in in_order(events)[2:] if event["job"]["name"] == "orders"} == {
        events[2]["run"]["runId"]
    }
    assert told(events)[-1] == "orders COMPLETE"


def test_what_fails_behind_the_commit_and_before_the_plan(settings: Settings, job: Job, monkeypatch) -> None:
    def lost(*_: Any) -> Any:
        raise RetryableError("the store did not answer")

    with receiver(monkeypatch) as events:
        with monkeypatch.context() as patch:
            patch.setattr(publish, "publish_commits", lost)
            with pytest.raises(RetryableError):
                pipeline.run_slice(job, settings, DAY_MS)
        assert told(events)[-1] == "orders FAIL"
        run_id = events[-1]["run"]["runId"]
        with monkeypatch.context() as patch:
            patch.setattr(plan, "check_expectations", lost)
            with pytest.raises(RetryableError):
                plan.run(job, settings)
    assert told(in_order(events))[-3:] == ["orders COMPLETE", "orders START", "orders FAIL"]  # published late; no plan
    assert [event["run"]["runId"] == run_id for event in events[-3:]] == [True, False, False]
    assert "the store did not answer" in events[-1]["run"]["facets"]["errorMessage"]["message"]


def test_a_receiver_that_is_away_is_told_of_once(settings: Settings, job: Job, monkeypatch, caplog) -> None:
    monkeypatch.setattr(emission, "WAIT_SECONDS", 0.5)
    monkeypatch.setattr(emission.Emission, "left_seconds", 0.5)
    transport = '{"type": "http", "url": "http://127.0.0.1:9", "retry": {"total": 1}}'
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT", transport)
    with caplog.at_level(logging.WARNING, "hindstream"):
        plan.run(job, settings)
        replay.run(job, settings)
    assert caplog.text.count("events of OpenLineage could not be sent") == 1
    assert "Next: check OPENLINEAGE_URL" in caplog.text


def test_without_the_client_a_run_goes_on(settings: Settings, job: Job, monkeypatch, caplog) -> None:
    for name in ("hindstream.lineage.emission", "openlineage.client"):
        monkeypatch.setitem(sys.modules, name, None)
    with caplog.at_level(logging.WARNING, "hindstream"):
        plan.run(job, settings)
        replay.run(job, settings)
    assert caplog.text.count("OpenLineage is told nothing") == 1
    assert "pip install 'hindstream[openlineage]'" in caplog.text


def test_nobody_waits_longer_than_the_time_there_is(monkeypatch, caplog) -> None:
    began, free = time.monotonic(), threading.Event()
    on_way = emission.Emission(NoClient(), left_seconds=0.2)
    on_way.submit(lambda: [free.wait()])
    on_way.wait()
    on_way.wait()
    assert 0.2 <= time.monotonic() - began < 2
    assert caplog.text.count("no answer within") == 1
    free.set()


class NoClient(OpenLineageClient):
    def __init__(self) -> None:
        self.sent: list[Any] = []

    def emit(self, event: Any) -> None:
        self.sent.append(event)


def test_phases_know_the_client_only_where_it_is_wanted() -> None:
    code = "import sys; import hindstream.spark.phases.plan; sys.exit('openlineage' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_copies_of_topics_of_kafka(settings: Settings, monkeypatch) -> None:
    topic = KafkaTopic("shop.orders", archive="orders")
    to_kafka = settings.model_copy(update={"kafka": {"bootstrap.servers": "broker:9093"}})
    with receiver(monkeypatch) as events:
        with copy_reported(topic, to_kafka):
            pass
        with copy_reported(topic, to_kafka) as copying:
            copying.is_new = False
        with pytest.raises(InputError), copy_reported(topic, to_kafka):
            raise InputError("Kafka has deleted 1 offset", next_step="wait")
    names = ["archive.orders START", "archive.orders COMPLETE", "archive.orders START", "archive.orders FAIL"]
    assert told(in_order(events)) == names
    (source,), (archive,) = events[1]["inputs"], events[1]["outputs"]
    assert (source["namespace"], source["name"]) == ("kafka://broker:9093", "shop.orders")
    assert (archive["namespace"], archive["name"]) == ("file", f"{settings.warehouse}/topics/orders")
    assert archive["facets"]["version"]["datasetVersion"] == "1"
    assert "Kafka has deleted 1 offset" in events[-1]["run"]["facets"]["errorMessage"]["message"]


def test_files_of_a_lake(settings: Settings, monkeypatch, tmp_path: Path) -> None:
    (tmp_path / "lake" / "day=1").mkdir(parents=True)
    pq.write_table(orders(60), tmp_path / "lake" / "day=1" / "orders.parquet")
    topic = LakeTopic("loaded", f"{tmp_path}/lake/*/*.parquet", key="key", timestamp="timestamp")
    with receiver(monkeypatch) as events:
        loaded = ingest(topic, settings)
        ingest(topic, settings)  # nothing is new
        with pytest.raises(ConfigurationError):
            ingest(replace(topic, key="nothing"), settings.model_copy(update={"warehouse": f"{tmp_path}/other"}))
    assert told(in_order(events)) == [f"ingest.loaded {state}" for state in ("START", "COMPLETE", "START", "FAIL")]
    (source,), (archive,) = events[1]["inputs"], events[1]["outputs"]
    assert (source["namespace"], source["name"]) == ("file", f"{tmp_path}/lake")
    assert (archive["namespace"], archive["name"]) == ("file", f"{settings.warehouse}/topics/loaded")
    assert archive["outputFacets"]["outputStatistics"]["rowCount"] == loaded.records == 66
    assert (
        "no row has such a field (setting key, field nothing)" in events[-1]["run"]["facets"]["errorMessage"]["message"]
    )


def test_rollbacks(settings: Settings, job: Job, monkeypatch) -> None:
    quiet = settings.model_copy(update={"openlineage": False})
    for day in (1, 2):
        pipeline.run_slice(job, quiet, day * DAY_MS)
    given = ["--set", f"warehouse={settings.warehouse}", "--set", f"state_dir={settings.state_dir}"]
    with receiver(monkeypatch) as events:
        on = [*given, "--set", "openlineage=true"]
        CliRunner().invoke(
            app, ["state", "rollback", job.name, "--to", "1", "--yes", *on], catch_exceptions=False, obj={}
        )
    assert told(in_order(events)) == [f"{job.name}.rollback START", f"{job.name}.rollback COMPLETE"]
    (sink,) = events[1]["outputs"]
    assert sink["name"].endswith(f"topics/{SINK}")
    assert sink["facets"]["lifecycleStateChange"]["lifecycleStateChange"] == "OVERWRITE"
    assert events[1]["run"]["facets"]["hindstream"]["commit"] == 3


def test_what_is_tried_reaches_nobody(settings: Settings, job: Job, monkeypatch) -> None:
    pipeline.run_slice(job, settings.model_copy(update={"openlineage": False}), DAY_MS)
    given = ["--set", f"warehouse={settings.warehouse}", "--set", f"state_dir={settings.state_dir}"]
    with receiver(monkeypatch) as events:
        on = [*given, "--set", "openlineage=true", "--engine", "local"]
        tried = CliRunner().invoke(app, ["try", f"{JOB_FILE}:job", *on], catch_exceptions=False, obj={})
        assert tried.exit_code == 0
        assert events == []
        CliRunner().invoke(app, ["run", f"{JOB_FILE}:job", *on], catch_exceptions=False, obj={})
        assert events


def test_events_in_a_file(settings: Settings, job: Job, monkeypatch, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT", f'{{"type": "file", "log_file_path": "{file}", "append": true}}')
    plan.run(job, settings)
    assert [event["eventType"] for event in events_of(file)] == ["START"]
