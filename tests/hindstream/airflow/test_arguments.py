"""What DAGs are given beside settings: arguments of Airflow's, to the DAG and to its tasks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hindstream.airflow.replay import PHASES
from hindstream.spark.submission.command import OPTIONS
from statelib import load_job
from statelib.commits import CommitLog, published_through
from tests.conftest import ROOT
from tests.effort import every_other
from tests.hindstream.airflow.test_trial import FILE
from tests.task.pipeline import Pipeline

pytestmark = [pytest.mark.airflow, pytest.mark.slow]

MADE = """
import json, warnings
from datetime import UTC, datetime, timedelta
from airflow.sdk import DAG, Asset, task
from hindstream.airflow import (
    maintenance_dag, migration_dag, repair_dag, replay_dag, replay_task_group, switch_over_dag, try_task_group,
)
from hindstream.airflow.arguments import Given, id_of
from statelib.settings.settings import Settings

def failed(context):
    pass

of_both = {
    "owner": "lake", "pool": "spark", "queue": "large", "execution_timeout": timedelta(hours=1), "retries": 5,
    "default_args": {"retries": 4, "retry_delay": timedelta(minutes=7)}, "executor_config": {"a": 1},
}
of_dag = {"max_active_runs": 3, "dagrun_timeout": timedelta(hours=2), "on_failure_callback": failed, "params": {"x": 1}}
commands = {name: "true" for name in ("stop_old", "start_old", "start_new", "start_shadow", "stop_shadow")}
dags = {
    "replay": replay_dag("a.b:job", catchup=True, warehouse="w", **of_both, **of_dag),
    "maintenance": maintenance_dag("a.b:job", warehouse="w", **of_both, **of_dag),
    "migration": migration_dag("a.b:job", stores=["s"], **of_both, **of_dag),
    "repair": repair_dag("a.b:job", warehouse="w", **of_both, **of_dag),
    "switch_over": switch_over_dag("a.b:job", archive="a.b:topics", **commands, **of_both, **of_dag),
}
with DAG("theirs", start_date=datetime(2020, 1, 1, tzinfo=UTC), default_args={"owner": "them"}) as theirs:
    replayed = replay_task_group("a.b:job", until="{{ ds }}", warehouse="w", **of_both)
    tried = try_task_group("a.b:job", warehouse="w", pool="spark")
    replayed >> tried

a, b, c, d = (Asset(f"x://{name}") for name in "abcd")
of_assets = {"inlets": [c], "outlets": [d]}
with_assets = {
    "phase": replay_dag("a.b:job", dag_id="with-assets", schedule=(a | b), archive="a.b:topics", **of_assets),
    "run": replay_dag("a.b:job", dag_id="in-one", schedule=[a, b], task_per="run", **of_assets),
}

def told(of):
    return {name: getattr(of, name) for name in ("owner", "pool", "queue", "retries", "executor_config")} | {
        "execution_timeout": str(of.execution_timeout), "retry_delay": str(of.retry_delay)}

def nothing(job):
    pass

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    former = replay_dag("a.b:job", storage_conn_id="lake").get_task("plan").conn_id

of_airflow = [name for name in Settings.model_fields if Given.to(nothing, "j", {name: None}).settings != {name: None}]

print(json.dumps({
    "of_airflow": of_airflow,
    "former": [former, [str(one.message) for one in caught if "conn_id" in str(one.message)]],
    "tasks": {name: {each.task_id: told(each) for each in dag.tasks} for name, dag in dags.items()},
    "dags": {name: [dag.max_active_runs, str(dag.dagrun_timeout), dag.on_failure_callback is failed, sorted(dag.params)]
             for name, dag in dags.items()},
    "catchup": [dags["replay"].catchup, dags["maintenance"].catchup],
    "group": {each.task_id: told(each) for each in theirs.tasks},
    "assets": {
        name: {each.task_id: [[one.name for one in each.inlets], [one.name for one in each.outlets]]
               for each in dag.tasks if each.inlets or each.outlets}
        for name, dag in with_assets.items()
    },
    "until": theirs.get_task("replay.plan").until,
    "first": sorted(theirs.get_task("replay.report").downstream_task_ids),
    "ids": [id_of(job, "replay") for job in (
        "/srv/jobs/flights.py:job", "jobs/flights.py:hourly", "hindstream.demo.job:job", "shop.orders:build",
        "jobs/job.py:job", "jobs/flights.py", "shop.orders",
    )],
}))
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    environ = os.environ | {
        "AIRFLOW_HOME": str(tmp_path_factory.mktemp("airflow")),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "0",
    }
    done = subprocess.run([sys.executable, "-c", MADE], capture_output=True, text=True, check=False, env=environ)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


