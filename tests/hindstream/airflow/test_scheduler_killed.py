"""A scheduler is killed while a driver is at work on a real cluster: the next one finds it, and none runs twice."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import pytest

from hindstream.runs import open_warehouse
from hindstream.spark.submission.record import Submissions
from statelib.commits import CommitLog, Runs
from tests.campaigns.airflow_servers import QUICK, processes_below, with_local_executor
from tests.hindstream.airflow.airflow_environ import AIRFLOW, airflow_environ
from tests.hindstream.airflow.standalone import Standalone
from tests.hindstream.airflow.test_spark_submit import environment
from tests.hindstream.spark.orders import archive_orders, make_settings, orders
from tests.hindstream.spark.submission.submitter import JOB, OPTIONS
from tests.spark_cluster import spark_cluster

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.campaigns.airflow_servers import Server

pytestmark = [
    pytest.mark.spark,
    pytest.mark.airflow,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(1800),
]

HOST = "127.0.0.2"
DAG = """
import time
from datetime import timedelta
from pathlib import Path
from hindstream.airflow import replay_dag  # Airflow
from statelib.errors import fault_points

MARK = Path({mark!r})


def stand_still(name):
    if name == {step!r} and not MARK.exists():
        MARK.touch()
        time.sleep(3600)


fault_points._observers[:] = [stand_still]  # in the process of each task, which reads this file
dag = replay_dag({job!r}, dag_id="orders", mode="spark-submit", spark_submit={options!r}, warehouse={warehouse!r},
                 state_dir={state!r}, default_args={{"retries": 3, "retry_delay": timedelta(seconds=1)}})
"""


class Airflow:
    """Its servers, each a process of its own, with the DAG of a job one of whose tasks waits for a file to go.

    Args:
        folder: For all that it has.
        environ: With a connection to the cluster.
        step: Where the first task that submits a driver stands still; none: at no step.
    """

    def __init__(self, folder: Path, environ: dict[str, str], step: str) -> None:
        self.wait, self.mark = folder / "wait", folder / "mark"
        self.settings, home = make_settings(folder), folder / "airflow"
        archive_orders(self.settings, orders())
        (folder / "job.py").write_text(JOB.format(wait=str(self.wait)))
        self.wait.touch()
        (home / "dags").mkdir(parents=True)
        given = {"warehouse": self.settings.warehouse, "state": str(folder / "state"), "options": OPTIONS}
        given |= {"mark": str(self.mark), "step": step, "job": f"{folder / 'job.py'}:job"}
        (home / "dags" / "orders.py").write_text(DAG.format(**given))
        self.environ = airflow_environ(home) | QUICK | environ
        subprocess.run([AIRFLOW, "db", "migrate"], env=self.environ, check=True, stdout=subprocess.DEVNULL)
        self.servers = with_local_executor(home, self.environ)
        self.folder = folder

    @property
    def scheduler(self) -> Server:
        (found,) = (server for server in self.servers if server.name == "scheduler")
        return found

    def until(self, condition: Callable[[], object]) -> None:
        """Keeps all servers up until it holds."""
        told = self.folder / "airflow" / "scheduler.log"
        while not condition():
            for server in self.servers:
                server.keep()
            with suppress(subprocess.TimeoutExpired):
                assert self.servers[-1].process is not None
                self.servers[-1].process.wait(0.5)
            assert self.states().get("dag_run") != "failed", told.read_text()

    def states(self) -> dict[str, str]:
        process = self.servers[-1].process
        assert process is not None
        return Standalone(self.folder, self.environ, process, self.folder / "log").states("orders")

    def lose_the_scheduler(self) -> None:
        """With the processes of its tasks, as when its host is lost."""
        process = self.scheduler.process
        assert process is not None
        below = processes_below(process.pid)
        self.scheduler.kill()
        for pid in below:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def end(self) -> None:
        for server in self.servers:
            server.end()


@pytest.mark.parametrize("step", ["", "submit.recorded"], ids=["while its task is deferred", "and its task with it"])
def test_a_scheduler_is_killed_while_a_driver_is_at_work(tmp_path: Path, step: str) -> None:
    with ExitStack() as stack:
        cluster = stack.enter_context(spark_cluster(tmp_path, HOST, has_rest=True, cores=3))
        connected = environment(cluster.url, cluster.rest_port)
        airflow = Airflow(tmp_path, {"AIRFLOW_CONN_SPARK_DEFAULT": connected["AIRFLOW_CONN_SPARK_DEFAULT"]}, step)
        stack.callback(airflow.end)
        for server in airflow.servers:
            server.keep()
        airflow.until(airflow.states)
        subprocess.run([AIRFLOW, "dags", "trigger", "orders"], env=airflow.environ, check=True, capture_output=True)
        if step:
            airflow.until(airflow.mark.exists)
        else:
            airflow.until(lambda: airflow.states().get("replay") == "deferred")
        airflow.lose_the_scheduler()
        airflow.until(lambda: airflow.states().get("replay") == "deferred")  # by the next one
        airflow.wait.unlink()
        airflow.until(lambda: airflow.states().get("dag_run") == "success")
        assert len(list((tmp_path / HOST).glob("driver-*"))) == 2  # of replay and audit
    warehouse = open_warehouse(airflow.settings)
    run = CommitLog(warehouse, "orders").read(1).run_id
    for phase in ("replay", "audit"):
        submitted = Submissions(warehouse, "orders", run, phase).newest()
        assert submitted is not None
        assert submitted.number == 1
    staged = Runs(warehouse, "orders").staged(run)
    assert staged is not None
    assert staged.done_before == 0  # nobody has begun again
