"""Spark's driver elsewhere: what is refused when Airflow reads a DAG, and runs whose tasks wait in the triggerer."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hindstream.runs import open_warehouse
from hindstream.spark.submission.record import Submissions
from statelib.commits import CommitLog, Runs, published_through
from tests.hindstream.airflow.airflow_environ import AIRFLOW
from tests.hindstream.airflow.standalone import standalone
from tests.hindstream.lineage.specified import events_of
from tests.hindstream.spark.orders import DAY_MS, JOB_FILE, archive_orders, check_published, make_settings, orders
from tests.hindstream.spark.submission.submitter import JOB, OPTIONS, at_once
from tests.hindstream.spark.submission.test_cluster import DRIVER
from tests.hindstream.spark.submission.test_cluster import answers as answers  # noqa: PLC0414
from tests.spark_cluster import spark_cluster

if TYPE_CHECKING:
    from tests.hindstream.spark.submission.test_cluster import Answers

pytestmark = [pytest.mark.airflow, pytest.mark.slow]

SAID = """
import json
from dataclasses import asdict
from airflow.sdk import DAG, Connection
from hindstream.airflow import HindstreamReplayOperator, replay_dag, replay_task_group
from hindstream.airflow.spark import cluster_of, options_of
from hindstream.airflow.trigger import SparkApplicationTrigger
from hindstream.spark.submission.cluster import Cluster

def refused(do, **given):
    try:
        do(**given)
    except Exception as error:
        return str(error)

def dag(**given):
    return replay_dag("a.b:job", **given)

def group(**given):
    with DAG("theirs"):
        return replay_task_group("a.b:job", **given)

def operator(**given):
    return HindstreamReplayOperator(task_id="replay", job="a.b:job", **given)

options = {"executor_memory": "8g", "conf": {"a": "b"}}
made = dag(mode="spark-submit", spark_conn_id="lake", spark_submit=options)
standalone = Connection(conn_id="s", conn_type="spark", host="spark://m", port=7077, extra=json.dumps(
    {"deploy-mode": "cluster", "rest-port": 16066, "spark-binary": "spark3-submit"}))
by_uri = Connection(conn_id="s", conn_type="spark", host="m1", port=7077)
by_command = [Connection(conn_id="s", conn_type="generic", host=host, port=7077) for host in ("spark://m2", "m2")]
kubernetes = Connection(conn_id="k", conn_type="spark", host="k8s://https://h:6443", extra=json.dumps(
    {"deploy-mode": "cluster", "namespace": "replays"}))
yarn = Connection(conn_id="y", conn_type="spark", host="yarn", extra=json.dumps(
    {"queue": "q", "deploy-mode": "cluster"}))
