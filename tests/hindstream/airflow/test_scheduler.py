"""DAG files under a real scheduler, `airflow standalone`, every task in a process of its own: a slice, and a migration.

The migration is done by the commands of its runbook.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hindstream import open_state
from hindstream.airflow import embedded
from hindstream.airflow.migration import STEPS
from hindstream.airflow.replay import PHASES
from hindstream.runs import open_warehouse
from statelib.commits import CommitLog, published_through, read_hold
from tests.docs.blocks import Typed, parts, section
from tests.docs.curl import path_with_curl
from tests.hindstream.airflow import rates
from tests.hindstream.airflow.airflow_environ import AIRFLOW, airflow_environ
from tests.hindstream.spark.orders import JOB_FILE, archive_orders, make_settings, orders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.spark, pytest.mark.airflow, pytest.mark.slow]

RUNBOOK = section("migrating-a-store.md", "By Airflow")
TRIGGER, REJECT, CLEAR, APPROVE = [part.command for part in parts(RUNBOOK) if isinstance(part, Typed)]
(DAG_FILE,) = re.findall(r"```python\n(.*?)```", RUNBOOK, re.DOTALL)


@dataclass
class Scheduler:
    """A running `airflow standalone`.

    Attributes:
        folder: Holds Airflow's home, and for each DAG the folder with its warehouse.
        environ: What a command needs to reach it.
    """

    folder: Path
    environ: dict[str, str]
    process: subprocess.Popen[bytes]
    log: Path

    def wait(self, condition: Callable[[], object]) -> None:
        """Until ``condition`` holds; the time-out of the whole test is the only limit."""
        while not condition():
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.5)

    def states(self, dag_id: str) -> dict[str, str]:
        """State of each task, and of the run under ``run``; nothing of a DAG that is not known yet."""
        database = self.folder / "airflow" / "airflow.db"
        if not database.exists():
            return {}
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            try:
                known = connection.execute("select 'known', 'yes' from dag where dag_id = ?", [dag_id]).fetchall()
                run = connection.execute("select 'run', state from dag_run where dag_id = ?", [dag_id]).fetchall()
                tasks = connection.execute("select task_id, state from task_instance where dag_id = ?", [dag_id])
                return dict([*known, *run, *tasks.fetchall()])
            except sqlite3.OperationalError:  # not migrated yet, or busy
                return {}

    def ended(self, dag_id: str) -> dict[str, str]:
        """The states of a run's tasks, when it has ended."""
        self.wait(lambda: self.states(dag_id).get("run") in {"success", "failed"})
        return {name: state for name, state in self.states(dag_id).items() if name != "known"}

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

    def log_of(self, dag_id: str, task_id: str) -> str:
        """The log of a task's newest try."""
        folder = self.folder / "airflow" / "logs" / f"dag_id={dag_id}"
        files = sorted(folder.glob(f"run_id=*/task_id={task_id}/attempt=*.log"))
        return files[-1].read_text()

    def takes_token(self) -> bool:
        """Airflow knows no users here, everybody is its administrator; False: its API does not answer yet."""
        try:
            with urllib.request.urlopen(f"{self.environ['AIRFLOW']}/auth/token") as answer:
                self.environ["TOKEN"] = json.load(answer)["access_token"]
        except urllib.error.URLError:
            return False
        return True

    def _api(self, path: str) -> Any:
        request = urllib.request.Request(f"{self.environ['AIRFLOW']}/api/v2/{path}")
        request.add_header("Authorization", f"Bearer {self.environ['TOKEN']}")
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)


