"""Runs without Spark: the same bytes, and neither a Java process nor Great Expectations."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hindstream.report.layout import report_path
from hindstream.runs import open_warehouse
from hindstream.spark.phases import pipeline, plan, replay, replay_here
from statelib.commits import CommitLog, NothingToDo, Runs
from statelib.commits.versions.fork import fork
from statelib.errors.fault_points import observed
from statelib.errors.kinds import InternalError, RetryableError
from statelib.job.job import load_job
from tests.faults.killer import at_step
from tests.hindstream.spark.orders import DAY_MS, JOB_FILE, archive_orders, check_published, make_settings, orders
from tests.hindstream.spark.orders_job import SINK

if TYPE_CHECKING:
    from statelib.settings.settings import Settings


@pytest.fixture
def local(tmp_path: Path) -> Settings:
    settings = make_settings(tmp_path).model_copy(update={"engine": "local", "data_docs": "failed"})
    archive_orders(settings, orders())
    return settings


def digests(settings: Settings, job: str = "orders") -> list[Any]:
    """What commits are made of, without the names of files."""
    log = CommitLog(open_warehouse(settings), job)
    return [
        [
            sorted((sink.topic, sink.file.partition, sink.file.rows, sink.file.sha256) for sink in commit.sinks),
            {task_id: task.position for task_id, task in commit.tasks.items()},
        ]
        for commit in map(log.read, range(1, log.head_number() + 1))
    ]


def test_slices_without_spark(local: Settings) -> None:
    job = load_job(f"{JOB_FILE}:job")
    first = pipeline.run_slice(job, local, DAY_MS)
    assert isinstance(first, pipeline.SliceResult)
    assert isinstance(pipeline.run_slice(job, local), pipeline.SliceResult)
    assert pipeline.run_slice(job, local) == NothingToDo("orders", "no-new-records", 2)
    check_published(local, orders())
    assert first.audit.success
    assert {check.topic for check in first.audit.checks} == {*job.topology.sink_topics, "files", "ledger"}


@pytest.mark.parametrize("phase", ["publish", "maintain", "report"])
def test_what_failed_behind_the_commit_is_done_by_the_next_call(
    local: Settings, monkeypatch: pytest.MonkeyPatch, phase: str
) -> None:
    job, warehouse = load_job(f"{JOB_FILE}:job"), open_warehouse(local)

    def fails(*_: object) -> None:
        raise RetryableError("the store did not answer", next_step="run it again")

    with monkeypatch.context() as patch:
        patch.setattr(getattr(pipeline, phase), "run", fails)
        with pytest.raises(RetryableError):
            pipeline.run_slice(job, local)
    assert CommitLog(warehouse, "orders").head_number() == 1
    page = report_path("orders", "00000001-1")
    assert not warehouse.exists(page)
    assert pipeline.run_slice(job, local) == NothingToDo("orders", "no-new-records", 1)
    assert warehouse.exists(page)
    check_published(local, orders())


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_the_bytes_are_those_of_spark(local: Settings, tmp_path: Path) -> None:
    job, made = load_job(f"{JOB_FILE}:job"), []
    for engine in ("local", "spark"):
        settings = make_settings(tmp_path / engine).model_copy(update={"engine": engine, "data_docs": "failed"})
        archive_orders(settings, orders())
        for until in (DAY_MS, None):
            pipeline.run_slice(job, settings, until)
        audits = [
            Runs(open_warehouse(settings), "orders").audit(f"0000000{n}-1").model_dump(exclude={"seconds", "data_docs"})
            for n in (1, 2)
        ]
        made.append((digests(settings), audits))
    assert made[0][0] == made[1][0]
    assert made[0][1] == made[1][1]


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_the_bytes_of_a_fork_are_those_of_spark(local: Settings, tmp_path: Path) -> None:
    warehouse, made = open_warehouse(local), []
    pipeline.run_slice(load_job(f"{JOB_FILE}:job"), local, DAY_MS)
    fork(warehouse, "orders", "tried", now_ms=0)
    for engine in ("local", "spark"):
        settings = make_settings(tmp_path / engine, fork="tried").model_copy(update={"engine": engine})
        shutil.copytree(local.warehouse, settings.warehouse)
        job = load_job(f"{JOB_FILE}:job", fork=settings.fork)
        for until in (2 * DAY_MS, None):
            done = pipeline.run_slice(job, settings, until)
            assert isinstance(done, pipeline.SliceResult)
            assert done.audit.success
        made.append(digests(settings, "tried"))
        assert len(made[-1]) == 3
    assert made[0] == made[1]
    assert any(rows for topic, _, rows, _ in made[0][-1][0] if topic == f"{SINK}.tried")


def test_no_spark_and_no_great_expectations_are_loaded(local: Settings) -> None:
    assert loaded_by_a_run(local) in {"[]", "['pandas']"}  # which Arrow imports
    assert loaded_by_a_run(local) == "[]", "a run with nothing to do has no use for pandas either"


def loaded_by_a_run(local: Settings) -> str:
    """Which of some large packages a run loads."""
    given = ["--set", f"warehouse={local.warehouse}", "--set", f"state_dir={local.state_dir}"]
    code = (
        "import sys\nfrom hindstream.cli.main import app\n"
        f"app({['run', f'{JOB_FILE}:job', '--set', 'engine=local', '--set', 'data_docs=failed', *given]!r}, "
        "obj={}, standalone_mode=False)\n"
        "print(sorted({'pyspark', 'great_expectations', 'airflow', 'pandas'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_a_task_is_tried_again_and_its_last_error_counts(local: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    job, tries = load_job(f"{JOB_FILE}:job"), []
    real = replay_here.run_task

    def fails(times: int) -> Any:
        def run_task(work: Any, *, attempt: str, **others: Any) -> Any:
            tries.append(attempt)
            if len(tries) <= times:
                raise RetryableError("the store did not answer", next_step="run it again")
            return real(work, attempt=attempt, **others)

        return run_task

    planned = plan.run(job, local)
    assert not isinstance(planned, NothingToDo)
    monkeypatch.setattr(replay_here, "run_task", fails(10))
    with pytest.raises(RetryableError, match="did not answer"):
        replay.run(job, local)
    assert len(tries) == len(set(tries)) == 4
    tries.clear()
    monkeypatch.setattr(replay_here, "run_task", fails(3))
    assert replay.run(job, local).tasks
    assert json.dumps(tries)


def test_a_replay_that_was_stopped_does_what_is_left(local: Settings, caplog: pytest.LogCaptureFixture) -> None:
    job = load_job(f"{JOB_FILE}:job")
    planned = plan.run(job, local)
    assert not isinstance(planned, NothingToDo)

    def stop() -> None:
        raise KeyboardInterrupt

    with observed(at_step(("keep.created", 3), stop)), pytest.raises(KeyboardInterrupt):
        replay.run(job, local)
    with caplog.at_level(logging.INFO, logger="hindstream"):
        done = pipeline.run_slice(job, local)
    assert isinstance(done, pipeline.SliceResult)
    told = f"run {planned.run_id}: 3 of {len(planned.tasks)} tasks were done before"
    assert [message for message in caplog.messages if told in message]
    assert done.staged.done_before == 3
    page = Path(done.report).read_text()
    assert f"3 of {len(planned.tasks)} tasks had been done by an earlier try" in page
    check_published(local, orders())


def test_a_defect_names_its_task(local: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    job = load_job(f"{JOB_FILE}:job")
    plan.run(job, local)
    monkeypatch.setattr(replay_here, "run_task", lambda *_, **__: 1 // 0)
    with pytest.raises(InternalError, match="ZeroDivisionError") as caught:
        replay.run(job, local)
    assert "task" in caught.value.place
