"""DAG files under a real scheduler, `airflow standalone`, every task in a process of its own: a slice, and a migration.

The migration is done by the commands of its runbook.
"""

from __future__ import annotations

import json
import re
import subprocess
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hindstream import open_state
from hindstream.airflow import embedded
from hindstream.airflow.migration import STEPS
from hindstream.airflow.replay import PHASES, RUN
from hindstream.report.layout import report_path
from hindstream.runs import open_warehouse
from statelib.commits import CommitLog, Runs, published_through, read_hold
from tests.docs.blocks import Typed, parts, section
from tests.docs.curl import path_with_curl
from tests.effort import every_other
from tests.hindstream.airflow import rates
from tests.hindstream.airflow.standalone import Standalone, standalone
from tests.hindstream.spark.orders import DAY_MS, JOB_FILE, archive_orders, make_settings, orders

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hindstream.airflow.replay import TaskPer

pytestmark = [pytest.mark.spark, pytest.mark.airflow, pytest.mark.slow]

TASK_PER: dict[str, TaskPer] = {"orders": "phase", "orders-in-one": "run"}
DAILY = """
from datetime import UTC, datetime
from hindstream.airflow import replay_dag  # Airflow

dag = replay_dag(
    "jobs/orders.py:job", dag_id="{dag_id}", task_per="run", schedule="@daily",
    start_date=datetime(1970, 1, 1, tzinfo=UTC), **{given!r}, {others}
)
"""
CONSUMERS = """
import json
from airflow.sdk import DAG, PartitionedAssetTimetable, StartOfDayMapper, task
from hindstream.airflow import topic_asset

totals = topic_asset("orders-by-country", warehouse={warehouse!r})
by_day = PartitionedAssetTimetable(assets=totals, partition_mapper_config={{totals: StartOfDayMapper()}})
for dag_id, schedule in (("after-a-run", [totals]), ("after-a-day", by_day)):
    with DAG(dag_id, schedule=schedule, max_active_runs=1):

        @task
        def look(triggering_asset_events, dag_run):
            events = [event.extra for found in triggering_asset_events.values() for event in found]
            with open({told!r}, "a") as file:
                print(json.dumps([dag_run.dag_id, dag_run.partition_key, events]), file=file)

        look()
"""
ALL_DAYS = "catchup=True, end_date=datetime(1970, 1, 4, tzinfo=UTC), max_active_runs=3"
RUNBOOK = section("migrating-a-store.md", "By Airflow")
TRIGGER, REJECT, CLEAR, APPROVE = [part.command for part in parts(RUNBOOK) if isinstance(part, Typed)]
(DAG_FILE,) = re.findall(r"```python\n(.*?)```", RUNBOOK, re.DOTALL)


@dataclass
class Scheduler(Standalone):
    """With DAGs, for each of which the folder holds one with its warehouse."""

    def type(self, command: str) -> None:
        """What somebody types who is on call."""
        done = subprocess.run(["bash", "-c", command], env=self.environ, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    def answer(self, command: str, question: int = 1) -> None:
        """Types an answer to the n-th question of ``approve``, when the scheduler knows that it has been asked.

        Airflow loses an answer that comes earlier, and asks again after a minute.
        """
        asked = re.compile("TaskInstance Finished: dag_id=migrate-rates, task_id=approve,.* state=awaiting_input")
        self.wait(lambda: len(asked.findall(self.log.read_text())) >= question)
        self.type(command)

    def xcom(self, dag_id: str, task_id: str) -> Any:
        return self._api(f"dags/{dag_id}/dagRuns/first-try/taskInstances/{task_id}/xcomEntries/return_value")["value"]

    def links(self, dag_id: str, task_id: str) -> Any:
        """Where the buttons of a task lead."""
        return self._api(f"dags/{dag_id}/dagRuns/first-try/taskInstances/{task_id}/links")["extra_links"]

    def log_of(self, dag_id: str, task_id: str) -> str:
        """The log of a task's newest try."""
        folder = self.folder / "airflow" / "logs" / f"dag_id={dag_id}"
        files = sorted(folder.glob(f"run_id=*/task_id={task_id}/attempt=*.log"))
        return files[-1].read_text()

    def told(self, dag_id: str, text: str) -> bool:
        """Whether the log of any task says so."""
        folder = self.folder / "airflow" / "logs" / f"dag_id={dag_id}"
        return any(text in file.read_text() for file in folder.rglob("*.log"))

    def _api(self, path: str) -> Any:
        request = urllib.request.Request(f"{self.environ['AIRFLOW']}/api/v2/{path}")
        request.add_header("Authorization", f"Bearer {self.environ['TOKEN']}")
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)


