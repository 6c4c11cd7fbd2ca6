"""A real Airflow: scheduler, DAG processor and API server, each of which is started again when it has died."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.hindstream.airflow.airflow_environ import AIRFLOW, airflow_environ

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_PARTS = ("scheduler", "dag-processor", "api-server")
_KEEP_UP = 'while true; do "$@"; sleep 0.5; done'
_SECONDS_TO_START = 300

HEARTBEAT_TIMEOUT_SECONDS = 20
"""A task whose supervisor has been silent for so long has failed."""

_SOON = {
    "AIRFLOW__CORE__PARALLELISM": "6",
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "5",
    "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "15",
    "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": str(HEARTBEAT_TIMEOUT_SECONDS),
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "2",
    "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "2",
}


@dataclass(frozen=True)
class Airflow:
    """A running Airflow.

    Attributes:
        home: Its home.
        url: Its API's.
    """

    home: Path
    url: str

    def states(self, dag_id: str) -> dict[str, str]:
        """The state of each task, and of the run under ``run``; empty: there is no run yet."""
        with closing(sqlite3.connect(f"file:{self.home / 'airflow.db'}?mode=ro", uri=True)) as connection:
            try:
                runs = connection.execute("select 'run', state from dag_run where dag_id = ?", [dag_id]).fetchall()
                tasks = connection.execute("select task_id, state from task_instance where dag_id = ?", [dag_id])
                return dict([*runs, *tasks.fetchall()])
            except sqlite3.OperationalError:  # not migrated yet, or busy
                return {}

    def trigger(self, dag_id: str, params: Mapping[str, Any]) -> bool:
        """Starts a run; False: the DAG is not known yet, or the API does not answer."""
        try:
            with urllib.request.urlopen(f"{self.url}/auth/token", timeout=30) as answer:
                token = json.load(answer)["access_token"]
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            body = json.dumps({"logical_date": None, "conf": dict(params)}).encode()
            where = f"{self.url}/api/v2/dags/{dag_id}/dagRuns"
            urllib.request.urlopen(urllib.request.Request(where, body, headers), timeout=60).close()
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return False
            raise
        except (urllib.error.URLError, TimeoutError):
            return False
        return True


@contextmanager
def airflow(home: Path, dag_file: str, environ: Mapping[str, str]) -> Iterator[Airflow]:
    """Airflow with one DAG file, whose API answers; ``environ`` is added to its environment."""
    (home / "dags").mkdir(parents=True)
    (home / "dags" / "dags.py").write_text(dag_file)
    settings = airflow_environ(home) | _SOON | environ
    with (home / "servers.log").open("wb") as log:
        subprocess.run([AIRFLOW, "db", "migrate"], env=settings, stdout=log, stderr=log, check=True)
        parts = [
            subprocess.Popen(
                ["bash", "-c", _KEEP_UP, "bash", AIRFLOW, part],
                env=settings, stdout=log, stderr=log, start_new_session=True,
            )
            for part in _PARTS
        ]  # fmt: skip
    try:
        server = Airflow(home, settings["AIRFLOW"])
        _wait_for_api(server)
        yield server
    finally:
        for part in parts:
            with suppress(ProcessLookupError):
                os.killpg(part.pid, signal.SIGKILL)
            part.wait()


def _wait_for_api(server: Airflow) -> None:
    since = time.monotonic()
    while True:
        with suppress(urllib.error.URLError, TimeoutError):
            urllib.request.urlopen(f"{server.url}/auth/token", timeout=30).close()
            return
        late = time.monotonic() - since > _SECONDS_TO_START
        assert not late, f"Airflow does not start: {(server.home / 'servers.log').read_text()[-3000:]}"
        time.sleep(0.5)
