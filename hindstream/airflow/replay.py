"""Makes an Airflow DAG from a job: one run per slice, and in it one task per phase, or one for all phases.

::

    from hindstream.airflow import replay_dag

    dag = replay_dag("/srv/jobs/flights.py:job", schedule="0 0 1 * *", warehouse="s3://lake/warehouse")

A run replays the slice that ends at its parameter ``until``, or else at the end of its data interval. It begins where
the last commit ended. So runs need no ``depends_on_past``: a failed slice becomes part of the next one; a run whose
slice has already been replayed, or that is out of order, says so and does nothing; and of two simultaneous runs, one
commits and the other gets an error. The parameter ``end_of_input`` can seal the job with a run.

With ``archive``, a run first copies new records of the job's topics from Kafka, or new files of a lake.

`hindstream.airflow.migration` makes the DAG that migrates a job's stores.

Parsing the file imports nothing large except Airflow. (A DAG file must contain the words "airflow" and "dag", or
Airflow ignores it.)
"""

from __future__ import annotations

import importlib
import inspect
import logging
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from airflow.sdk import DAG, CronDataIntervalTimetable, Param, chain, get_current_context, task
from airflow.sdk.exceptions import AirflowSkipException

from hindstream.airflow.runner import Runner
from statelib.calls import function_checked
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError
from statelib.settings.settings import check_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hindstream.spark.phases.pipeline import SliceResult
    from statelib.commits import NothingToDo
    from statelib.documents.plans import Plan
    from statelib.job.job import Job
    from statelib.settings.settings import Settings

FUTURE_RECORDS = "future_records"
"""The key of what the first task tells beside its run: records by which others are lost, or have to wait."""

PHASES = ("plan", "replay", "audit", "commit", "publish", "maintain", "report")
"""The tasks of a DAG with a task per phase, in order."""

RUN = "run"
"""The task of a DAG with a task per run."""

TaskPer = Literal["phase", "run"]

_log = logging.getLogger(__name__)

