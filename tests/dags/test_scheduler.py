"""The same DAG file under a real scheduler: `airflow standalone`, every task in a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dags import embedded
from dags.factory import PHASES
from spark_jobs.runs import open_warehouse
from statelib.commits import CommitLog, published_through
from tests.spark_jobs.orders import JOB_FILE, archive_orders, make_settings, orders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.spark, pytest.mark.airflow, pytest.mark.slow]

AIRFLOW = Path(sys.executable).with_name("airflow")


def _free_port() -> int:
    with closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _wait(condition: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    """Until ``condition`` holds; the time-out of the whole test is the only limit."""
    while not condition():
        assert process.poll() is None, log.read_text()
        time.sleep(0.5)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An Airflow home with the DAG file that the embedded backfill writes."""
    settings = make_settings(tmp_path)
    archive_orders(settings, orders())
    given = {"warehouse": settings.warehouse, "state_dir": str(settings.state_dir), "spark_master": "local[2]"}
    embedded._write_dag_file(tmp_path / "airflow", "orders", f"{JOB_FILE}:job", given)
    return tmp_path / "airflow"


@pytest.fixture
def environ(home: Path) -> dict[str, str]:
    port, log_port = _free_port(), _free_port()
    return os.environ | {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PARALLELISM": "2",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(log_port),
        "AIRFLOW__TRIGGERER__DEFAULT_CAPACITY": "1",
    }


@pytest.fixture
def standalone(home: Path, environ: dict[str, str]) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A running `airflow standalone`, and its log."""
    log = home / "standalone.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [AIRFLOW, "standalone"],
            env=environ,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509 - no threads yet
        )
        try:
            yield process, log
        finally:
            process.send_signal(signal.SIGINT)  # SIGTERM would leave its children behind
            with suppress(subprocess.TimeoutExpired):  # how fast Airflow ends is not what is tested
                process.wait(30)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _states(home: Path) -> dict[str, str]:
    """State of each task, and of the run under ``run``."""
    database = home / "airflow.db"
    if not database.exists():
        return {}
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        try:
            states = dict(connection.execute("select task_id, state from task_instance").fetchall())
            runs = connection.execute("select state from dag_run").fetchall()
            known = connection.execute("select count(*) from dag where dag_id = 'orders'").fetchone()
        except sqlite3.OperationalError:  # not migrated yet, or busy
            return {}
    run = {"run": runs[0][0]} if runs else {}
    return {**states, **run, **({"known": "yes"} if known[0] else {})}


def test_a_triggered_run_goes_through_all_phases(
    home: Path, environ: dict[str, str], standalone: tuple[subprocess.Popen[bytes], Path], tmp_path: Path
) -> None:
    process, log = standalone
    _wait(lambda: "known" in _states(home), process, log)
    subprocess.run([AIRFLOW, "dags", "trigger", "orders"], env=environ, check=True, capture_output=True)
    _wait(lambda: _states(home).get("run") in {"success", "failed"}, process, log)
    states = _states(home)
    assert {phase: states[phase] for phase in PHASES} == dict.fromkeys(PHASES, "success"), log.read_text()
    warehouse = open_warehouse(make_settings(tmp_path))
    assert CommitLog(warehouse, "orders").head_number() == published_through(warehouse, "orders") == 1