asked = cluster_of(kubernetes, {"conf": {"spark.kubernetes.context": "prod", "spark.ui.enabled": "false"}})
trigger = SparkApplicationTrigger.of(Cluster("spark://m:7077", "cluster"), "driver-1")
path, given = trigger.serialize()
print(json.dumps({
    "given": {each.task_id: [each.mode, each.spark_conn_id, each.spark_submit] for each in made.tasks
              if each.task_id in ("replay", "audit")},
    "elsewhere": [each.task_id for each in made.tasks if hasattr(each, "mode")],
    "refused": [
        refused(dag, mode="spark-submitt"),
        refused(dag, mode="connect"),
        refused(group, mode="connect"),
        refused(dag, mode="spark-submit", task_per="run"),
        refused(dag, spark_submit=options),
        refused(group, mode="spark-submit", spark_submit={"executor_memori": "8g"}),
        refused(operator, mode="sparksubmit"),
        refused(operator, mode="spark-submit", spark_submit={"deploy_mode": "here"}),
        refused(lambda: cluster_of(yarn, {})),
    ],
    "clusters": [list(asdict(cluster_of(each, {})).values()) for each in (standalone, by_uri, kubernetes, *by_command)],
    "options": [options_of(each, {"conf": {"c": "d"}}) for each in (standalone, kubernetes, yarn)],
    "trigger": [path, type(trigger)(**given).serialize() == trigger.serialize()],
    "asked": [asked.conf, SparkApplicationTrigger.of(asked, "replays:a-driver").poll_seconds],
}))
"""


def test_what_a_dag_is_given(tmp_path: Path) -> None:
    environ = os.environ | {"AIRFLOW_HOME": str(tmp_path), "AIRFLOW__CORE__LOAD_EXAMPLES": "0"}
    done = subprocess.run([sys.executable, "-c", SAID], capture_output=True, text=True, check=False, env=environ)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    given = ["spark-submit", "lake", {"executor_memory": "8g", "conf": {"a": "b"}}]
    assert found["given"] == {"replay": given, "audit": given}
    assert found["elsewhere"] == ["replay", "audit"]
    for text, message in zip(
        found["refused"],
        [
            r"mode.*spark-submitt",
            r"Spark Connect has no RDDs.*\(place replay_dag.*Next: take mode=\"spark-submit\"",
            r"Spark Connect has no RDDs.*\(place replay_task_group",
            r"one task of all phases has one driver, its own.*Next: take task_per=\"phase\"",
            r"options of spark-submit need its mode.*Next: give mode=\"spark-submit\"",
            r"no option 'executor_memori'.*Next: did you mean executor_memory",
            r"no mode 'sparksubmit'.*Next: did you mean spark-submit",
            r"no deploy mode 'here'.*there are client, cluster",
            r"does not say where YARN tells.*connection y.*yarn_resourcemanager_webapp_address",
        ],
        strict=True,
    ):
        assert text is not None
        assert re.search(message, text), text
    standalone_cluster, by_uri, kubernetes, *by_command = found["clusters"]
    assert [each[0] for each in by_command] == ["spark://m2:7077"] * 2
    assert standalone_cluster == ["spark://m:7077", "cluster", "spark3-submit", 16066, "http", None, {}]
    assert by_uri == ["spark://m1:7077", "client", "spark-submit", 6066, "http", None, {}]
    assert kubernetes == ["k8s://https://h:6443", "cluster", "spark-submit", 6066, "http", None, {}]
    assert found["asked"] == [{"spark.kubernetes.context": "prod"}, 30]
    assert found["options"] == [
        {"conf": {"c": "d"}},
        {"conf": {"c": "d", "spark.kubernetes.namespace": "replays"}},
        {"yarn_queue": "q", "conf": {"c": "d"}},
    ]
    assert found["trigger"] == ["hindstream.airflow.trigger.SparkApplicationTrigger", True]


SLICE = """
import sys
from pathlib import Path
from hindstream.airflow.embedded import backfill