def _write_dags(folder: Path) -> None:
    """The DAG of a job with a topic, as the embedded backfill writes it, and that of a migration from its runbook."""
    home = folder / "airflow"
    settings = make_settings(folder / "orders")
    archive_orders(settings, orders())
    given = {"warehouse": settings.warehouse, "state_dir": str(settings.state_dir), "engine": "local"}
    embedded._write_dag_file(home, "orders", f"{JOB_FILE}:job", given)
    place = folder / "migrate-rates"
    rates.run_plain(place)
    others = f'"{place}/warehouse", state_dir="{place}/state", engine="local"'
    dag_file = DAG_FILE.replace("jobs/rates.py:job", f"{rates.__file__}:job").replace('"warehouse"', others)
    (home / "dags" / "migrate-rates.py").write_text(dag_file)


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scheduler]:
    folder = tmp_path_factory.mktemp("scheduler")
    _write_dags(folder)
    log = folder / "airflow" / "standalone.log"
    environ = airflow_environ(folder / "airflow")
    environ["PATH"] = path_with_curl(environ["PATH"], tmp_path_factory.mktemp("bin"))
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
            yield Scheduler(folder, environ, process, log)
        finally:
            process.send_signal(signal.SIGINT)  # SIGTERM would leave its children behind
            with suppress(subprocess.TimeoutExpired):  # how fast Airflow ends is not what is tested
                process.wait(30)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@pytest.fixture(scope="module")
def refused(scheduler: Scheduler) -> dict[str, str]:
    """Both DAGs have been triggered; the states of the migration's tasks after its refusal."""
    scheduler.wait(lambda: all("known" in scheduler.states(dag_id) for dag_id in ("orders", "migrate-rates")))
    scheduler.wait(scheduler.takes_token)
    scheduler.type(f"{TRIGGER} & airflow dags trigger orders && wait $!")
    scheduler.answer(REJECT)
    return scheduler.ended("migrate-rates")


def test_refused_a_migration_changes_nothing(scheduler: Scheduler, refused: dict[str, str]) -> None:
    skipped = dict.fromkeys([*STEPS[2:], "roll_back"], "skipped")
    assert refused == {"plan": "success", "approve": "success", **skipped, "run": "success"}
    warehouse = open_warehouse(make_settings(scheduler.folder / "migrate-rates"))
    assert CommitLog(warehouse, "rates").head_number() == 1
    assert read_hold(warehouse, "rates") is None
    assert "its changelog of 40 records" in scheduler.xcom("migrate-rates", "plan")["text"]
    assert "its changelog of 40 records" in scheduler.log_of("migrate-rates", "plan")


def test_approved_it_is_done(scheduler: Scheduler, refused: dict[str, str]) -> None:
    scheduler.type(CLEAR)
    scheduler.answer(APPROVE, question=2)
    states = scheduler.ended("migrate-rates")
    expected = {**dict.fromkeys(STEPS, "success"), "roll_back": "skipped", "run": "success"}
    assert states == expected, scheduler.log.read_text()
    place = scheduler.folder / "migrate-rates"
    warehouse = open_warehouse(make_settings(place))
    assert (CommitLog(warehouse, "rates").head_number(), read_hold(warehouse, "rates")) == (2, None)
    assert scheduler.xcom("migrate-rates", "set_compaction_lag") == {"rates": 86_400_000 + 300_000}  # a day more
    compared = scheduler.xcom("migrate-rates", "verify")
    assert sum(part["equal"] for part in compared) == 5
    assert [part["differences"] for part in compared] == [0, 0]
    assert max(part["versions"] for part in compared) > 5
    (host,) = scheduler.xcom("migrate-rates", "clean_local_state")
    assert host["kept_files"] > 0
    with open_state(warehouse.uri(""), "rates", "rates", state_dir=place / "state") as store:
        assert store.kind == "versioned"


def test_a_triggered_run_goes_through_all_phases(scheduler: Scheduler, refused: dict[str, str]) -> None:
    assert scheduler.ended("orders") == {**dict.fromkeys(PHASES, "success"), "run": "success"}, (
        scheduler.log.read_text()
    )
    warehouse = open_warehouse(make_settings(scheduler.folder / "orders"))
    assert CommitLog(warehouse, "orders").head_number() == published_through(warehouse, "orders") == 1