_NO_CRON = ("@once", "@continuous")
"""Schedules of Airflow's that have a name like those of cron, and are none."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@function_checked
def replay_dag(
    job: str,
    *,
    dag_id: str | None = None,
    schedule: Any = None,
    start_date: datetime = _EPOCH,
    end_date: datetime | None = None,
    end_of_input: Literal["hold", "seal"] = "hold",
    tags: Sequence[str] = ("hindstream",),
    task_per: Literal["phase", "run"] = "phase",
    archive: str | None = None,
    storage_conn_id: str | None = None,
    config: str | None = None,
    **settings: object,
) -> DAG:
    """The DAG of a job.

    Args:
        job: ``PACKAGE.MODULE:NAME`` or ``/path/to/file.py:NAME``; loaded when a task runs.
        dag_id: The DAG's id; None: made from ``job``.
        schedule: A cron expression, whose intervals are the slices; ``@once``, one run of everything; or any other
            schedule of Airflow; None: runs are only triggered manually.
        start_date: Airflow makes no runs before it. As in any DAG, its time zone applies to a cron expression:
            ``datetime(2013, 1, 1, tzinfo=ZoneInfo("Europe/Berlin"))`` for days in Berlin.
        end_date: Airflow makes no runs after it; None: no end. (When it is unpaused, a DAG with a schedule and no end
            immediately gets a run for the newest interval, beside any backfill.)
        end_of_input: What a run does at the end of its slice, unless its parameter of that name says otherwise:
            ``hold`` open windows for the next slice, or ``seal`` the job, which then has no further slice.
        tags: Tags of the DAG in Airflow.
        task_per: ``phase``: each phase of a run is a task. ``run``: one task does them all, for slices so small that
            the start of seven tasks takes longer than their work. A retry goes on where the task has failed; if that
            was after the commit, it does what is left and is shown as skipped: there is nothing more to replay.
        archive: The Kafka topics or files of a lake that a run copies first: a `KafkaTopic`, a `LakeTopic` or a list of
            them, in the form of ``job``; None: something else fills the archives.
        storage_conn_id: The Airflow connection with the object store's credentials, which is read when a task runs;
            None: they are in the environment of Airflow's workers.
        config: The settings file, which is read when a task runs; None: that in ``HINDSTREAM_CONFIG``, or
            ``hindstream.toml`` in the working directory of Airflow's workers.
        settings: Settings of `statelib.settings.settings.Settings`, which override environment and file.

    Raises:
        ConfigurationError: There is no setting of that name, a setting cannot have that value, or an argument is of
            another type.
    """
    check_settings(settings, place=f"replay_dag({job!r})", besides=_own_names(replay_dag))
    if settings.get("until") is not None:
        step = "give schedule=, or trigger a run with the parameter until"
        raise ConfigurationError("slices of a DAG end where their runs say", setting="until", next_step=step)
    is_cron = isinstance(schedule, str) and schedule not in _NO_CRON
    timetable = CronDataIntervalTimetable(schedule, timezone=_timezone_of(start_date)) if is_cron else schedule
    until = Param(
        None,
        type=["null", "string", "integer"],
        title="End of the slice",
        description="ISO 8601 with time zone, or milliseconds since 1970; none: the end of the data interval",
    )
    end = Param(
        end_of_input,
        enum=["hold", "seal"],
        title="End of the input",
        description="hold: open windows wait for the next slice; seal: they are emitted, and the job ends",
    )
    phases = [*([] if archive is None else ["archive"]), *PHASES]
    with DAG(
        dag_id or re.sub(r"[^\w.-]+", "-", job).strip("-"),
        schedule=timetable,
        start_date=start_date,
        end_date=end_date,
        catchup=False,
        max_active_runs=1,
        params={"until": until, "end_of_input": end},
        tags=list(tags),
        doc_md=f"Replays `{job}`, a slice a run: {' → '.join(phases)}.",
        default_args={"retries": 2, "retry_delay": timedelta(minutes=1)},
    ) as dag:
        runner = Runner(job, settings, storage_conn_id, config)
        first = [] if archive is None else [_archive_task(runner, archive)]
        has_intervals = schedule != "@once"
        if task_per == "run":
            chain(*first, _run_task(runner, has_intervals=has_intervals))
        else:
            run_id = _plan_task(runner, has_intervals=has_intervals)
            chain(*first, run_id, *(_phase_task(name, runner, run_id) for name in PHASES[1:]))
    return dag


def _timezone_of(start_date: datetime) -> Any:
    """The time zone that Airflow takes a cron expression in."""
    return DAG("timezone", schedule=None, start_date=start_date).timezone


def _archive_task(runner: Runner, topics: str) -> Any:
    @task(task_id="archive", do_xcom_push=False)
    def archive() -> None:
        copy_topics(runner, topics)

    return archive()


def copy_topics(runner: Runner, topics: str) -> None:
    """Copies all that is new, whatever the slice: it ends by event time, and records come out of order.

    Args:
        runner: What the tasks of the DAG have in common.
        topics: The topics, in the form of a job.
    """

    def copy(_: Job, settings: Settings) -> None:
        from hindstream.spark.lake.archive import archive as archived  # noqa: PLC0415
        from statelib.ingest.load import Loaded  # noqa: PLC0415
        from statelib.job.topics import load_topics  # noqa: PLC0415

        for copied in archived(load_topics(topics), settings):
            if isinstance(copied, Loaded):
                _log.info("%s: %s loaded", copied.topic, counted(copied.records, "record was", "records were"))
            else:
                offsets = sum(found.end - found.start for found in copied.ranges.values())
                _log.info("%s: %s copied", copied.topic, counted(offsets, "offset was", "offsets were"))

    runner.call(copy, until=None)


def _own_names(factory: Callable[..., DAG]) -> list[str]:
    """The parameters of a function that makes a DAG, without the settings."""
    return [name for name, of in inspect.signature(factory).parameters.items() if of.kind is not of.VAR_KEYWORD]


def _plan_task(runner: Runner, *, has_intervals: bool) -> Any:
    @task.short_circuit(task_id="plan")
    def plan() -> str | None:
        """Gives the run's id; None, which skips all that follows, if there is nothing to do."""
        planned = runner.call(_phase("plan"), **_slice(has_intervals=has_intervals))
        _tell_future_records(planned)
        return getattr(planned, "run_id", None)

    return plan()


def _run_task(runner: Runner, *, has_intervals: bool) -> Any:
    @task(task_id=RUN)
    def run() -> str:
        """Gives the run's id; skipped if there is nothing to do."""

        def run_slice(job: Job, settings: Settings) -> SliceResult | NothingToDo:
            from hindstream.spark.phases import pipeline  # noqa: PLC0415

            return pipeline.run_slice(job, settings)

        done = runner.call(run_slice, **_slice(has_intervals=has_intervals))
        planned = getattr(done, "plan", done)
        _tell_future_records(planned)
        if planned is done:
            raise AirflowSkipException("there is nothing to do")
        return str(planned.run_id)

    return run()


def _slice(*, has_intervals: bool) -> dict[str, object]:
    """The settings that make the current run's slice."""
    end_of_input = get_current_context()["params"]["end_of_input"]
    return {"until": _until(has_intervals=has_intervals), "end_of_input": end_of_input}


def _tell_future_records(planned: Plan | NothingToDo) -> None:
    found = [f"{record}. Next: {record.next_step}" for record in planned.future_records]
    get_current_context()["ti"].xcom_push(key=FUTURE_RECORDS, value=found)


def _phase_task(name: str, runner: Runner, run_id: Any) -> Any:
    @task(task_id=name, do_xcom_push=False)
    def phase(run: str) -> None:
        runner.call(_phase(name, run))

    return phase(run_id)


def _phase(name: str, run_id: str | None = None) -> Callable[[Job, Settings], Any]:
    def run(job: Job, settings: Settings) -> Any:
        return importlib.import_module(f"hindstream.spark.phases.{name}").run(job, settings, run_id)

    return run


def _until(*, has_intervals: bool) -> object:
    """Where the slice of the current run ends; None: at the end of all there is."""
    context = get_current_context()
    given = context["params"]["until"]
    if given is not None:
        return given
    end = context.get("data_interval_end") if has_intervals else None
    return end.isoformat() if end is not None else None
