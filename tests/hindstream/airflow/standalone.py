"""`airflow standalone` on ports of its own, and what its database says of runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.hindstream.airflow.airflow_environ import AIRFLOW, airflow_environ

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@dataclass
class Standalone:
    """A running `airflow standalone`: a scheduler that runs each task in a process of its own.

    Attributes:
        folder: Holds Airflow's home, ``airflow``.
        environ: What a command needs to reach it.
        process: Its own.
        log: What all its servers say.
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
        """State of each task, and of the run under ``dag_run``; nothing of a DAG that is not known yet."""
        known = self.ask("select 'known', 'yes' from dag where dag_id = :dag_id", dag_id)
        run = self.ask("select 'dag_run', state from dag_run where dag_id = :dag_id", dag_id)
        return dict(
            [*known, *run, *self.ask("select task_id, state from task_instance where dag_id = :dag_id", dag_id)]
        )

    def runs(self, dag_id: str) -> list[tuple[str, str, str]]:
        """Day of the data interval, type and state of each run of a DAG, the oldest first."""
        asked = "select date(data_interval_start), run_type, state from dag_run where dag_id = :dag_id order by 1"
        return [(str(day), kind, state) for day, kind, state in self.ask(asked, dag_id)]

    def is_paused(self, dag_id: str) -> bool:
        """Whether somebody has paused a DAG."""
        return self.ask("select 1 from dag where dag_id = :dag_id and is_paused", dag_id) == [(1,)]

    def ask(self, query: str, dag_id: str) -> list[Any]:
        """What Airflow's database says; nothing while it is not migrated yet, or busy."""
        from sqlalchemy import create_engine, text  # noqa: PLC0415 - Airflow's
        from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415

        engine = create_engine(self.environ["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"])
        try:
            with engine.connect() as connection:
                return [tuple(row) for row in connection.execute(text(query), {"dag_id": dag_id})]
        except SQLAlchemyError:
            return []
        finally:
            engine.dispose()

    def all_ended(self, dag_id: str, count: int) -> list[tuple[str, str, str]]:
        """The runs of a DAG, when there are so many and none has anything left to do."""

        def found() -> bool:
            runs = self.runs(dag_id)
            return len(runs) == count and {state for *_, state in runs} <= {"success", "failed"}

        self.wait(found)
        return self.runs(dag_id)

    def ended(self, dag_id: str) -> dict[str, str]:
        """The states of a run's tasks, when it has ended."""
        self.wait(lambda: self.states(dag_id).get("dag_run") in {"success", "failed"})
        return {name: state for name, state in self.states(dag_id).items() if name != "known"}

    def takes_token(self) -> bool:
        """Airflow knows no users here, everybody is its administrator; False: its API does not answer yet."""
        try:
            with urllib.request.urlopen(f"{self.environ['AIRFLOW']}/auth/token") as answer:
                self.environ["TOKEN"] = json.load(answer)["access_token"]
        except urllib.error.URLError:
            return False
        return True


@contextmanager
def standalone(folder: Path, **others: str) -> Iterator[Standalone]:
    """Airflow with the home ``folder / "airflow"``, whose DAG files are there; its processes end with the context.

    Args:
        folder: Holds the home.
        others: Variables of the environment, before those of `airflow_environ`.
    """
    log = folder / "airflow" / "standalone.log"
    environ = airflow_environ(folder / "airflow") | others
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
            yield Standalone(folder, environ, process, log)
        finally:
            process.send_signal(signal.SIGINT)  # SIGTERM would leave its children behind
            with suppress(subprocess.TimeoutExpired):  # how fast Airflow ends is not what is tested
                process.wait(30)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
