"""Runs a DAG's slices through a real Airflow in this process: SQLite, no servers.

An Airflow home holds one warehouse's DAG file, database and log. The same home serves ``airflow standalone`` later,
with the history of what has run here.
"""

from __future__ import annotations

import logging
import os
import sys
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statelib.errors.kinds import ConfigurationError, HindstreamError, InternalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from hindstream.airflow.replay import TaskPer

_DAG_FILE = '''"""An Airflow DAG, written by Hindstream."""

from hindstream.airflow import replay_dag

dag = replay_dag({job!r}, dag_id={dag_id!r}, task_per={task_per!r}, **{settings!r})
'''


@dataclass(frozen=True, slots=True)
class SliceRun:
    """What Airflow has made of a slice.

    Attributes:
        until_ms: The end that was asked for.
        run_id: The run; None: there was nothing to do.
        states: State of each task, by its id: ``success`` or ``skipped``.
        future_records: Records that hold the slice back, or by which others are lost; a sentence each.
    """

    until_ms: int | None
    run_id: str | None
    states: Mapping[str, str] = field(default_factory=dict)
    future_records: Sequence[str] = ()


def backfill(
    job: str,
    untils: Sequence[int | None],
    *,
    home: Path,
    dag_id: str,
    settings: Mapping[str, Any],
    task_per: TaskPer = "phase",
    seal: bool = False,
    on_slice: Callable[[SliceRun], None] | None = None,
) -> list[SliceRun]:
    """Runs one slice after the other, in the order given.

    While a slice runs, ``sys.stdout`` and ``sys.stderr`` are the log, ``<home>/backfill.log``: a progress display has
    to hold a stream of its own.

    Args:
        job: As for `hindstream.airflow.replay.replay_dag`; a file's path is made absolute.
        untils: The slices' ends, ms since 1970; None: all that there is.
        home: Airflow's home; made if absent. A process can have one.
        dag_id: Airflow's name for the DAG.
        settings: Settings of `statelib.settings.settings.Settings`, as JSON data.
        task_per: As for `hindstream.airflow.replay.replay_dag`.
        seal: Whether the last slice seals the job (``end_of_input``).
        on_slice: Called after each slice.

    Returns:
        One entry for each slice.

    Raises:
        HindstreamError: That of the phase that failed; the slices before it are done, those after it have not begun.
        ConfigurationError: Airflow runs in this process already, with another home.
        InternalError: Airflow has not run all tasks, and says no more; the log does.
    """
    home = home.absolute()
    _write_dag_file(home, dag_id, job, settings, task_per)
    runs = []
    for number, until_ms in enumerate(untils, start=1):
        run = _run(home, dag_id, until_ms, seal=seal and number == len(untils))
        runs.append(run)
        if on_slice is not None:
            on_slice(run)
    return runs


def _write_dag_file(
    home: Path, dag_id: str, job: str, settings: Mapping[str, Any], task_per: TaskPer = "phase"
) -> None:
    place, colon, attribute = job.partition(":")
    reference = f"{Path(place).absolute()}{colon}{attribute}" if place.endswith(".py") else job
    file = home / "dags" / f"{dag_id}.py"
    text = _DAG_FILE.format(job=reference, dag_id=dag_id, task_per=task_per, settings=dict(settings))
    if not file.is_file() or file.read_text() != text:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


class _AirflowOutput:
    """Where Airflow writes, for as long as the process lives: it keeps the streams that it finds when it is imported.

    Inside the context the standard streams and the root logger's handlers are Airflow's, outside they are the caller's.
    """

    def __init__(self, home: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.home = home
        self.file = home / "backfill.log"
        self._stream = self.file.open("a", encoding="utf-8", buffering=1)
        self._handlers: list[logging.Handler] = []
        self._level = logging.INFO

    def close(self) -> None:
        """Ends it; Airflow cannot be used after that."""
        self._stream.close()

    @contextmanager
    def taken(self) -> Iterator[None]:
        root = logging.getLogger()
        handlers, level = root.handlers[:], root.level
        root.handlers[:] = self._handlers
        root.setLevel(self._level)
        try:
            with redirect_stdout(self._stream), redirect_stderr(self._stream):
                yield
        finally:
            self._handlers, self._level = root.handlers[:], root.level
            root.handlers[:] = handlers
            root.setLevel(level)


_output: _AirflowOutput | None = None


def _started(home: Path) -> _AirflowOutput:
    """Airflow with this home, in this process; the first call imports it and makes its database."""
    global _output  # noqa: PLW0603 - Airflow is one a process, whatever we do
    if _output is not None and _output.home == home:
        return _output
    if _output is not None or "airflow" in sys.modules:
        other = _output.home if _output else os.environ.get("AIRFLOW_HOME", "~/airflow")
        next_step = "run each Airflow home in a process of its own"
        raise ConfigurationError(
            f"this process runs Airflow with another home, {other}", file=home, next_step=next_step
        )
    os.environ |= {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
    }
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    _output = _AirflowOutput(home)
    with _output.taken():
        from airflow.utils.db import check_migrations, initdb  # noqa: PLC0415

        try:
            check_migrations(timeout=0)  # type: ignore[no-untyped-call]
        except Exception:  # noqa: BLE001 - whatever it finds amiss, a migration mends
            initdb()
    return _output


def _run(home: Path, dag_id: str, until_ms: int | None, *, seal: bool) -> SliceRun:
    """One run of the DAG. The DAG is read anew: parameters of a run stay in a DAG object."""
    output = _started(home)
    errors: list[BaseException] = []
    with output.taken():
        from airflow.dag_processing.dagbag import DagBag  # noqa: PLC0415

        bag = DagBag(dag_folder=home / "dags" / f"{dag_id}.py")
        if dag_id not in bag.dags:
            raise InternalError(f"Airflow cannot load the DAG: {bag.import_errors}", dag=dag_id, file=output.file)
        dag: Any = bag.dags[dag_id]
        for task in dag.tasks:
            task.retries = 0
            task.on_failure_callback = [lambda context: errors.append(context["exception"])]
        end = None if until_ms is None else datetime.fromtimestamp(until_ms / 1000, UTC)
        conf = {"until": end.isoformat() if end else None, "end_of_input": "seal" if seal else "hold"}
        run = dag.test(logical_date=datetime.now(UTC), run_conf=conf)
        instances = {instance.task_id: instance for instance in run.get_task_instances()}
        states = {task.task_id: str(instances[task.task_id].state) for task in dag.tasks}
        from hindstream.airflow.operators import FUTURE_RECORDS  # noqa: PLC0415 - imports Airflow
        from hindstream.airflow.replay import RUN  # noqa: PLC0415

        first = RUN if RUN in states else "plan"
        run_id = instances[first].xcom_pull(task_ids=first)
        future_records = instances[first].xcom_pull(task_ids=first, key=FUTURE_RECORDS)
    failed = [task_id for task_id, state in states.items() if state not in {"success", "skipped"}]
    if failed or states.get("plan", "success") != "success":
        raise _failure(errors, dag_id, states, output.file)
    return SliceRun(until_ms, run_id, states, future_records or ())


def _failure(errors: Sequence[BaseException], dag_id: str, states: Mapping[str, str], log: Path) -> HindstreamError:
    for error in errors:
        found = error if isinstance(error, HindstreamError) else error.__cause__
        if isinstance(found, HindstreamError):
            return found
    shown = ", ".join(f"{task_id} {state}" for task_id, state in states.items())
    return InternalError(f"Airflow has not run all tasks: {shown}", dag=dag_id, next_step=f"look at {log}")
