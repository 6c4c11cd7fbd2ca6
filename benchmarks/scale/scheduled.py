"""A slice through an own Airflow (`airflow standalone`, every task a process), and how much of it is Airflow's."""

from __future__ import annotations

import sqlite3
import subprocess
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import TYPE_CHECKING, ClassVar

from benchmarks.scale.measurement import Figure, Measurement
from hindstream.airflow import embedded
from tests.hindstream.airflow.airflow_environ import AIRFLOW
from tests.hindstream.airflow.standalone import standalone
from tests.hindstream.spark.orders import DAY_MS, JOB_FILE, archive_orders, make_settings, orders

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hindstream.airflow.replay import TaskPer
    from tests.hindstream.airflow.standalone import Standalone

_TARGET_SECONDS = 12.0
_SHAPES: tuple[tuple[str, TaskPer, str], ...] = (
    ("spark-phases", "phase", "spark"),
    ("spark-run", "run", "spark"),
    ("local-phases", "phase", "local"),
    ("local-run", "run", "local"),
)


@dataclass
class Scheduled(Measurement):
    """A slice a day, one run after the other; medians of all but the first, for which Airflow is not warm.

    Attributes:
        days: How many slices.
        records: Of all slices together.
    """

    name: ClassVar[str] = "scheduled"

    days: int = 4
    records: int = 3_000

    def figures(self, folder: Path) -> Iterator[Figure]:
        """See `Measurement`."""
        home = folder / "airflow"
        for dag_id, task_per, engine in _SHAPES:
            settings = make_settings(folder / dag_id)
            archive_orders(settings, orders(self.records, days=self.days))
            given = {"warehouse": settings.warehouse, "state_dir": str(settings.state_dir), "engine": engine}
            embedded._write_dag_file(home, dag_id, f"{JOB_FILE}:job", given, task_per)
        with standalone(folder) as airflow:
            airflow.wait(lambda: all("known" in airflow.states(dag_id) for dag_id, *_ in _SHAPES))
            airflow.wait(airflow.takes_token)
            for dag_id, task_per, engine in _SHAPES:
                runs = [self._run(airflow, dag_id, day) for day in range(1, self.days + 1)][1:]
                seconds = median(took for took, _ in runs)
                tasks = {task: median(of[task] for _, of in runs) for task in runs[0][1]}
                own = seconds - sum(tasks.values())
                details = {**{f"{task}, s": took for task, took in tasks.items()}, "between tasks, s": own}
                what = "a task per phase" if task_per == "phase" else "one task"
                name = (
                    f"a slice of {self.records // self.days:,} records through an own Airflow, {what}, engine {engine}"
                )
                yield Figure(name, seconds, "s", at_most=_TARGET_SECONDS, details=details)

    def _run(self, airflow: Standalone, dag_id: str, day: int) -> tuple[float, dict[str, float]]:
        """How long a run took, and each of its tasks, seconds."""
        run_id = f"day-{day}"
        conf = f'{{"until": {day * DAY_MS}}}'
        command = [AIRFLOW, "dags", "trigger", dag_id, "--run-id", run_id, "--conf", conf]
        subprocess.run(command, env=airflow.environ, check=True, capture_output=True)
        airflow.wait(lambda: _times(airflow, dag_id, run_id) is not None)
        times = _times(airflow, dag_id, run_id)
        assert times is not None
        state, took, tasks = times
        if state != "success":
            raise RuntimeError(f"{dag_id} {run_id}: {state}, see {airflow.log}")
        return took, tasks


def _times(airflow: Standalone, dag_id: str, run_id: str) -> tuple[str, float, dict[str, float]] | None:
    """The state of a run that has ended, and how long it and its tasks took, seconds."""
    database = airflow.folder / "airflow" / "airflow.db"
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        asked = "select state, queued_at, end_date from dag_run where dag_id = ? and run_id = ?"
        run = connection.execute(asked, [dag_id, run_id]).fetchone()
        if run is None or run[0] not in {"success", "failed"}:
            return None
        asked = "select task_id, start_date, end_date from task_instance where dag_id = ? and run_id = ?"
        tasks = connection.execute(asked, [dag_id, run_id]).fetchall()
    return run[0], _seconds(*run[1:]), {task: _seconds(*between) for task, *between in tasks if all(between)}


def _seconds(start: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
