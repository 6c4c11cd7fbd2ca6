"""``hindstream.run`` and ``hindstream.backfill``: slices of a job in this process, from Python."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from hindstream.console.progress import Progress
from hindstream.interactive.result import BackfillResult, RunResult
from hindstream.slices import slice_ends_ms, time_of, time_zone
from statelib.commits import NothingToDo
from statelib.errors.kinds import ConfigurationError
from statelib.job.job import Job, load_job
from statelib.job.user_code import forget_files
from statelib.settings.settings import check_settings, load_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from os import PathLike
    from typing import Any

    from hindstream.slices import Every
    from statelib.settings.settings import Settings


def run(
    job: Job | str,
    *,
    warehouse: str | PathLike[str] | None = None,
    until: datetime | str | int | None = None,
    seal: bool = False,
    **settings: object,
) -> RunResult:
    """Runs one slice of a job in this process, as ``hindstream run`` does.

    ::

        result = hindstream.run(job, warehouse="warehouse", until="2013-02-01T00:00Z")
        result.sink("delays").to_pandas()

    Where there is nothing to do, nothing is done, and the result says so. The same call again goes on where a failed
    one has ended. In a notebook, functions of a job may stand in a cell.

    Args:
        job: The job, or where it is: ``FILE.py:NAME`` or ``PACKAGE.MODULE:NAME``. A file is read anew by each call.
        warehouse: Root of all durable data, a directory or URL; None: as environment and file say.
        until: End of the slice in event time: a time or text with time zone, or ms; None: the end of the archives.
        seal: Whether to close all windows and emit everything that waits. This ends the job.
        settings: Other settings, by name; they override environment and file.

    Returns:
        What was done, and the records of the sinks.

    Raises:
        ConfigurationError: There is no such job or setting, or a setting cannot have that value.
        HindstreamError: That of the phase that failed.
    """
    given = _settings(run, warehouse, settings, until=until, end_of_input="seal" if seal else None)
    found = _job(job, given)
    with Progress(f"replaying {found.name}"):
        result = _one(found, given, given.until_ms)
    _write_docs(found, given, [result])
    return result


def backfill(
    job: Job | str,
    *,
    start: datetime | str,
    end: datetime | str,
    every: Every = "day",
    timezone: str | None = None,
    warehouse: str | PathLike[str] | None = None,
    seal: bool = False,
    **settings: object,
) -> BackfillResult:
    """Runs many slices of a job, one after the other, in this process.

    As ``hindstream backfill``, but without Airflow. What has been replayed is not repeated, whatever has run it: the
    same call again goes on where a failed one has ended, and a DAG goes on where this has ended.

    Args:
        job: As for `run`.
        start: Where the first slice begins: a time, or ISO 8601.
        end: Where the last one ends.
        every: The length of a slice: ``hour``, ``day``, ``week`` or ``month``.
        timezone: The time zone of days, weeks and months, and of times without one: ``America/New_York``. None: that of
            ``start``.
        warehouse: As for `run`.
        seal: Whether the last slice seals the job.
        settings: As for `run`.

    Raises:
        ConfigurationError: As for `run`; or a time or the time zone is none, or the backfill ends before it begins.
        HindstreamError: That of the phase that failed; the slices before it are done.
    """
    given = _settings(backfill, warehouse, settings)
    zone = time_zone(timezone) if timezone else None
    ends = slice_ends_ms(time_of("from", start, zone), time_of("to", end, zone), every)
    found = _job(job, given)
    results = []
    with Progress("replaying slices", len(ends), unit="slices") as progress:
        for end_ms in ends:
            last = {"end_of_input": "seal"} if seal and end_ms == ends[-1] else {}
            results.append(_one(found, given.model_copy(update=last), end_ms))
            progress.advance()
    _write_docs(found, given, results)
    return BackfillResult.of_runs(results)


def _job(job: Job | str, settings: Settings) -> Job:
    if isinstance(job, Job):
        return job if settings.fork is None else job.as_fork(settings.fork)
    forget_files()
    return load_job(job, fork=settings.fork)


def _settings(
    of: Callable[..., object], warehouse: str | PathLike[str] | None, others: Mapping[str, object], **given: Any
) -> Settings:
    """The settings; those of the call first.

    Raises:
        ConfigurationError: One is none, cannot have that value, or is an argument's to say.
    """
    place = f"hindstream.{of.__name__}()"
    own = [
        name
        for name, parameter in inspect.signature(of).parameters.items()
        if parameter.kind is not parameter.VAR_KEYWORD
    ]
    check_settings(others, place=place, besides=own)
    for name, step in (("until", "give start= and end="), ("end_of_input", "give seal=True")):
        if others.get(name) is not None:
            raise ConfigurationError("an argument says this", setting=name, place=place, next_step=step)
    from hindstream.spark.phases.data_docs import beside_by_default  # noqa: PLC0415

    root = None if warehouse is None else str(warehouse)
    return beside_by_default(load_settings({**others, **given, "warehouse": root}, given_by=place))


def _one(job: Job, settings: Settings, until_ms: int | None) -> RunResult:
    from hindstream.runs import open_warehouse  # noqa: PLC0415
    from hindstream.spark.phases.pipeline import run_slice  # noqa: PLC0415 - a second

    done = run_slice(job, settings, until_ms)
    warehouse = open_warehouse(settings)
    if isinstance(done, NothingToDo):
        return RunResult.of_nothing(job, warehouse, done, until_ms)
    return RunResult.of_slice(job, warehouse, done)


def _write_docs(job: Job, settings: Settings, results: Sequence[RunResult]) -> None:
    from hindstream.spark.phases.data_docs import write_beside  # noqa: PLC0415

    if any(result.run_id is not None for result in results):
        write_beside(job.name, settings)
