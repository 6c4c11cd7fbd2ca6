"""A slice through an own Airflow (`airflow standalone`, every task a process), and how much of it is Airflow's."""

from __future__ import annotations

import sqlite3
import subprocess
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from typing import TYPE_CHECKING, ClassVar

from benchmarks.scale.measurement import Figure, Measurement
from benchmarks.scale.parts import AFTER_START, PHASES, Spent, parts, read_spans
from benchmarks.scale.spans import START
from hindstream.airflow import embedded
from tests.hindstream.airflow.airflow_environ import AIRFLOW
from tests.hindstream.airflow.standalone import standalone
from tests.hindstream.spark.orders import (
    DAY_MS,
    JOB_FILE,
    archive_orders,
    check_published,
    make_settings,
    orders,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.scale.parts import Span
    from hindstream.airflow.replay import TaskPer
    from statelib.settings.settings import Settings
    from tests.hindstream.airflow.standalone import Standalone

_TARGET_SECONDS = 12.0
_OUR_CODE = "hindstream.airflow.runner:Runner.call"
_WATCHED = (_OUR_CODE, *PHASES)
_SHAPES: tuple[tuple[str, TaskPer, str], ...] = (
    ("spark-phases", "phase", "spark"),
    ("spark-run", "run", "spark"),
    ("local-phases", "phase", "local"),
    ("local-run", "run", "local"),
)


@dataclass
class Scheduled(Measurement):
    """A slice a day, one run after the other; medians of all but the first, for which Airflow is not warm.

    What each shape has published is checked.

    Attributes:
        days: How many slices.
        records: Of all slices together.
    """

    name: ClassVar[str] = "scheduled"

    days: int = 4
    records: int = 3_000

    def figures(self, folder: Path) -> Iterator[Figure]:
        """See `Measurement`."""
        yield from self._measured(folder, of_tasks=False)

    def of_tasks(self, folder: Path) -> Iterator[Figure]:
        """Where the time of a task's process goes; its CPU includes what its Spark takes, not its supervisor."""
        yield from self._measured(folder, of_tasks=True)

    def _measured(self, folder: Path, *, of_tasks: bool) -> Iterator[Figure]:
        home, lines = folder / "airflow", folder / "spans"
        given_orders = orders(self.records, days=self.days)
        settings_of: dict[str, Settings] = {}
        for dag_id, task_per, engine in _SHAPES:
            settings = settings_of[dag_id] = make_settings(folder / dag_id)
            archive_orders(settings, given_orders)
            given = {"warehouse": settings.warehouse, "state_dir": str(settings.state_dir), "engine": engine}
            embedded._write_dag_file(home, dag_id, f"{JOB_FILE}:job", given, task_per)
            if of_tasks:
                file = home / "dags" / f"{dag_id}.py"
                watching = f"from benchmarks.scale.spans import watch\nwatch({str(lines)!r}, *{_WATCHED})\n"
                file.write_text(watching + file.read_text(encoding="utf-8"), encoding="utf-8")
        with standalone(folder) as airflow:
            airflow.wait(lambda: all("known" in airflow.states(dag_id) for dag_id, *_ in _SHAPES))
            airflow.wait(airflow.takes_token)
            for dag_id, task_per, engine in _SHAPES:
                runs = [self._run(airflow, dag_id, day) for day in range(1, self.days + 1)][1:]
                check_published(settings_of[dag_id], given_orders)
                what = "a task per phase" if task_per == "phase" else "one task"
                shape = f"{what}, engine {engine}"
                if of_tasks:
                    yield from _of_tasks(shape, runs, read_spans(lines))
                else:
                    yield self._of_slices(shape, runs)

    def _of_slices(self, shape: str, runs: list[tuple[float, list[_Task]]]) -> Figure:
        seconds = median(took for took, _ in runs)
        by_name = zip(*(tasks for _, tasks in runs), strict=True)  # the same tasks in the same order
        tasks = {same[0].name: median(task.seconds for task in same) for same in by_name}
        own = seconds - sum(tasks.values())
        details = {**{f"{task}, s": took for task, took in tasks.items()}, "between tasks, s": own}
        name = f"a slice of {self.records // self.days:,} records through an own Airflow, {shape}"
        return Figure(name, seconds, "s", at_most=_TARGET_SECONDS, details=details)

    def _run(self, airflow: Standalone, dag_id: str, day: int) -> tuple[float, list[_Task]]:
        """How long a run took, seconds, and its tasks."""
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


@dataclass(frozen=True)
class _Task:
    """As Airflow's database has it; the times are seconds since 1970."""

    name: str
    pid: int
    began: float
    ended: float

    @property
    def seconds(self) -> float:
        return self.ended - self.began


def _of_tasks(shape: str, runs: list[tuple[float, list[_Task]]], spans: dict[int, list[Span]]) -> Iterator[Figure]:
    """Medians over all tasks of all runs."""
    stretches: dict[str, list[Spent]] = defaultdict(list)
    tasks = [task for _, tasks in runs for task in tasks]
    for task in tasks:
        of_task = [span for span in spans[task.pid] if span.ended.seconds > task.began]  # process ids come again
        found, ended = parts(of_task), max(span.ended.seconds for span in of_task)
        airflow, between, ours = (found.pop(name) for name in (START, AFTER_START, _OUR_CODE))
        before = task.began - of_task[0].began.seconds  # the process begins a little before the task, or after it
        stretches["until the DAG file is read"].append(airflow - Spent(before))
        stretches["until our code begins"].append(between)
        stretches["our imports, settings, job file"].append(ours)
        stretches["the phase" if len(found) == 1 else "all phases"].append(sum(found.values(), Spent()))
        stretches["after our code"].append(Spent(task.ended - ended))
    yield Figure(f"a task of Airflow's, {shape}", median(task.seconds for task in tasks), "s")
    for name, several in stretches.items():
        spent = Spent.median(several)
        yield Figure(f"... {name}", spent.seconds, "s", details={"CPU, s": spent.cpu_seconds})


def _times(airflow: Standalone, dag_id: str, run_id: str) -> tuple[str, float, list[_Task]] | None:
    """The state of a run that has ended, how long it took, seconds, and its tasks in the order in which they began."""
    database = airflow.folder / "airflow" / "airflow.db"
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        asked = "select state, queued_at, end_date from dag_run where dag_id = ? and run_id = ?"
        run = connection.execute(asked, [dag_id, run_id]).fetchone()
        if run is None or run[0] not in {"success", "failed"}:
            return None
        asked = "select task_id, pid, start_date, end_date from task_instance where dag_id = ? and run_id = ?"
        tasks = connection.execute(f"{asked} order by start_date", [dag_id, run_id]).fetchall()
    began, ended = map(_seconds, run[1:])
    known = [_Task(name, pid, *map(_seconds, between)) for name, pid, *between in tasks if all(between)]
    return run[0], ended - began, known


def _seconds(time: str) -> float:
    """Since 1970; Airflow's database has UTC without saying so."""
    return datetime.fromisoformat(time).replace(tzinfo=UTC).timestamp()