OF_TASKS = {
    "owner": "lake",
    "pool": "spark",
    "queue": "large",
    "retries": 5,
    "executor_config": {"a": 1},
    "execution_timeout": "1:00:00",
    "retry_delay": "0:07:00",
}


@pytest.mark.parametrize("dag", ["replay", "maintenance", "migration", "repair", "switch_over"])
def test_every_task_has_what_is_given(made: dict[str, Any], dag: str) -> None:
    tasks = {name.removeprefix("repair."): of for name, of in made["tasks"][dag].items()}
    assert tasks
    assert [task for task in tasks if task != "approve" and tasks[task] != OF_TASKS] == []
    assert ("approve" in tasks) is (dag in {"migration", "repair", "switch_over"})
    if "approve" in tasks:
        assert tasks["approve"] == OF_TASKS | {"execution_timeout": "None"}  # a person may take any time


def test_dags_have_what_is_given_beside_their_own(made: dict[str, Any]) -> None:
    own = {"replay": ["before_interval", "end_of_input", "until"], "migration": ["stores"]}
    own["repair"] = ["from", "keys", "late", "to"]
    for name, found in made["dags"].items():
        assert found == [3, "2:00:00", True, sorted([*own.get(name, []), "x"])]
    assert made["catchup"] == [True, False]


def test_groups_stand_in_anybodys_dag(made: dict[str, Any]) -> None:
    phases = ("plan", "replay", "audit", "commit", "publish", "maintain", "report")
    of_replay = {f"replay.{name}": OF_TASKS for name in phases}
    assert {name: of for name, of in made["group"].items() if name.startswith("replay.")} == of_replay
    of_trial = [of for name, of in made["group"].items() if name.startswith("try.")]
    assert {(of["owner"], of["pool"]) for of in of_trial} == {("them", "spark")}
    assert made["until"] == "{{ ds }}"
    assert made["first"] == ["try.fork"]


def test_assets_are_inlets_of_what_reads_and_outlets_of_what_publishes(made: dict[str, Any]) -> None:
    """What the schedule waits for is read; what is published without anybody's word has an alias."""
    read = ["x://a", "x://b", "x://c"]
    assert made["assets"] == {
        "phase": {
            "archive": [[], ["with-assets.archive"]],
            "replay": [read, []],
            "publish": [[], ["x://d", "with-assets.publish"]],
        },
        "run": {"run": [read, ["x://d", "in-one.run"]]},
    }


def test_no_setting_has_a_name_of_airflows(made: dict[str, Any]) -> None:
    assert made["of_airflow"] == []


def test_a_former_name_is_taken_with_a_warning(made: dict[str, Any]) -> None:
    conn_id, (warning,) = made["former"]
    assert conn_id == "lake"
    assert "storage_conn_id is conn_id now" in warning


def test_ids_say_which_job_it_is(made: dict[str, Any]) -> None:
    names = ["flights", "flights_hourly", "demo", "orders", "job", "flights", "orders"]
    assert made["ids"] == [f"replay_{name}" for name in names]


MISSPELT = """
import inspect, json
from datetime import UTC, datetime
from airflow.sdk import DAG, BaseOperator
import hindstream.airflow as offered
from statelib.errors.kinds import ConfigurationError
from statelib.settings.settings import Settings

needed = {
    "migration_dag": {"stores": ["s"]}, "switch_over_dag": {"archive": "a.b:topics"},
    "HindstreamArchiveOperator": {"topics": "a.b:topics"}, "HindstreamRepairOperator": {"fork": "f"},
}
not_misspelt, tried = [], 0
for name in offered.__all__:
    make = getattr(offered, name)
    is_operator = inspect.isclass(make) and issubclass(make, BaseOperator)
    if not (is_operator or name.endswith(("_dag", "_group"))):
        continue
    own = {one for of in ([up for up in make.__mro__ if issubclass(up, BaseOperator)] if is_operator else [make])
           for one, how in inspect.signature(of.__init__ if is_operator else of).parameters.items()
           if how.kind is not how.VAR_KEYWORD and one not in {"self", "args", "kwargs"}}
    of_airflow = {"pool", "execution_timeout"} | ({"dagrun_timeout"} if name.endswith("_dag") else set())
    for each in sorted(own | of_airflow | (set() if is_operator else set(Settings.model_fields))):
        wrong = each + each[-1]
        with DAG("theirs", start_date=datetime(2020, 1, 1, tzinfo=UTC)):
            given = {"job": "a.b:job"} | needed.get(name, {}) | ({"task_id": "t"} if is_operator else {})
            if name == "try_task_group":
                given["new"] = given.pop("job")
            given.pop(each, None)
            tried += 1
            try:
                make(**given, **{wrong: None})
            except (ConfigurationError, TypeError) as error:
                if f"did you mean {each}" in str(error) or f"missing" in str(error):
                    continue
                not_misspelt.append([name, wrong, str(error)])
            else:
                not_misspelt.append([name, wrong, "taken"])
print(json.dumps([tried, not_misspelt]))
"""

