"""Makes an Airflow DAG from a job: one run per slice, and in it one task per phase, or one for all phases.

::

    from hindstream.airflow import replay_dag

    dag = replay_dag("/srv/jobs/flights.py:job", schedule="0 0 1 * *", warehouse="s3://lake/warehouse")

A run replays the slice that ends at its parameter ``until``, or else at the end of its data interval. It begins where
the last commit ended. The slice of a scheduled run, or of one of a backfill, is its data interval: the run waits while
an earlier one is running, and is refused if records from before its interval were not replayed. A run whose slice has
already been replayed says so and does nothing. Of two simultaneous runs, one commits and the other gets an error. So
runs need no ``depends_on_past``. The parameter ``end_of_input`` can seal the job with a run.

With ``archive``, a run first copies new records of the job's topics from Kafka, or new files of a lake.

`hindstream.airflow.migration` makes the DAG that migrates a job's stores.

Parsing the file imports nothing large except Airflow. (A DAG file must contain the words "airflow" and "dag", or
Airflow ignores it.)
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from airflow.sdk import DAG, CronDataIntervalTimetable, DeltaDataIntervalTimetable, Param, TaskGroup, chain

from hindstream.airflow.archive import HindstreamArchiveOperator
from hindstream.airflow.arguments import RETRIES, Given, id_of
from hindstream.airflow.assets import assets_of
from hindstream.airflow.intervals import CONTINUOUS_FAILURES, EARLIER, default_earlier, is_continuous
from hindstream.airflow.operators import (
    ALL,
    HindstreamPlanOperator,
    HindstreamRunOperator,
)
from hindstream.airflow.phases import PHASES as BEHIND_PLAN
from hindstream.airflow.spark import DEFAULT_CONNECTION, check_mode
from statelib.calls import function_checked
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence

PHASES = ("plan", *BEHIND_PLAN)
"""The tasks of a DAG with a task per phase, in order."""

RUN = "run"
"""The task of a DAG with a task per run."""

TaskPer = Literal["phase", "run"]

_NO_CRON = ("@once", "@continuous")
"""Schedules of Airflow's that have a name like those of cron, and are none."""