def _write_dags(folder: Path) -> None:
    """DAGs of a job with a topic, as the embedded backfill writes them, and that of a migration from its runbook."""
    home = folder / "airflow"
    for dag_id, task_per in TASK_PER.items():
        settings = make_settings(folder / dag_id)
        archive_orders(settings, orders())
        given = {"warehouse": settings.warehouse, "state_dir": str(settings.state_dir), "engine": "local"}
        embedded._write_dag_file(home, dag_id, f"{JOB_FILE}:job", given, task_per)
    _write_daily_dags(folder)
    place = folder / "migrate-rates"
    rates.run_plain(place)
    others = f'"{place}/warehouse", state_dir="{place}/state", engine="local"'
    dag_file = DAG_FILE.replace("jobs/rates.py:job", f"{rates.__file__}:job").replace('"warehouse"', others)
    (home / "dags" / "migrate-rates.py").write_text(dag_file)


def _write_daily_dags(folder: Path) -> None:
    """A slice a day of a job whose file is in the DAG bundle: from now on, and of all days."""
    bundle = folder / "airflow" / "dags"
    (bundle / "jobs").mkdir()
    (bundle / "jobs" / "orders.py").write_text(JOB_FILE.read_text())
    (bundle / "team").mkdir()
    for dag_id, others in (("daily", ""), ("all-days", ALL_DAYS)):
        settings = make_settings(folder / dag_id)
        archive_orders(settings, orders())
        given = {"warehouse": settings.warehouse, "state_dir": str(settings.state_dir), "engine": "local"}
        dag_file = DAILY.format(dag_id=dag_id, given=given, others=others)
        (bundle / "team" / f"{dag_id}.py").write_text(dag_file)
    consumers = CONSUMERS.format(warehouse=settings.warehouse, told=str(folder / "told.jsonl"))
    (bundle / "team" / "consumers.py").write_text(consumers)


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scheduler]:
    folder = tmp_path_factory.mktemp("scheduler")
    _write_dags(folder)
    with standalone(folder) as airflow:
        airflow.environ["PATH"] = path_with_curl(airflow.environ["PATH"], tmp_path_factory.mktemp("bin"))
        yield Scheduler(**vars(airflow))


@pytest.fixture(scope="module")
def refused(scheduler: Scheduler) -> dict[str, str]:
    """Both DAGs have been triggered; the states of the migration's tasks after its refusal."""
    scheduler.wait(lambda: all("known" in scheduler.states(dag_id) for dag_id in (*TASK_PER, "migrate-rates")))
    scheduler.wait(scheduler.takes_token)
    scheduler.type(f"{TRIGGER} & airflow dags trigger orders && airflow dags trigger orders-in-one && wait $!")
    scheduler.answer(REJECT)
    return scheduler.ended("migrate-rates")


@pytest.mark.long
def test_refused_a_migration_changes_nothing(scheduler: Scheduler, refused: dict[str, str]) -> None:
    skipped = dict.fromkeys([*STEPS[2:], "roll_back"], "skipped")
    assert refused == {"plan": "success", "approve": "success", **skipped, "dag_run": "success"}
    warehouse = open_warehouse(make_settings(scheduler.folder / "migrate-rates"))
    assert CommitLog(warehouse, "rates").head_number() == 1
    assert read_hold(warehouse, "rates") is None
    assert "its changelog of 40 records" in scheduler.xcom("migrate-rates", "plan")["text"]
    assert "its changelog of 40 records" in scheduler.log_of("migrate-rates", "plan")