REFUSED = """
from datetime import UTC, datetime
from airflow.sdk import DAG
from hindstream.airflow import HindstreamArchiveOperator, HindstreamPlanOperator, replay_dag, replay_task_group
from statelib.errors.kinds import ConfigurationError

job = "a.b:job"
with DAG("theirs", start_date=datetime(2020, 1, 1, tzinfo=UTC)):
    for make in (
        lambda: replay_task_group(job, max_active_runs=2),
        lambda: replay_task_group(job, group_id="a", trigger_rule="all_done"),
        lambda: replay_dag("jobs/flights"),
        lambda: replay_dag("a.b:job", archive="jobs/flights:topics"),
        lambda: HindstreamPlanOperator(task_id="b", job=job, settings={"warehose": "{{ x }}"}),
        lambda: HindstreamPlanOperator(task_id="c", job=job, settings={"batch_records": "many"}),
        lambda: HindstreamPlanOperator(task_id="d", job=job, until="yesterday"),
        lambda: HindstreamPlanOperator(task_id="e", job=job, end_of_input="seel"),
        lambda: HindstreamPlanOperator(task_id="f", job=job, before_interval="replays"),
    ):
        try:
            make()
        except ConfigurationError as error:
            print(error)
    HindstreamPlanOperator(
        task_id="templates", job="{{ x }}", until="{{ x }}", end_of_input="{{ x }}", before_interval="{{ x }}",
        settings={"warehouse": "{{ x }}", "batch_records": "{{ x }}", "kafka": {"bootstrap.servers": "{{ x }}"}},
    )
    HindstreamPlanOperator.partial(task_id="mapped", job=job).expand(until=["2020-01-01T00:00Z"])
    for n, until in enumerate((None, "", "all", "2020-01-01T00:00Z", "1000")):
        HindstreamPlanOperator(task_id=f"until-{n}", job=job, until=until)
"""


def parsed(text: str, home: Path) -> list[str]:
    """What a program prints that does what a DAG file does."""
    environ = os.environ | {"AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "0"}
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False, env=environ)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_each_argument_is_named_to_who_has_misspelt_it(tmp_path: Path) -> None:
    """Of all functions that make a DAG or a group, and of all operators."""
    tried, not_named = json.loads(parsed(MISSPELT, tmp_path)[-1])
    assert not_named == []
    assert tried > 800


def test_what_cannot_be_is_refused_when_the_file_is_parsed(tmp_path: Path) -> None:
    """As far as no template says it."""
    plan = "HindstreamPlanOperator"
    group, dag = "replay_task_group('a.b:job')", "replay_dag('jobs/flights')"
    file = "names neither a file of Python nor a module"
    step = "Next: give FILE.py:NAME or PACKAGE.MODULE:NAME"
    said = [
        f"max_active_runs is the DAG's, and these are tasks in one (place {group}). Next: give it to the DAG: DAG(...,",
        f"the tasks work together by their own trigger_rule (place {group}). Next: leave it out",
        f"'jobs/flights' {file} (place {dag}). {step}",
        f"'jobs/flights:topics' {file} (place HindstreamArchiveOperator('archive')). {step}",
        f"there is no setting warehose (place {plan}('b')). Next: did you mean warehouse?",
        "the value of batch_records cannot be used: should be a valid integer",
        "the value of until cannot be used: Invalid isoformat string: 'yesterday'",
        "the value of end_of_input cannot be used: should be 'hold' or 'seal'",
        f"before_interval cannot be 'replays' (place {plan}('f')). Next: did you mean replay?",
    ]
    lines = parsed(REFUSED, tmp_path)[-len(said) :]
    assert [line[: len(text)] for line, text in zip(lines, said, strict=True)] == said