folder, job, options, end, engine = Path(sys.argv[1]), sys.argv[2], eval(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
settings = {"warehouse": str(folder / "warehouse"), "state_dir": str(folder / "state"), "engine": engine,
            "mode": "spark-submit", "spark_submit": options}
backfill(job, [end], home=folder / "airflow", dag_id="orders", settings=settings)
"""


def environment(url: str, rest_port: int, **extra: str) -> dict[str, str]:
    """With a connection to a cluster."""
    host, _, port = url.rpartition(":")
    given = {"deploy-mode": "cluster", "rest-port": rest_port, **extra}
    connection = json.dumps({"conn_type": "spark", "host": host, "port": int(port), "extra": given})
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"AIRFLOW_CONN_SPARK_DEFAULT": connection, "PATH": path}


def run_slice(folder: Path, environ: dict[str, str], *, engine: str = "spark") -> subprocess.CompletedProcess[str]:
    """Through an Airflow of its own, whose tasks are deferred and come back."""
    command = [sys.executable, "-c", SLICE, str(folder), f"{JOB_FILE}:job", repr(OPTIONS), str(4 * DAY_MS), engine]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environ)


@pytest.mark.long
def test_tasks_wait_in_the_trigger_and_have_the_drivers_errors(tmp_path: Path, answers: Answers) -> None:
    program = at_once(tmp_path)
    states = {"0000": "FINISHED", "0001": "FAILED"}
    for number, state in states.items():
        answers.said[f"{DRIVER[:-4]}{number}"] = {"success": True, "driverState": state}
    environ = environment("spark://127.0.0.1:7077", answers.server_port, **{"spark-binary": str(program)})
    settings = make_settings(tmp_path)
    archive_orders(settings, orders())
    done = run_slice(tmp_path, environ | {"HINDSTREAM_ON_LATE_RECORD": "topic"}, engine="local")
    log = tmp_path / "airflow" / "backfill.log"
    assert done.returncode == 0, done.stderr + (log.read_text() if log.exists() else "")
    check_published(settings, orders())
    warehouse = open_warehouse(settings)
    run = CommitLog(warehouse, "orders").read(1).run_id
    for phase in ("replay", "audit"):
        submitted = Submissions(warehouse, "orders", run, phase).newest()
        assert submitted is not None
        assert (submitted.number, submitted.application) == (1, "driver-20261129174447-0000")


@pytest.mark.spark
@pytest.mark.long
def test_a_slice_whose_drivers_run_on_a_cluster(tmp_path: Path) -> None:
    """They tell their lineage below their tasks, to whom Airflow's provider tells its own."""
    settings, file = make_settings(tmp_path), tmp_path / "events.jsonl"
    archive_orders(settings, orders())
    transport = {"type": "file", "log_file_path": str(file), "append": True}
    lineage = {"AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport), "HINDSTREAM_OPENLINEAGE": "true"}
    with spark_cluster(tmp_path, "127.0.0.2", has_rest=True, cores=3) as cluster:
        done = run_slice(tmp_path, environment(cluster.url, cluster.rest_port) | lineage)
    log = tmp_path / "airflow" / "backfill.log"
    assert done.returncode == 0, done.stderr + (log.read_text() if log.exists() else "")
    assert published_through(open_warehouse(settings), "orders") == 1
    check_published(settings, orders())
    assert len(list((tmp_path / "127.0.0.2").glob("driver-*"))) == 2  # of replay and audit
    events = events_of(file)
    ours = [event for event in events if "hindstream" in event["run"]["facets"]]
    above = [event["run"]["facets"]["parent"]["job"]["name"] for event in ours if event["job"]["name"] == "orders"]
    assert above == [f"orders.{phase}" for phase in ("plan", "replay", "audit", "commit", "publish")]
    ends = [event for event in events if event["job"]["name"] == "orders.audit" and event["eventType"] == "COMPLETE"]
    (audited,) = [event for event in ends if event["inputs"]]  # the task that waits has the same name
    assert audited["run"]["facets"]["parent"]["run"]["runId"] == ours[0]["run"]["runId"]
    assert audited["inputs"][0]["inputFacets"]["dataQualityAssertions"]["assertions"]


DAG = """
from datetime import timedelta
from hindstream.airflow import replay_dag  # Airflow

dag = replay_dag({job!r}, dag_id="orders", mode="spark-submit", spark_submit={options!r}, warehouse={warehouse!r},
                 state_dir={state!r}, default_args={{"retries": 3, "retry_delay": timedelta(seconds=1)}})
"""


@pytest.mark.spark
@pytest.mark.long
def test_the_triggerer_is_killed_while_a_driver_is_at_work(tmp_path: Path) -> None:
    wait, settings = tmp_path / "wait", make_settings(tmp_path)
    archive_orders(settings, orders())
    (tmp_path / "job.py").write_text(JOB.format(wait=str(wait)))
    wait.touch()
    (tmp_path / "airflow" / "dags").mkdir(parents=True)
    given = {"warehouse": settings.warehouse, "state": str(tmp_path / "state"), "options": OPTIONS}
    (tmp_path / "airflow" / "dags" / "orders.py").write_text(DAG.format(job=f"{tmp_path / 'job.py'}:job", **given))
    with spark_cluster(tmp_path, "127.0.0.2", has_rest=True, cores=3) as cluster, pytest.MonkeyPatch.context() as patch:
        for name, value in environment(cluster.url, cluster.rest_port).items():
            patch.setenv(name, value)
        with standalone(tmp_path) as airflow:
            airflow.wait(lambda: airflow.states("orders"))
            subprocess.run([AIRFLOW, "dags", "unpause", "-y", "orders"], env=airflow.environ, check=True)
            subprocess.run([AIRFLOW, "dags", "trigger", "orders"], env=airflow.environ, check=True)
            airflow.wait(lambda: airflow.states("orders").get("replay") == "deferred")
            triggerers = triggerers_of(airflow.process.pid)
            assert triggerers
            for pid in triggerers:
                os.kill(pid, signal.SIGKILL)
            another = subprocess.Popen([AIRFLOW, "triggerer"], env=airflow.environ, start_new_session=True)
            try:
                wait.unlink()
                states = airflow.ended("orders")
            finally:
                os.killpg(another.pid, signal.SIGTERM)
                another.wait()
    assert set(states.values()) == {"success"}, states
    warehouse = open_warehouse(settings)
    run = CommitLog(warehouse, "orders").read(1).run_id
    staged = Runs(warehouse, "orders").staged(run)
    assert staged is not None
    assert staged.done_before == 0  # nobody has begun again
    assert len(list((tmp_path / "127.0.0.2").glob("driver-*"))) == 2


def triggerers_of(standalone: int) -> list[int]:
    """The processes of Airflow's triggerer in the session of `airflow standalone`."""
    command = ["ps", "-ww", "-o", "pid=,args=", "-s", str(standalone)]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [int(line.split()[0]) for line in found if "triggerer" in line]