_ASSETS = ("inlets", "outlets")
"""Arguments of tasks that are not for every task."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@function_checked
def replay_dag(
    job: str,
    *,
    dag_id: str | None = None,
    schedule: Any = None,
    start_date: datetime | None = None,
    end_date: datetime | None = None,
    end_of_input: Literal["hold", "seal"] = "hold",
    tags: Sequence[str] = ("hindstream",),
    before_interval: Literal["refuse", "replay"] | None = None,
    task_per: Literal["phase", "run"] = "phase",
    archive: str | None = None,
    mode: Literal["in-process", "spark-submit", "connect"] = "in-process",
    spark_conn_id: str = DEFAULT_CONNECTION,
    spark_submit: dict[str, Any] | None = None,
    conn_id: str | None = None,
    config: str | None = None,
    **given: object,
) -> DAG:
    """The DAG of a job.

    Args:
        job: ``PACKAGE.MODULE:NAME``, or the path of a file: absolute, or from the folder of the DAG file or the root
            of its bundle, ``jobs/flights.py:NAME``. Loaded when a task runs, from the version of the bundle.
        dag_id: The DAG's id; None: made from ``job``.
        schedule: A cron expression, whose intervals are the slices; ``@once``, one run of everything; or any other
            schedule of Airflow; None: runs are only triggered manually.
        start_date: Airflow makes no runs before it; None: no beginning, which ``catchup`` refuses. As in any DAG, its
            time zone applies to a cron expression: ``datetime(2013, 1, 1, tzinfo=ZoneInfo("Europe/Berlin"))`` for days
            in Berlin.
        end_date: Airflow makes no runs after it; None: no end. (When it is unpaused, a DAG with a schedule and no end
            immediately gets a run for the newest interval.)
        end_of_input: What a run does at the end of its slice, unless its parameter of that name says otherwise:
            ``hold`` open windows for the next slice, or ``seal`` the job, which then has no further slice.
        before_interval: What a scheduled run, or one of a backfill, does with records from before its data interval
            that nobody has replayed, unless its parameter of that name says otherwise: ``refuse`` them, so that each
            interval is a slice of its own, or ``replay`` them too. None: ``refuse``; with ``@continuous``, whose
            intervals end when a run ends, ``replay``. The slice of a manually triggered run begins where the last
            commit ended.
        tags: Tags of the DAG in Airflow.
        task_per: ``phase``: each phase of a run is a task. ``run``: one task does them all, for slices so small that
            the start of seven tasks takes longer than their work. A retry goes on where the task has failed; if that
            was after the commit, it does what is left and is shown as skipped: there is nothing more to replay.
        archive: The Kafka topics or files of a lake that a run copies first: a `KafkaTopic`, a `LakeTopic` or a list of
            them, in the form of ``job``; None: something else fills the archives.
        mode: Where Spark's driver runs in replay and audit. ``in-process``: in the task. ``spark-submit``: where a
            submission puts it; in the deploy mode ``cluster``, tasks wait for it without a worker's slot, and a retry
            finds it again. ``connect`` is refused.
        spark_conn_id: The connection to the cluster of ``spark-submit``, of the type ``spark``.
        spark_submit: Its options, by the names that the operator of Airflow's Spark provider has for them:
            ``{"executor_memory": "8g", "conf": {...}}``.
        conn_id: The Airflow connection, which is read when a task runs: of the type ``hindstream``, with settings and
            credentials, or of the object store's own type, with credentials. None: they are in the environment of
            Airflow's workers.
        config: The settings file, which is read when a task runs; None: that in ``HINDSTREAM_CONFIG``, or
            ``hindstream.toml`` in the working directory of Airflow's workers.
        given: Settings of `statelib.settings.settings.Settings`, which override environment and file; and arguments of
            Airflow's DAG and tasks, such as ``max_active_runs``, ``default_args``, ``pool`` or ``execution_timeout``.

    Raises:
        ConfigurationError: There is no setting or argument of that name, a setting cannot have that value, or an
            argument is of another type.
    """
    arguments, assets = Given.to(replay_dag, job, given).apart(*_ASSETS)
    check_mode(mode, spark_submit, f"replay_dag({job!r})", task_per=task_per)
    if arguments.settings.get("until") is not None:
        step = "give schedule=, or trigger a run with the parameter until"
        raise ConfigurationError("slices of a DAG end where their runs say", setting="until", next_step=step)
    if arguments.of_dag.get("catchup") and schedule is not None and start_date is None:
        step = "give start_date=, the beginning of the first slice"
        raise ConfigurationError("catchup would begin in 1970", place=f"replay_dag({job!r})", next_step=step)
    start_date = start_date or _EPOCH
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
    earlier = Param(
        before_interval or default_earlier(schedule),
        enum=list(EARLIER),
        title="What lies before the data interval",
        description="of a scheduled run or one of a backfill. refuse: it must have been replayed; replay: with the run",
    )
    phases = [*([] if archive is None else ["archive"]), *PHASES]
    with arguments.dag(
        dag_id or id_of(job, "replay"),
        tags=tags,
        schedule=_timetable(schedule, start_date),
        start_date=start_date,
        end_date=end_date,
        max_consecutive_failed_dag_runs=CONTINUOUS_FAILURES if is_continuous(schedule) else 0,
        params={"until": until, "end_of_input": end, "before_interval": earlier},
        doc_md=f"Replays `{job}`, a slice a run: {' → '.join(phases)}.",
    ) as dag:
        slice_ = {
            "until": f"{{{{ params.until if params.until is not none else '{ALL if schedule == '@once' else ''}' }}}}",
            "end_of_input": "{{ params.end_of_input }}",
            "before_interval": "{{ params.before_interval }}",
        }
        assets["inlets"] = [*assets_of(schedule), *(assets.get("inlets") or ())]
        on_spark = {"mode": mode, "spark_conn_id": spark_conn_id, "spark_submit": spark_submit}
        _tasks(arguments.of_operators(job, conn_id, config), archive, task_per, slice_, assets, on_spark)
    return dag


@function_checked
def replay_task_group(
    job: str,
    *,
    until: str | None = None,
    end_of_input: Literal["hold", "seal"] = "hold",
    group_id: str = "replay",
    before_interval: Literal["refuse", "replay"] | None = None,
    task_per: Literal["phase", "run"] = "phase",
    archive: str | None = None,
    mode: Literal["in-process", "spark-submit", "connect"] = "in-process",
    spark_conn_id: str = DEFAULT_CONNECTION,
    spark_submit: dict[str, Any] | None = None,
    conn_id: str | None = None,
    config: str | None = None,
    **given: object,
) -> TaskGroup:
    """The tasks that replay a slice of a job, in the DAG in whose context this is called.

    Args:
        job: As for `replay_dag`.
        until: Where the slice ends: ISO 8601 with time zone, or ms; a template of Airflow may say it. None, or a
            template that gives nothing: at the end of the run's data interval; without one, at the end of all there is.
            ``all``: there in any case.
        end_of_input: As for `replay_dag`.
        before_interval: As for `replay_dag`.
        group_id: The group's id in the DAG.
        task_per: As for `replay_dag`.
        archive: As for `replay_dag`.
        mode: As for `replay_dag`.
        spark_conn_id: As for `replay_dag`.
        spark_submit: As for `replay_dag`.
        conn_id: As for `replay_dag`.
        config: As for `replay_dag`.
        given: Settings, as for `replay_dag`; and arguments of Airflow's tasks.

    Raises:
        ConfigurationError: As for `replay_dag`.
    """
    arguments, assets = Given.to(replay_task_group, job, given, has_dag=False).apart(*_ASSETS)
    check_mode(mode, spark_submit, f"replay_task_group({job!r})", task_per=task_per)
    with TaskGroup(group_id, default_args=arguments.for_group(**RETRIES)) as group:
        slice_ = {"until": until, "end_of_input": end_of_input, "before_interval": before_interval}
        on_spark = {"mode": mode, "spark_conn_id": spark_conn_id, "spark_submit": spark_submit}
        _tasks(arguments.of_operators(job, conn_id, config), archive, task_per, slice_, assets, on_spark)
    return group


def _tasks(
    of_job: dict[str, Any],
    archive: str | None,
    task_per: TaskPer,
    slice_: dict[str, Any],
    assets: dict[str, Any],
    on_spark: dict[str, Any],
) -> None:
    """The tasks of a slice, in the DAG and group of the context.

    Inlets are those of the task that reads the sources, outlets those of the task that publishes.
    """
    first: list[Any] = []
    if archive is not None:
        first.append(HindstreamArchiveOperator(task_id="archive", topics=archive, **of_job))
    if task_per == "run":
        chain(*first, HindstreamRunOperator(task_id=RUN, **of_job, **slice_, **assets))
        return
    plan = HindstreamPlanOperator(task_id="plan", **of_job, **slice_)
    of_phase: dict[str, dict[str, Any]] = {
        "replay": {"inlets": assets.get("inlets"), **on_spark},
        "audit": on_spark,
        "publish": {"outlets": assets.get("outlets")},
    }
    behind = [
        of(task_id=name, run_id=plan.output, **of_job, **of_phase.get(name, {})) for name, of in BEHIND_PLAN.items()
    ]
    chain(*first, plan, *behind)


def _timetable(schedule: Any, start_date: datetime) -> Any:
    """What Airflow makes of a schedule; of one that repeats, with data intervals, which are the slices."""
    if isinstance(schedule, str) and schedule not in _NO_CRON:
        return CronDataIntervalTimetable(schedule, timezone=_timezone_of(start_date))
    return DeltaDataIntervalTimetable(schedule) if isinstance(schedule, timedelta) else schedule


def _timezone_of(start_date: datetime) -> Any:
    """The time zone that Airflow takes a cron expression in."""
    return DAG("timezone", schedule=None, start_date=start_date).timezone