DAG_FILE = """
# an airflow dag
from airflow.sdk import DAG, task
from hindstream.airflow import replay_task_group

with DAG("theirs", schedule=None, params={{"end": None}}) as dag:

    @task(trigger_rule="none_failed")
    def after():
        pass

    replayed = replay_task_group(
        {job!r}, until="{{{{ params.end or '' }}}}", task_per={task_per!r}, warehouse={warehouse!r},
        state_dir={state_dir!r}, engine="local",
    )
    replayed >> after()
"""
RUN = """
import json, sys
from airflow.dag_processing.dagbag import DagBag

bag = DagBag(sys.argv[1])
assert not bag.import_errors, bag.import_errors
found = []
for end in (20_000, None, None):
    run = bag.dags["theirs"].test(run_conf={"end": end, "warehouse": sys.argv[2]})
    states = {one.task_id: str(one.state) for one in run.get_task_instances()}
    found.append([str(run.state), states])
print(json.dumps(found))
"""


OPERATORS_FILE = """
# an airflow dag
from airflow.sdk import DAG, chain
from hindstream.airflow import (
    HindstreamAuditOperator, HindstreamCommitOperator, HindstreamPlanOperator, HindstreamPublishOperator,
    HindstreamReplayOperator,
)

settings = {{"warehouse": "{{{{ dag_run.conf['warehouse'] }}}}", "state_dir": {state_dir!r}, "engine": "local"}}
given = {{"job": {job!r}, "settings": settings}}
with DAG("theirs", schedule=None):
    plan = HindstreamPlanOperator(task_id="plan", until="{{{{ dag_run.conf['end'] or '' }}}}", **given)
    chain(
        plan,
        HindstreamReplayOperator(task_id="replay", run_id=plan.output, **given),
        HindstreamAuditOperator(task_id="audit", run_id=plan.output, **given),
        HindstreamCommitOperator(task_id="commit", **given),  # the newest run
        HindstreamPublishOperator(task_id="publish", **given),
    )
"""


def world(folder: Path, dag_file: str, **more: str) -> tuple[Pipeline, list[dict[str, str]]]:
    """A job with a record a second, and how three runs of a DAG have ended: to second 20, to the end, and once more."""
    (folder / "counting.py").write_text(FILE)
    job = Pipeline(folder, load_job(f"{folder}/counting.py:job").topology, "counting")
    job.archive("views", [(f"k{n % 3}", n, n * 1000) for n in range(100)], (pa.string(), pa.int64()))
    warehouse = job.warehouse.uri("")
    given = {"job": "../counting.py:job", "warehouse": warehouse, "state_dir": str(folder / "state"), **more}
    (folder / "dags").mkdir()
    (folder / "dags" / "theirs.py").write_text(dag_file.format(**given))
    environ = os.environ | {
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "0",
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags"),
        "PYTHONPATH": str(ROOT),
    }
    migrate = [str(Path(sys.executable).with_name("airflow")), "db", "migrate"]
    for command in (migrate, [sys.executable, "-c", RUN, str(folder / "dags"), warehouse]):
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
        assert done.returncode == 0, done.stdout + done.stderr
    runs = json.loads(done.stdout.splitlines()[-1])
    assert [state for state, _ in runs] == ["success"] * 3, done.stdout
    return job, [states for _, states in runs]


@pytest.mark.parametrize("task_per", every_other(["phase", "run"], first=2))
def test_a_group_replays_the_slice_that_is_asked_for(tmp_path: Path, task_per: str) -> None:
    """In a DAG of somebody else's: once to a time, once to the end, once with nothing to do."""
    job, runs = world(tmp_path, DAG_FILE, task_per=task_per)
    log = CommitLog(job.warehouse, "counting")
    assert log.head_number() == 2
    first = log.read(1)
    assert {task.position.source_offsets["views/0"] for task in first.tasks.values()} == {20}
    skipped = {name for name, state in runs[2].items() if state == "skipped"}
    assert skipped == ({"replay.run"} if task_per == "run" else {f"replay.{name}" for name in PHASES[1:]})
    assert runs[2]["after"] == "success"


@pytest.mark.long
def test_operators_stand_alone_and_their_fields_are_templates(tmp_path: Path) -> None:
    job, runs = world(tmp_path, OPERATORS_FILE)
    assert runs[:2] == [dict.fromkeys(("plan", *PHASES[1:5]), "success")] * 2
    assert runs[2] == {"plan": "success", **dict.fromkeys(PHASES[1:5], "skipped")}
    assert CommitLog(job.warehouse, "counting").head_number() == published_through(job.warehouse, "counting") == 2


def test_the_page_names_every_option_of_spark_submit() -> None:
    page = (ROOT / "docs" / "airflow.md").read_text()
    section = page.split("\n### Options of spark-submit\n")[1].split("\n### ")[0]
    assert [name for name in OPTIONS if f"`{name}`" not in section] == []
