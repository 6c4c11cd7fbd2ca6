"""Schedules without intervals of their own under a real scheduler: once, again and again, and one that is refused."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from hindstream.runs import open_warehouse
from statelib.commits import CommitLog, Runs
from tests.hindstream.airflow.airflow_environ import AIRFLOW
from tests.hindstream.airflow.standalone import Standalone, standalone
from tests.hindstream.spark.orders import DAY_MS, JOB_FILE, archive_orders, make_settings, orders

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from statelib.documents.plans import Plan

pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]

DAG = """
from datetime import timedelta
from airflow.sdk import CronTriggerTimetable
from hindstream.airflow import replay_dag

dag = replay_dag(
    "{job}:job", dag_id="{dag_id}", task_per="run", schedule={schedule}, retry_delay=timedelta(seconds=2), **{given!r}
)
"""
SCHEDULES = {
    "once": '"@once"',
    "continuous": '"@continuous"',
    "broken": '"@continuous"',
    "newest": '"@daily", before_interval="replay"',
    "moments": 'CronTriggerTimetable("@daily", timezone="UTC", run_immediately=True)',
}
"""By the ids of DAGs."""
JOB = """
from pathlib import Path

if Path({broken!r}).exists():
    raise ValueError("somebody has broken the job")
"""


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """With DAGs that nobody has paused, years after their records."""
    folder = tmp_path_factory.mktemp("schedules")
    (folder / "airflow" / "dags").mkdir(parents=True)
    for dag_id, schedule in SCHEDULES.items():
        settings = make_settings(folder / dag_id)
        archive_orders(settings, orders())
        given = {"warehouse": settings.warehouse, "state_dir": str(settings.state_dir), "engine": "local"}
        job = JOB_FILE
        if dag_id == "broken":
            job = folder / "broken.py"
            job.write_text(JOB_FILE.read_text() + JOB.format(broken=str(folder / "is-broken")))
        text = DAG.format(job=job, dag_id=dag_id, schedule=schedule, given=given)
        (folder / "airflow" / "dags" / f"{dag_id}.py").write_text(text)
    with standalone(folder) as one:
        yield one


def plans(folder: Path) -> list[Plan]:
    """What the commits of a DAG's job have replayed, the oldest first."""
    warehouse = open_warehouse(make_settings(folder))
    log = CommitLog(warehouse, "orders")
    found = [Runs(warehouse, "orders").plan(log.read(number).run_id) for number in range(1, log.head_number() + 1)]
    return [plan for plan in found if plan is not None]


def test_once_is_everything_there_is(airflow: Standalone) -> None:
    ((_, kind, state),) = airflow.all_ended("once", 1)
    assert (kind, state) == ("scheduled", "success")
    (plan,) = plans(airflow.folder / "once")
    assert plan.until_ms is None
    assert plan.records == 3_300


def test_what_lies_before_an_interval_is_replayed_with_it_if_that_is_asked_for(airflow: Standalone) -> None:
    ((day, _, state),) = airflow.all_ended("newest", 1)
    assert state == "success"
    (plan,) = plans(airflow.folder / "newest")
    assert plan.records == 3_300
    assert plan.until_ms is not None
    assert plan.until_ms > 20_000 * DAY_MS
    assert day > "2024"


def test_a_schedule_of_moments_has_no_slices(airflow: Standalone) -> None:
    ((_, _, state),) = airflow.all_ended("moments", 1)
    assert state == "failed"
    logs = airflow.folder / "airflow" / "logs" / "dag_id=moments"
    said = "\n".join(log.read_text() for log in logs.rglob("*.log"))
    assert "runs of this schedule have no data interval" in said
    assert "give a cron expression or a timedelta, or before_interval=" in said
    assert plans(airflow.folder / "moments") == []


def test_again_and_again_each_run_takes_what_has_come_meanwhile(airflow: Standalone) -> None:
    """Records that come late, from before the interval of the run that finds them, are no reason to refuse."""
    folder = airflow.folder / "continuous"
    airflow.wait(lambda: [state for *_, state in airflow.runs("continuous")].count("success") > 1)
    (first,) = plans(folder)
    assert first.records == 3_300
    archive_orders(make_settings(folder), orders(200, days=12, seed=8), version=2)
    airflow.wait(lambda: len(plans(folder)) > 1)
    later = plans(folder)[1]
    assert later.records == 220
    assert later.until_ms is not None
    assert first.until_ms is not None
    assert later.until_ms > first.until_ms
    assert {state for *_, state in airflow.runs("continuous")} <= {"success", "running", "queued"}


def test_what_fails_again_and_again_is_paused_and_then_goes_on_with_all_that_is_left(airflow: Standalone) -> None:
    """The runs that have failed are not cleared: the next one takes up what they have left."""
    folder, switch = airflow.folder / "broken", airflow.folder / "is-broken"
    airflow.wait(lambda: plans(folder))
    before = len(plans(folder))
    switch.touch()
    archive_orders(make_settings(folder), orders(200, days=12, seed=8), version=2)
    airflow.wait(lambda: airflow.is_paused("broken"))
    failed = [state for *_, state in airflow.runs("broken")].count("failed")
    assert failed == 3
    archive_orders(make_settings(folder), orders(100, days=13, seed=9), version=3)
    switch.unlink()
    subprocess.run(
        [AIRFLOW, "dags", "unpause", "--yes", "broken"], env=airflow.environ, check=True, capture_output=True
    )
    airflow.wait(lambda: sum(plan.records for plan in plans(folder)) == 3_300 + 220 + 110)
    assert len(plans(folder)) <= before + 2
    assert [state for *_, state in airflow.runs("broken")].count("failed") == failed
