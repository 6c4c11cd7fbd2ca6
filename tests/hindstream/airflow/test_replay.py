"""DAGs as Airflow sees them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from hindstream.slices import slice_ends_ms

pytestmark = pytest.mark.airflow

ROOT = Path(__file__).parents[3]
DAG_FILE = ROOT / "dags" / "flight_delays.py"
STACK_DAG_FILE = ROOT / "docker" / "dags" / "flight_delays.py"
PARSE = """
import json, sys
from datetime import UTC, datetime
from pathlib import Path
from hindstream.airflow import migration_dag, replay_dag
from airflow.dag_processing.dagbag import DagBag

timed = replay_dag("a.b:job", schedule="0 0 1 * *", warehouse="w")
sealed = replay_dag("a.b:job", end_of_input="seal")
one_task = replay_dag("a.b:job", task_per="run", archive="a.b:topics", dag_id="one-task")
migration = migration_dag("a.b:job", stores=["s", "t"], warehouse="w")
bag = DagBag(dag_folder=sys.argv[1])
dag = bag.dags["flight-delays"]
stack = DagBag(dag_folder=sys.argv[2])
print(json.dumps({
    "errors": {str(file): error for file, error in bag.import_errors.items()},
    "tasks": dag.task_ids,
    "downstream": {task.task_id: sorted(task.downstream_task_ids) for task in dag.tasks},
    "active": dag.max_active_runs,
    "catchup": dag.catchup,
    "until": dag.params["until"],
    "end_of_input": [dag.params["end_of_input"], sealed.params["end_of_input"]],
    "one_task": {task.task_id: sorted(task.downstream_task_ids) for task in one_task.tasks},
    "timetable": type(dag.timetable).__name__,
    "id": timed.dag_id,
    "migration": {
        "id": migration.dag_id,
        "stores": migration.params["stores"],
        "schedule": migration.schedule,
        "downstream": {task.task_id: sorted(task.downstream_task_ids) for task in migration.tasks},
        "leaves": sorted(task.task_id for task in migration.leaves),
        "roll_back": migration.get_task("roll_back").trigger_rule,
        "approve": type(migration.get_task("approve")).__name__,
    },
    "stack": {
        "errors": list(stack.import_errors.values()),
        "tasks": stack.dags["flight-delays"].task_ids,
        "archive": sorted(stack.dags["flight-delays"].get_task("archive").downstream_task_ids),
        "end": str(stack.dags["flight-delays"].end_date),
    },
    "heavy": [name for name in ("pyspark", "great_expectations", "numba", "pyarrow") if name in sys.modules],
}))
"""


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What Airflow reads from the demo's DAG file."""
    environ = os.environ | {
        "AIRFLOW_HOME": str(tmp_path_factory.mktemp("airflow")),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "0",
    }
    command = [sys.executable, "-c", PARSE, str(DAG_FILE), str(STACK_DAG_FILE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def test_the_demos_dag_file_is_found_and_loads(parsed: dict[str, object]) -> None:
    assert parsed["errors"] == {}


def test_one_task_for_each_phase_in_order(parsed: dict[str, object]) -> None:
    phases = ["plan", "replay", "audit", "commit", "publish", "maintain", "report"]
    assert parsed["tasks"] == phases
    downstream = parsed["downstream"]
    assert isinstance(downstream, dict)
    assert all(after in downstream[phase] for phase, after in pairwise(phases))


def test_one_task_for_all_phases(parsed: dict[str, object]) -> None:
    assert parsed["one_task"] == {"archive": ["run"], "run": []}


def test_one_run_at_a_time_over_real_intervals(parsed: dict[str, object]) -> None:
    assert parsed["active"] == 1
    assert parsed["catchup"] is False
    assert parsed["timetable"] == "CronDataIntervalTimetable"
    assert parsed["until"] is None


def test_a_run_may_begin_with_a_copy_from_kafka(parsed: dict[str, object]) -> None:
    stack = parsed["stack"]
    assert isinstance(stack, dict)
    assert (stack["errors"], stack["archive"]) == ([], ["plan"])
    assert stack["tasks"][:2] == ["archive", "plan"]


def test_a_dag_may_end(parsed: dict[str, object]) -> None:
    stack = parsed["stack"]
    assert isinstance(stack, dict)
    assert stack["end"].startswith("2014-01-01")


def test_a_run_seals_only_if_it_is_asked_to(parsed: dict[str, object]) -> None:
    assert parsed["end_of_input"] == ["hold", "seal"]


def test_a_dag_is_named_after_its_job(parsed: dict[str, object]) -> None:
    assert parsed["id"] == "replay_b"


def test_a_migration_is_a_chain_of_steps_that_nobody_schedules(parsed: dict[str, object]) -> None:
    migration = parsed["migration"]
    assert isinstance(migration, dict)
    assert (migration["id"], migration["stores"], migration["schedule"]) == ("migrate_b", ["s", "t"], None)
    steps = ["plan", "approve", "hold", "clean_local_state", "set_compaction_lag", "restore", "verify", "release"]
    assert all(after in migration["downstream"][step] for step, after in pairwise(steps))
    assert migration["approve"] == "ApprovalOperator"


def test_a_failed_migration_stays_failed_whatever_its_way_back_does(parsed: dict[str, object]) -> None:
    migration = parsed["migration"]
    assert isinstance(migration, dict)
    assert migration["leaves"] == ["release", "roll_back"]
    assert migration["roll_back"] == "one_failed"


def test_parsing_imports_nothing_heavy(parsed: dict[str, object]) -> None:
    assert parsed["heavy"] == []


def test_airflow_does_not_pass_over_the_file() -> None:
    text = DAG_FILE.read_text().lower()
    assert "airflow" in text
    assert "dag" in text


MADE = """
import sys
from hindstream.airflow import migration_dag, replay_dag, replay_task_group
from statelib.errors.kinds import ConfigurationError

for schedule in ("@once", "@continuous", "@daily", "0 0 1 * *", None):
    dag = replay_dag("a.b:job", schedule=schedule)
    print(schedule, type(dag.timetable).__name__)
for make in (
    lambda: replay_dag("a.b:job", warehose="w"),
    lambda: replay_dag("a.b:job", shedule="@daily"),
    lambda: migration_dag("a.b:job", stores=["s"], warehose="w"),
    lambda: replay_dag("a.b:job", batch_records="many"),
    lambda: migration_dag("a.b:job", stores=["s"], keep_commits=0),
    lambda: replay_dag("a.b:job", until="2013-01-01T00:00Z"),
    lambda: replay_dag(object()),
    lambda: replay_dag("a.b:job", end_of_input="Seal"),
    lambda: replay_dag("a.b:job", start_date="2013-01-01"),
    lambda: replay_dag("a.b:job", tags="hourly"),
    lambda: migration_dag("a.b:job", stores="rates"),
    lambda: migration_dag("a.b:job"),
    lambda: replay_dag("a.b:job", max_active_run=2),
    lambda: replay_dag("a.b:job", schedule="@daily", catchup=True),
    lambda: replay_task_group("a.b:job", exekution_timeout=None),
):
    try:
        make()
    except ConfigurationError as error:
        print(error)
"""


def test_schedules_and_mistyped_settings_when_the_file_is_parsed(tmp_path: Path) -> None:
    environ = os.environ | {"AIRFLOW_HOME": str(tmp_path), "AIRFLOW__CORE__LOAD_EXAMPLES": "0"}
    done = subprocess.run([sys.executable, "-c", MADE], capture_output=True, text=True, check=False, env=environ)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()[-20:]
    assert lines[:8] == [
        "@once OnceTimetable",
        "@continuous ContinuousTimetable",
        "@daily CronDataIntervalTimetable",
        "0 0 1 * * CronDataIntervalTimetable",
        "None NullTimetable",
        "there is no setting warehose (place replay_dag('a.b:job')). Next: did you mean warehouse?",
        "there is no setting shedule (place replay_dag('a.b:job')). Next: did you mean schedule?",
        "there is no setting warehose (place migration_dag('a.b:job')). Next: did you mean warehouse?",
    ]
    said = [
        "the value of batch_records cannot be used: should be a valid integer",
        "the value of keep_commits cannot be used: should be greater than or equal to 1 (place migration_dag(",
        "slices of a DAG end where their runs say (setting until). Next: give schedule=, or trigger a run",
        "replay_dag() takes a str as job, not an object. Next: give its name as a str",
        "replay_dag() takes 'hold' or 'seal' as end_of_input, not a str: 'Seal'",
        "replay_dag() takes a datetime as start_date, not a str: '2013-01-01'",
        "replay_dag() takes a list as tags, not a str: 'hourly'",
        "migration_dag() takes a list as stores, not a str: 'rates'",
        "migration_dag() missing a required argument: 'stores'",
        "there is no setting max_active_run (place replay_dag('a.b:job')). Next: did you mean max_active_runs",
        "catchup would begin in 1970 (place replay_dag('a.b:job')). Next: give start_date=, the beginning of the first",
        "there is no setting exekution_timeout (place replay_task_group('a.b:job')). Next: did you mean execution",
    ]
    assert [line[: len(text)] for line, text in zip(lines[8:], said, strict=True)] == said


ZONES = """
from datetime import UTC, datetime
from zoneinfo import ZoneInfo
import pendulum
from airflow.timetables.base import TimeRestriction
from airflow.timetables.interval import CronDataIntervalTimetable
from hindstream.airflow import replay_dag

for start in (
    datetime(2024, 3, 30, tzinfo=ZoneInfo("Europe/Berlin")),
    pendulum.datetime(2024, 10, 26, tz="America/New_York"),
    datetime(2024, 3, 30, tzinfo=UTC),
):
    timetable = replay_dag("a.b:job", schedule="@daily", start_date=start).timetable
    scheduled = CronDataIntervalTimetable("@daily", timezone=timetable.timezone)
    ends, last = [], None
    for _ in range(9):
        within = TimeRestriction(pendulum.instance(start), None, catchup=True)
        last = scheduled.next_dagrun_info(last_automated_data_interval=last, restriction=within).data_interval
        ends.append(round(last.end.timestamp() * 1000))
    print(ends)
"""


def test_a_cron_expression_is_meant_in_the_time_zone_of_the_start_date(tmp_path: Path) -> None:
    environ = os.environ | {"AIRFLOW_HOME": str(tmp_path), "AIRFLOW__CORE__LOAD_EXAMPLES": "0"}
    done = subprocess.run([sys.executable, "-c", ZONES], capture_output=True, text=True, check=False, env=environ)
    assert done.returncode == 0, done.stderr
    starts = [
        datetime(2024, 3, 30, tzinfo=ZoneInfo("Europe/Berlin")),
        datetime(2024, 10, 26, tzinfo=ZoneInfo("America/New_York")),
        datetime(2024, 3, 30, tzinfo=UTC),
    ]
    backfills = [slice_ends_ms(start, start + timedelta(days=9), "day") for start in starts]
    assert [json.loads(line) for line in done.stdout.splitlines()[-3:]] == backfills


EACH_SCHEDULE = """
# an airflow dag
from datetime import timedelta
from airflow.sdk import Asset
from hindstream.airflow import replay_dag

for name, schedule in {
    "once": "@once", "daily": "@daily", "cron": "0 0 1 * *", "every": timedelta(hours=6),
    "asset": Asset("s3://lake/in"), "assets": [Asset("s3://lake/a"), Asset("s3://lake/b")], "asked": None,
}.items():
    globals()[name] = replay_dag("a.b:job", dag_id=name, schedule=schedule)
"""

LOADED = """
import sys
from airflow.dag_processing.dagbag import DagBag

bag = DagBag(sys.argv[1])
print([(name, type(dag.timetable).__name__, len(dag.tasks)) for name, dag in sorted(bag.dags.items())])
print([error.strip().splitlines()[-1] for _, error in sorted(bag.import_errors.items())])
"""


def test_airflow_loads_a_dag_of_each_schedule_and_tells_a_mistyped_setting(tmp_path: Path) -> None:
    folder = tmp_path / "dags"
    folder.mkdir()
    (folder / "each.py").write_text(EACH_SCHEDULE)
    wrong = '# airflow\nfrom hindstream.airflow import replay_dag\ndag = replay_dag("a.b:job", warehose="w")\n'
    (folder / "wrong.py").write_text(wrong)
    environ = os.environ | {"AIRFLOW_HOME": str(tmp_path), "AIRFLOW__CORE__LOAD_EXAMPLES": "0"}
    command = [sys.executable, "-c", LOADED, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    assert done.returncode == 0, done.stderr
    dags, errors = done.stdout.splitlines()[-2:]
    assert dags == str([
        ("asked", "NullTimetable", 7), ("asset", "AssetTriggeredTimetable", 7),
        ("assets", "AssetTriggeredTimetable", 7), ("cron", "CronDataIntervalTimetable", 7),
        ("daily", "CronDataIntervalTimetable", 7), ("every", "DeltaDataIntervalTimetable", 7),
        ("once", "OnceTimetable", 7),
    ])  # fmt: skip
    assert "no setting warehose" in errors
    assert "did you mean warehouse?" in errors
