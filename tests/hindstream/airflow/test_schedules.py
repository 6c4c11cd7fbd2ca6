"""Schedules and their runs under a real scheduler: without intervals, by hand, and in a time zone.

`test_scheduler` has days in UTC, `test_backfills` backfills.
"""

from __future__ import annotations

import json
import subprocess
import urllib.request
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hindstream.airflow import topic_asset
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
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo
from airflow.sdk import CronTriggerTimetable
from hindstream.airflow import replay_dag, topic_asset

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
    "by-hand": '"@daily", start_date=datetime(1970, 1, 1, tzinfo=UTC), end_date=datetime(1970, 1, 4, tzinfo=UTC)',
    "months": '"@monthly", start_date=datetime(1970, 4, 1, tzinfo=(zone := ZoneInfo("America/New_York"))), '
    "end_date=datetime(1970, 5, 2, tzinfo=zone), catchup=True, "
    'inlets=[topic_asset("orders", warehouse={warehouse!r})]',
}
"""By the ids of DAGs."""
NEW_YORK = ZoneInfo("America/New_York")
MONTHS = [datetime(1970, month, 1, tzinfo=NEW_YORK).astimezone(UTC) for month in (4, 5, 6)]
"""When they begin there: at five o'clock, and behind the change of clocks in April at four."""
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
        archive_orders(settings, of_months() if dag_id == "months" else orders())
        given = {"warehouse": settings.warehouse, "state_dir": str(settings.state_dir), "engine": "local"}
        schedule = schedule.format(warehouse=settings.warehouse)  # noqa: PLW2901
        job = JOB_FILE
        if dag_id == "broken":
            job = folder / "broken.py"
            job.write_text(JOB_FILE.read_text() + JOB.format(broken=str(folder / "is-broken")))
        text = DAG.format(job=job, dag_id=dag_id, schedule=schedule, given=given)
        (folder / "airflow" / "dags" / f"{dag_id}.py").write_text(text)
    with standalone(folder) as one:
        yield one


def of_months() -> pa.Table:
    """Orders of two months in New York, from their second hour on."""
    table = orders(days=61)
    later = pa.scalar(MONTHS[0] - datetime(1970, 1, 1, tzinfo=UTC) + timedelta(hours=1))
    return table.set_column(2, "timestamp", pc.add(table["timestamp"], later.cast(pa.duration("ms"))))


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


def test_months_of_a_time_zone_are_slices_across_a_change_of_its_clocks(airflow: Standalone) -> None:
    assert airflow.all_ended("months", 2) == [(day, "scheduled", "success") for day in ("1970-04-01", "1970-05-01")]
    time = of_months()["timestamp"].to_pylist()
    assert [(plan.until_ms, plan.records) for plan in plans(airflow.folder / "months")] == [
        (end.timestamp() * 1000, sum(begin <= one < end for one in time)) for begin, end in pairwise(MONTHS)
    ]


def test_of_the_sources_only_those_that_are_named_are_in_the_graph_of_assets(airflow: Standalone) -> None:
    """The runs have ended, in which they have become inlets."""
    airflow.all_ended("once", 1)
    airflow.all_ended("months", 2)
    asked = """select uri from task_inlet_asset_reference join asset on asset.id = asset_id where dag_id = :dag_id"""
    named = topic_asset("orders", warehouse=make_settings(airflow.folder / "months").warehouse)
    assert (airflow.ask(asked, "once"), airflow.ask(asked, "months")) == ([], [(named.uri,)])


def test_by_hand_a_run_ends_with_its_interval_and_without_one_with_all_there_is(airflow: Standalone) -> None:
    """As somebody triggers it in the UI with a logical date, and then at the command line without one."""
    airflow.wait(lambda: "known" in airflow.states("by-hand"))
    airflow.wait(airflow.takes_token)
    request = urllib.request.Request(
        f"{airflow.environ['AIRFLOW']}/api/v2/dags/by-hand/dagRuns",
        data=json.dumps({"logical_date": "1970-01-03T06:00:00Z"}).encode(),
        headers={"Authorization": f"Bearer {airflow.environ['TOKEN']}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        assert json.load(answer)["data_interval_end"] == "1970-01-03T00:00:00Z"
    assert airflow.all_ended("by-hand", 1) == [("1970-01-02", "manual", "success")]
    trigger = [AIRFLOW, "dags", "trigger", "by-hand"]
    subprocess.run(trigger, env=airflow.environ, check=True, capture_output=True)
    assert [state for *_, state in airflow.all_ended("by-hand", 2)] == ["success"] * 2
    asked = "select logical_date, data_interval_end from dag_run where dag_id = :dag_id and logical_date is null"
    assert airflow.ask(asked, "by-hand") == [(None, None)]
    first, second = plans(airflow.folder / "by-hand")
    assert (first.until_ms, second.until_ms) == (2 * DAY_MS, None)
    assert first.records + second.records == 3_300
    subprocess.run(
        [*trigger, "--logical-date", "1970-01-03T12:00Z"], env=airflow.environ, check=True, capture_output=True
    )
    asked = "select max(data_interval_end) > '2024' from dag_run where dag_id = :dag_id"
    assert airflow.ask(asked, "by-hand") == [(1,)], "the command gives it the newest interval, whatever its date"