def test_approved_it_is_done(scheduler: Scheduler, refused: dict[str, str]) -> None:
    scheduler.type(CLEAR)
    scheduler.answer(APPROVE, question=2)
    states = scheduler.ended("migrate-rates")
    expected = {**dict.fromkeys(STEPS, "success"), "roll_back": "skipped", "dag_run": "success"}
    assert states == expected, scheduler.log.read_text()
    place = scheduler.folder / "migrate-rates"
    warehouse = open_warehouse(make_settings(place))
    assert (CommitLog(warehouse, "rates").head_number(), read_hold(warehouse, "rates")) == (2, None)
    assert scheduler.xcom("migrate-rates", "set_compaction_lag") == {"rates": 86_400_000 + 300_000}  # a day more
    made = CommitLog(warehouse, "rates").read(scheduler.xcom("migrate-rates", "restore"))
    link = f"/plugin/hindstream_run#{report_path('rates', made.run_id)}"
    assert scheduler.links("migrate-rates", "restore")["Run report"].endswith(link)
    assert made.run_id in (place / "warehouse" / report_path("rates", made.run_id)).read_text()
    compared = scheduler.xcom("migrate-rates", "verify")
    assert sum(part["equal"] for part in compared) == 5
    assert [part["differences"] for part in compared] == [0, 0]
    assert max(part["versions"] for part in compared) > 5
    (host,) = scheduler.xcom("migrate-rates", "clean_local_state")
    assert host["kept_files"] > 0
    with open_state(warehouse.uri(""), "rates", "rates", state_dir=place / "state") as store:
        assert store.kind == "versioned"


@pytest.mark.parametrize("dag_id", every_other(["orders", "orders-in-one"]))
def test_a_triggered_run_goes_through_all_phases(scheduler: Scheduler, refused: dict[str, str], dag_id: str) -> None:
    tasks = PHASES if TASK_PER[dag_id] == "phase" else (RUN,)
    assert scheduler.ended(dag_id) == {**dict.fromkeys(tasks, "success"), "dag_run": "success"}, (
        scheduler.log.read_text()
    )
    warehouse = open_warehouse(make_settings(scheduler.folder / dag_id))
    assert CommitLog(warehouse, "orders").head_number() == published_through(warehouse, "orders") == 1


def test_what_lies_before_a_data_interval_is_refused(scheduler: Scheduler) -> None:
    """The DAG is not paused, and begins with its newest interval, years after the records."""
    ((_, kind, state),) = scheduler.all_ended("daily", 1)
    assert (kind, state) == ("scheduled", "failed")
    assert scheduler.told("daily", "3,300 records from before this run's data interval, which begins at 2")
    assert scheduler.told("daily", "airflow backfill create --dag-id daily --from-date DATE --to-date 2")
    assert CommitLog(open_warehouse(make_settings(scheduler.folder / "daily")), "orders").head_number() == 0


def test_each_data_interval_is_a_slice(scheduler: Scheduler) -> None:
    """Three runs may be active: those of later intervals wait for the first."""
    days = [f"1970-01-0{day}" for day in (1, 2, 3, 4)]
    assert scheduler.all_ended("all-days", 4) == [(day, "scheduled", "success") for day in days]
    warehouse = open_warehouse(make_settings(scheduler.folder / "all-days"))
    log = CommitLog(warehouse, "orders")
    plans = [Runs(warehouse, "orders").plan(log.read(number).run_id) for number in (1, 2, 3, 4)]
    assert [plan.until_ms for plan in plans if plan is not None] == [day * DAY_MS for day in (1, 2, 3, 4)]


def test_what_is_published_starts_its_consumers(scheduler: Scheduler) -> None:
    """One DAG has the sink's asset as its schedule, and one its partitions: of a backfill of four days each has one."""
    ended = scheduler.all_ended("after-a-day", 4)
    assert [state for *_, state in ended] == ["success"] * 4
    told = [json.loads(line) for line in (scheduler.folder / "told.jsonl").read_text().splitlines()]
    of_days = sorted(
        (key, [event["commit"] for event in events]) for dag_id, key, events in told if dag_id == "after-a-day"
    )
    assert of_days == [(f"1970-01-0{day}", [day]) for day in (1, 2, 3, 4)]
    log = CommitLog(open_warehouse(make_settings(scheduler.folder / "all-days")), "orders")
    of_runs = [event for dag_id, _, events in told if dag_id == "after-a-run" for event in events]
    for event in sorted(of_runs, key=lambda event: event["commit"]):
        made = log.read(event["commit"])
        assert (event["job"], event["run_id"], event["topic"]) == ("orders", made.run_id, "orders-by-country")
        assert event["records"] == sum(sink.file.rows for sink in made.sinks if sink.topic == "orders-by-country")
        assert event["audit"]["warnings"] == 0
