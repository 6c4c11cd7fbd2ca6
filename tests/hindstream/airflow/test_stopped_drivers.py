"""Drivers on a real cluster end with their tasks, whoever ends these, and outlive Airflow's triggerers."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from hindstream.runs import open_warehouse
from hindstream.spark.submission.cluster import Cluster
from hindstream.spark.submission.record import Submissions
from tests.hindstream.airflow.airflow_environ import AIRFLOW
from tests.hindstream.airflow.standalone import Standalone, standalone
from tests.hindstream.airflow.test_spark_submit import environment, triggerers_of
from tests.hindstream.spark.orders import archive_orders, make_settings, orders
from tests.hindstream.spark.submission.submitter import JOB, OPTIONS
from tests.spark_cluster import spark_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1500)]

DAG = """
from datetime import timedelta
from hindstream.airflow import replay_dag  # Airflow

given = {given!r}
patient = replay_dag(dag_id="patient", **given)
hurried = replay_dag(dag_id="hurried", execution_timeout=timedelta(seconds=60), retries=0, **given)
"""


RUN = "the-run"


class Driven:
    """An Airflow and a cluster, whose drivers wait as long as a file is there.

    Args:
        folder: With the job and the warehouse.
        airflow: Airflow.
        cluster: The cluster.
    """

    def __init__(self, folder: Path, airflow: Standalone, cluster: Cluster) -> None:
        self.airflow = airflow
        self._warehouse = open_warehouse(make_settings(folder))
        self._cluster = cluster

    def begun(self, dag_id: str, number: int = 1) -> str:
        """The driver of the replay, when it is at work and a triggerer waits for it."""
        submissions = Submissions(self._warehouse, "orders", "00000001-1", "replay")
        log = self.airflow.folder / "airflow" / "logs" / f"dag_id={dag_id}" / f"run_id={RUN}" / "task_id=replay"
        self.airflow.wait(lambda: any(log.glob(f"attempt={number}.log.trigger.*.log")))
        newest = submissions.newest()
        assert newest is not None
        assert newest.number == number
        self.airflow.wait(lambda: self.said(str(newest.application)) == "RUNNING")
        return str(newest.application)

    def said(self, application: str) -> str:
        """What the cluster says of a driver."""
        return self._cluster.status(application).said

    def trigger(self, dag_id: str) -> None:
        """Begins a run."""
        command = [AIRFLOW, "dags", "trigger", dag_id, "--run-id", RUN]
        subprocess.run(command, env=self.airflow.environ, check=True, capture_output=True)

    def mark(self, dag_id: str, state: str) -> None:
        """Marks the replay, as the button does."""
        self._asked(f"dags/{dag_id}/dagRuns/{RUN}/taskInstances/replay", "PATCH", {"new_state": state})

    def clear(self, dag_id: str) -> None:
        """Clears the replay, as the button does."""
        given = {"dry_run": False, "only_failed": False, "dag_run_id": RUN, "task_ids": ["replay"]}
        self._asked(f"dags/{dag_id}/clearTaskInstances", "POST", given)

    def _asked(self, path: str, method: str, given: object) -> None:
        self.airflow.wait(self.airflow.takes_token)
        head = {"Authorization": f"Bearer {self.airflow.environ['TOKEN']}", "Content-Type": "application/json"}
        url = f"{self.airflow.environ['AIRFLOW']}/api/v2/{path}"
        urllib.request.urlopen(urllib.request.Request(url, json.dumps(given).encode(), head, method=method)).close()

    @contextmanager
    def another_triggerer(self) -> Iterator[subprocess.Popen[bytes]]:
        """Beside the one that there is."""
        process = subprocess.Popen([AIRFLOW, "triggerer"], env=self.airflow.environ, start_new_session=True)
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def triggerer(self) -> int | None:
        """The job of Airflow's that has the trigger of a task; None: nobody, or the database is busy."""
        asked = self.airflow._ask("select triggerer_id from trigger where 'x' != :dag_id", "")
        return asked[0][0] if asked else None

    def taken_over_from(self, former: int | None = None) -> int:
        """The one that has it after another."""
        found: list[int | None] = []

        def is_taken() -> bool:
            found.append(self.triggerer())
            return found[-1] not in {None, former}

        self.airflow.wait(is_taken)
        assert found[-1] is not None
        return found[-1]


@contextmanager
def driven(folder: Path) -> Iterator[Driven]:
    settings, wait = make_settings(folder), folder / "wait"
    archive_orders(settings, orders())
    (folder / "job.py").write_text(JOB.format(wait=str(wait)))
    wait.touch()
    (folder / "airflow" / "dags").mkdir(parents=True)
    given = {
        "job": f"{folder / 'job.py'}:job",
        "mode": "spark-submit",
        "spark_submit": OPTIONS,
        "warehouse": settings.warehouse,
        "state_dir": str(folder / "state"),
    }
    (folder / "airflow" / "dags" / "orders.py").write_text(DAG.format(given=given))
    with spark_cluster(folder, "127.0.0.2", has_rest=True, cores=3) as spark, pytest.MonkeyPatch.context() as patch:
        for name, value in environment(spark.url, spark.rest_port).items():
            patch.setenv(name, value)
        silent = {"AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "10"}
        with standalone(folder, **silent, AIRFLOW__SCHEDULER__TRIGGER_TIMEOUT_CHECK_INTERVAL="2") as airflow:
            airflow.wait(lambda: all(airflow.states(dag_id) for dag_id in ("patient", "hurried")))
            yield Driven(folder, airflow, Cluster(spark.url, "cluster", rest_port=spark.rest_port))


def for_a_while(holds: Callable[[], bool], seconds: float) -> None:
    since = time.monotonic()
    while time.monotonic() - since < seconds:
        assert holds()
        time.sleep(1)


def test_a_driver_outlives_triggerers_and_ends_with_its_task(tmp_path: Path) -> None:
    with driven(tmp_path) as world:
        world.trigger("patient")
        first = world.begun("patient")
        before = world.taken_over_from()
        silent = triggerers_of(world.airflow.process.pid)
        log = tmp_path / "airflow" / "logs"
        with world.another_triggerer() as another:
            for pid in silent:
                os.kill(pid, signal.SIGSTOP)
            other = world.taken_over_from(before)
            for pid in silent:
                os.kill(pid, signal.SIGCONT)  # it finds that another one has its trigger
            goes_on = re.compile(rf"{first} goes on: its task is still deferred")
            world.airflow.wait(lambda: any(goes_on.search(file.read_text()) for file in log.rglob("*trigger*.log")))
            os.killpg(another.pid, signal.SIGTERM)
            another.wait()
            world.taken_over_from(other)
        for_a_while(lambda: world.said(first) == "RUNNING", 5)
        world.clear("patient")
        second = world.begun("patient", 2)
        assert second != first
        assert world.said(first) == "KILLED"
        world.mark("patient", "failed")
        world.airflow.wait(lambda: world.said(second) == "KILLED")
        assert world.airflow.states("patient")["replay"] == "failed"


def test_a_driver_ends_when_its_task_takes_too_long(tmp_path: Path) -> None:
    with driven(tmp_path) as world:
        world.trigger("hurried")
        driver = world.begun("hurried")
        world.airflow.wait(lambda: world.said(driver) == "KILLED")
        assert world.airflow.ended("hurried")["replay"] == "failed"
