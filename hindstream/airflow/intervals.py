"""The data interval of a scheduled run is its slice: what lies before it must have been replayed, or is refused.

So a DAG that is unpaused years after its history began does not take up all of it in one slice. Slices of a backfill
are the intervals that Airflow shows, in whatever order and number it starts the runs.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowRescheduleException

from statelib.errors.counted import counted
from statelib.errors.did_you_mean import did_you_mean, next_to
from statelib.errors.kinds import ConfigurationError, FencedError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from statelib.job.job import Job
    from statelib.settings.settings import Settings

EARLIER = ("refuse", "replay")
"""What a run can do with records from before its data interval that nobody has replayed."""

CONTINUOUS_FAILURES = 3
"""After so many failed runs of ``@continuous`` in a row, which follow one another at once, the DAG is paused."""

_OF_SLICE = ("until", "end_of_input", "before_interval")
"""Parameters of the runs of `hindstream.airflow.replay.replay_dag`."""

_BACKFILL = "backfill"
_OF_AIRFLOW = ("scheduled", _BACKFILL)
"""Types of runs that nobody has asked for one by one."""

_LOOK_AGAIN = timedelta(seconds=10)

_log = logging.getLogger(__name__)


def is_continuous(schedule: Any) -> bool:
    """Whether a schedule or timetable starts a run whenever the one before has ended: ``@continuous``."""
    return schedule == "@continuous" if isinstance(schedule, str) else type(schedule).__name__ == "ContinuousTimetable"


def default_earlier(schedule: Any) -> str:
    """What runs of a schedule do with records from before their data interval, where nobody says it.

    The intervals of ``@continuous`` are made of the times at which its runs have ended, and are nobody's slices: each
    run takes up what the one before has left.
    """
    return "replay" if is_continuous(schedule) else "refuse"


def interval_of(context: Context) -> tuple[int | None, str | None]:
    """Where the data interval of a run begins, in ms, and ends, in ISO 8601.

    Returns:
        No beginning for a run that a person has started: it replays what there is. Neither, if the run has no interval.
    """
    start, end = context.get("data_interval_start"), context.get("data_interval_end")
    if start is None or end is None:
        return None, None
    is_of_airflow = context["dag_run"].run_type in _OF_AIRFLOW
    return round(start.timestamp() * 1000) if is_of_airflow else None, end.isoformat()


def check_parameters(context: Context) -> None:
    """Refuses a run with a parameter that nobody reads, and that was meant to say what its slice is.

    Airflow takes any name. Without a word, ``untill`` would replay all there is.

    Args:
        context: That of the task.

    Raises:
        ConfigurationError: The name of a parameter is nearly that of one of the slice.
    """
    params = context["dag"].params
    of_slice = [name for name in _OF_SLICE if name in params]
    for name in context["dag_run"].conf or {}:
        if name not in params and (step := next_to(name, of_slice)):
            dag_id = context["ti"].dag_id
            raise ConfigurationError(f"runs of the DAG have no parameter {name}", dag=dag_id, next_step=step)


def check_before_interval(choice: object, place: str) -> None:
    """Refuses what is none of `EARLIER`; ``place``: where it was given, for the error.

    Raises:
        ConfigurationError: It is none.
    """
    if choice not in EARLIER:
        step = did_you_mean(str(choice), EARLIER, "give")
        raise ConfigurationError(f"before_interval cannot be {choice!r}", place=place, next_step=step)


def check_earlier(context: Context, job: Job, settings: Settings, start_ms: int) -> None:
    """Whether all from before a run's data interval has been replayed.

    Records that came late, after the run of the interval to which they belong, are no reason to refuse: the next run
    takes them up.

    Args:
        context: That of the task.
        job: The job.
        settings: Its settings.
        start_ms: Where the interval begins.

    Raises:
        AirflowRescheduleException: An earlier run is to replay them, or somebody commits just now.
        ConfigurationError: There are records that no run has replayed, or the interval is empty.
    """
    from hindstream.runs import open_warehouse  # noqa: PLC0415 - parsing a DAG file must stay quick
    from hindstream.spark.phases.plan import planner  # noqa: PLC0415
    from statelib.commits import CommitLog  # noqa: PLC0415

    task = context["ti"]
    if context["data_interval_start"] == context["data_interval_end"]:
        step = 'give a cron expression or a timedelta, or before_interval="replay": each run then takes what is new'
        raise ConfigurationError("runs of this schedule have no data interval", dag=task.dag_id, next_step=step)
    warehouse = open_warehouse(settings)
    head = CommitLog(warehouse, job.name).head()
    if head is not None and head.until_ms is not None and head.until_ms >= start_ms:
        return
    try:
        earlier = planner(job, settings, warehouse)(until_ms=start_ms, dry_run=True)
    except FencedError as error:  # while it looked: what it has read is no longer true
        _log.info("somebody commits: %s; looking again in %s", error, _LOOK_AGAIN)
        raise AirflowRescheduleException(datetime.now(UTC) + _LOOK_AGAIN) from error  # type: ignore[no-untyped-call]
    records = getattr(earlier, "records", 0)
    if not records:
        return
    before = task.get_previous_dagrun(state="success")
    if before is not None and before.data_interval_end == context["data_interval_start"]:
        return
    if (run_id := _at_work(context)) is not None:
        _log.info("%s is to replay what lies before; looking again in %s", run_id, _LOOK_AGAIN)
        raise AirflowRescheduleException(datetime.now(UTC) + _LOOK_AGAIN)  # type: ignore[no-untyped-call]
    start = datetime.fromtimestamp(start_ms / 1000, UTC)
    raise ConfigurationError(
        f"{counted(records, 'record')} from before this run's data interval, which begins at {start:%Y-%m-%dT%H:%MZ}, "
        f"{'was' if records == 1 else 'were'} not replayed",
        job=job.name,
        dag=task.dag_id,
        next_step=f"run what lies before, the oldest first: airflow backfill create --dag-id {task.dag_id} --from-date "
        f"DATE --to-date {start:%Y-%m-%d}, or clear the run that has failed; then clear this one. Or make one slice of "
        'all of it: before_interval="replay"',
    )


def _at_work(context: Context) -> str | None:
    """The earlier run that this one waits for.

    A scheduled run waits for those of a backfill that have begun or will; and each for those of its own kind that have
    begun. Else two could wait for each other: a backfill that goes backwards starts no earlier run while a later one is
    active.
    """
    kind = context["dag_run"].run_type
    for state, kinds in (("running", {kind, _BACKFILL}), ("queued", {_BACKFILL} - {kind})):
        found = context["ti"].get_previous_dagrun(state=state)
        if found is not None and found.run_type in kinds:
            return str(found.run_id)
    return None
