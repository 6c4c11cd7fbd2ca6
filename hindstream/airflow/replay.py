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
import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from airflow.sdk import DAG, CronDataIntervalTimetable, Param, TaskGroup, chain, get_current_context, task
from airflow.sdk.exceptions import AirflowSkipException

from hindstream.airflow.arguments import RETRIES, Given, id_of
from hindstream.airflow.runner import Runner
from statelib.calls import function_checked
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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
    **given: object,
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
        given: Settings of `statelib.settings.settings.Settings`, which override environment and file; and arguments of
            Airflow's DAG and tasks, such as ``max_active_runs``, ``default_args``, ``pool`` or ``execution_timeout``.

    Raises:
        ConfigurationError: There is no setting or argument of that name, a setting cannot have that value, or an
            argument is of another type.
    """
    arguments = Given.to(replay_dag, job, given)
    if arguments.settings.get("until") is not None:
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
        dag_id or id_of(job, "replay"),
        schedule=timetable,
        start_date=start_date,
        end_date=end_date,
        tags=list(tags),
        **arguments.for_dag(
            catchup=False,
            max_active_runs=1,
            params={"until": until, "end_of_input": end},
            doc_md=f"Replays `{job}`, a slice a run: {' → '.join(phases)}.",
            default_args=RETRIES,
        ),
    ) as dag:
        runner = Runner(job, arguments.settings, storage_conn_id, config)
        _tasks(runner, archive, task_per, _SliceOfRun(has_intervals=schedule != "@once"))
    return dag


@function_checked
def replay_task_group(
    job: str,
    *,
    until: str | None = None,
    end_of_input: Literal["hold", "seal"] = "hold",
    group_id: str = "replay",
    task_per: Literal["phase", "run"] = "phase",
    archive: str | None = None,
    storage_conn_id: str | None = None,
    config: str | None = None,
    **given: object,
) -> TaskGroup:
    """The tasks that replay a slice of a job, in the DAG in whose context this is called.

    Args:
        job: As for `replay_dag`.
        until: Where the slice ends: ISO 8601 with time zone, or ms; a template of Airflow may say it. None, or a
            template that gives nothing: at the end of the run's data interval; without one, at the end of all there is.
        end_of_input: As for `replay_dag`.
        group_id: The group's id in the DAG.
        task_per: As for `replay_dag`.
        archive: As for `replay_dag`.
        storage_conn_id: As for `replay_dag`.
        config: As for `replay_dag`.
        given: Settings, as for `replay_dag`; and arguments of Airflow's tasks.

    Raises:
        ConfigurationError: As for `replay_dag`.
    """
    arguments = Given.to(replay_task_group, job, given, has_dag=False)
    with TaskGroup(group_id, default_args=arguments.for_group(**RETRIES)) as group:
        runner = Runner(job, arguments.settings, storage_conn_id, config)
        _tasks(runner, archive, task_per, _SliceAsked(until, end_of_input))
    return group


def _tasks(runner: Runner, archive: str | None, task_per: TaskPer, slice_: _SliceOfRun | _SliceAsked) -> None:
    """The tasks of a slice, in the DAG and group of the context."""
    first = [] if archive is None else [_archive_task(runner, archive)]
    if task_per == "run":
        chain(*first, _run_task(runner, slice_))
    else:
        run_id = _plan_task(runner, slice_)
        chain(*first, run_id, *(_phase_task(name, runner, run_id) for name in PHASES[1:]))


@dataclass(frozen=True, slots=True)
class _SliceOfRun:
    """The slice that a run of the DAG has in its parameters, or else in its data interval.

    Attributes:
        has_intervals: Whether the schedule has any.
    """

    has_intervals: bool

    @property
    def asked(self) -> dict[str, Any]:
        """What the first task is given."""
        return {}

    def settings(self, _: Mapping[str, Any]) -> dict[str, object]:
        """The settings that make the slice, in a task."""
        context = get_current_context()
        given = context["params"]["until"]
        until = _interval_end() if given is None and self.has_intervals else given
        return {"until": until, "end_of_input": context["params"]["end_of_input"]}


@dataclass(frozen=True, slots=True)
class _SliceAsked:
    """The slice that somebody's DAG asks for.

    Attributes:
        until: Where it ends; may be a template.
        end_of_input: What happens there.
    """

    until: str | None
    end_of_input: str

    @property
    def asked(self) -> dict[str, Any]:
        """What the first task is given, so that Airflow renders it."""
        return {"until": self.until}

    def settings(self, rendered: Mapping[str, Any]) -> dict[str, object]:
        """The settings that make the slice, in a task."""
        until = rendered["until"]
        return {"until": _interval_end() if until in {None, "", "None"} else until, "end_of_input": self.end_of_input}


def _interval_end() -> str | None:
    """Where the data interval of the current run ends; None: it has none."""
    end = get_current_context().get("data_interval_end")
    return None if end is None else end.isoformat()


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


def _plan_task(runner: Runner, slice_: _SliceOfRun | _SliceAsked) -> Any:
    @task.short_circuit(task_id="plan", ignore_downstream_trigger_rules=False)
    def plan(**asked: Any) -> str | None:
        """Gives the run's id; None, which skips all that follows, if there is nothing to do."""
        planned = runner.call(_phase("plan"), **slice_.settings(asked))
        _tell_future_records(planned)
        return getattr(planned, "run_id", None)

    return plan(**slice_.asked)


def _run_task(runner: Runner, slice_: _SliceOfRun | _SliceAsked) -> Any:
    @task(task_id=RUN)
    def run(**asked: Any) -> str:
        """Gives the run's id; skipped if there is nothing to do."""

        def run_slice(job: Job, settings: Settings) -> SliceResult | NothingToDo:
            from hindstream.spark.phases import pipeline  # noqa: PLC0415

            return pipeline.run_slice(job, settings)

        done = runner.call(run_slice, **slice_.settings(asked))
        planned = getattr(done, "plan", done)
        _tell_future_records(planned)
        if planned is done:
            raise AirflowSkipException("there is nothing to do")
        return str(planned.run_id)

    return run(**slice_.asked)


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
