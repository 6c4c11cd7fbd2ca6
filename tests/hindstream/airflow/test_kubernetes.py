"""A slice through Airflow whose drivers and executors are Kubernetes' pods: all that works on it is killed once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hindstream.runs import open_warehouse
from hindstream.spark.submission.record import Submissions
from statelib.commits import CommitLog, Runs
from tests.hindstream.airflow.airflow_environ import AIRFLOW
from tests.hindstream.airflow.standalone import standalone
from tests.hindstream.spark.orders import archive_orders, make_settings, orders
from tests.hindstream.spark.submission.kubernetes import has_program
from tests.hindstream.spark.submission.kubernetes_replays import DRIVER, NAMESPACE, SUBMITTER, granted, replays
from tests.hindstream.spark.submission.submitter import JOB, ON_KUBERNETES
from tests.hindstream.spark.submission.world import expected, kept, made

if TYPE_CHECKING:
    from tests.hindstream.spark.submission.kubernetes_replays import Replays

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(1800),  # three drivers of Spark are started one after the other
    has_program,
]

RUN = "00000001-1"

DAG = """
from datetime import timedelta
from hindstream.airflow import replay_dag  # Airflow

dag = replay_dag({job!r}, dag_id="orders", mode="spark-submit", spark_submit={options!r}, warehouse={warehouse!r},
                 state_dir={state!r}, default_args={{"retries": 4, "retry_delay": timedelta(seconds=1)}})
"""

PATIENT = """#!/bin/sh
{submit} "$@"
code=$?
while [ -e {hold} ]; do sleep 0.2; done
exit $code
"""
"""A spark-submit that does not end as long as a file is there."""


def environment(cluster: Replays, program: Path) -> dict[str, str]:
    """With a connection to the cluster."""
    host, _, port = cluster.server.master.rpartition(":")
    extra = {"deploy-mode": "cluster", "namespace": NAMESPACE, "spark-binary": str(program)}
    connection: dict[str, Any] = {"conn_type": "spark", "host": host, "port": int(port), "extra": extra}
    return {"AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(connection), "KUBECONFIG": cluster.kubeconfig}


def submitting(program: Path) -> int:
    """The process of the task that has started a program."""
    command = ["ps", "-ww", "-eo", "ppid=,args="]
    processes = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    (found,) = [line for line in processes if f"/bin/sh {program} " in line]
    return int(found.split()[0])


def test_its_worker_its_executor_and_its_driver_are_killed(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    archive_orders(settings, orders())
    program, hold, wait = (tmp_path / name for name in ("submit", "hold", "wait"))
    program.write_text(PATIENT.format(submit=Path(sys.executable).with_name("spark-submit"), hold=hold))
    program.chmod(0o755)
    (tmp_path / "job.py").write_text(JOB.format(wait=str(wait)))
    for file in (hold, wait):
        file.touch()
    (tmp_path / "kubernetes").mkdir()
    (tmp_path / "airflow" / "dags").mkdir(parents=True)
    given = {"warehouse": settings.warehouse, "state": str(tmp_path / "state")}
    dag = DAG.format(job=f"{tmp_path / 'job.py'}:job", options=ON_KUBERNETES, **given)
    (tmp_path / "airflow" / "dags" / "orders.py").write_text(dag)
    warehouse = open_warehouse(settings)
    submissions = Submissions(warehouse, "orders", RUN, "replay")

    def submitted(number: int) -> bool:
        newest = submissions.newest()
        return newest is not None and newest.number == number and newest.application is not None

    with replays(tmp_path / "kubernetes") as cluster, standalone(tmp_path, **environment(cluster, program)) as airflow:
        node = cluster.node
        airflow.wait(lambda: airflow.states("orders"))
        for command in ("unpause", "trigger"):
            subprocess.run([AIRFLOW, "dags", command, "orders"], env=airflow.environ, check=True)
        airflow.wait(lambda: submitted(1))
        os.kill(submitting(program), signal.SIGKILL)
        hold.unlink()
        airflow.wait(lambda: airflow.states("orders").get("replay") == "deferred")
        assert submitted(1)  # the next try has found the driver
        airflow.wait(lambda: kept(settings) == 2)
        node.kill(node.executors[0])
        airflow.wait(lambda: len(node.executors) == 2)  # the driver has asked for another
        node.kill(node.drivers[0])
        airflow.wait(lambda: submitted(2))
        wait.unlink()
        states = airflow.ended("orders")
        assert set(states.values()) == {"success"}, states
        assert len(node.drivers) == 3  # two of the replay, one of the audit
        assert cluster.refused() == set()
        assert granted(SUBMITTER) - cluster.used(SUBMITTER) == {("delete", "pods")}  # if a submission fails halfway
        assert granted(DRIVER) == cluster.used(DRIVER)
    assert CommitLog(warehouse, "orders").read(1).run_id == RUN
    staged = Runs(warehouse, "orders").staged(RUN)
    assert staged is not None
    assert staged.done_before == 2
    assert made(staged) == expected(tmp_path / "alone")
