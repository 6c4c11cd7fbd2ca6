"""``hindstream run``, ``backfill`` and the phases of a slice, one by one; ``release``: their options."""

from __future__ import annotations

import importlib
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hindstream.cli.arguments import (
    Assignments,
    Engine,
    Fork,
    JobName,
    JobReference,
    JsonOrText,
    RunId,
    Seal,
    Until,
    Warehouse,
    given_settings,
    job_name,
    sealed,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from statelib.settings.settings import Settings

PHASES = {
    "replay": "Second phase: replay the planned slice on Spark, and stage the result.",
    "audit": "Third phase: check what was staged. A run that fails is quarantined.",
    "commit": "Fourth phase: make the audited run valid.",
    "publish": "Fifth phase: add the committed files to the sink topics.",
    "maintain": "Sixth phase: expire old state and leftovers.",
    "report": "Last phase: write the pages of the run and of the job.",
}
"""The phases behind the plan, in order, and what each does."""


def run(
    job: JobReference,
    until: Until = None,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    seal: Seal = False,
    engine: Engine = None,
    fork: Fork = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only show what would be read, whether expectations fit, how long it may take."),
    ] = False,
) -> None:
    """Run one slice in this process: plan, replay, audit, commit, publish, maintain, report.

    Example: hindstream run jobs/flights.py:job --until 2013-02-01T00:00Z
    """
    from hindstream.cli.replay.run import print_preview  # noqa: PLC0415
    from hindstream.cli.replay.run import run as run_one  # noqa: PLC0415
    from statelib.job.job import load_job  # noqa: PLC0415

    given = given_settings(
        settings, warehouse=warehouse, until=until, end_of_input=sealed(seal), engine=engine, fork=fork
    )
    do = print_preview if dry_run else run_one
    do(load_job(job, fork=given.fork), given, output)


def backfill(
    job: JobReference,
    start: Annotated[str, typer.Option("--from", help="Start of the first slice: ISO 8601.")],
    end: Annotated[str, typer.Option("--to", help="End of the last slice.")],
    every: Annotated[Literal["hour", "day", "week", "month"], typer.Option(help="The length of a slice.")] = "day",
    timezone: Annotated[
        str | None,
        typer.Option(help="Time zone of days, weeks and months, and of times without an offset: America/New_York."),
    ] = None,
    airflow_home: Annotated[
        str, typer.Option(help="Airflow's home, with its database and log.")
    ] = ".hindstream/airflow",
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    seal: Seal = False,
    engine: Engine = None,
    fork: Fork = None,
) -> None:
    """Run many slices one after the other, through an Airflow in this process. --seal seals the last one.

    Example: hindstream backfill jobs/flights.py:job --from 2013-01-01 --to 2014-01-01 --every month --timezone UTC
    """
    from hindstream.cli.replay.backfill import run_backfill  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse, end_of_input=sealed(seal), engine=engine, fork=fork)
    run_backfill(job, start, end, every, timezone, airflow_home, given, output)


def release(
    job: JobName,
    holder: Annotated[str, typer.Argument(metavar="HOLDER", help="Who holds it, as the refused command says.")],
    warehouse: Warehouse = None,
    settings: Assignments = None,
) -> None:
    """Release a job that is still held by a command that nobody is running any more.

    Example: hindstream release rates migration-of-rates
    """
    from hindstream.runs import open_warehouse  # noqa: PLC0415
    from statelib.commits import release_hold  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    release_hold(open_warehouse(given), job_name(job, given), holder)


def data_docs(job: JobName, warehouse: Warehouse = None, settings: Assignments = None) -> None:
    """Write the Data Docs of audits that have passed, where they are missing.

    Example: hindstream data-docs rates
    """
    from hindstream.spark.phases.data_docs import write_missing  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse)
    write_missing(job_name(job, given), given)


def plan(
    job: JobReference,
    until: Until = None,
    output: JsonOrText = "table",
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    seal: Seal = False,
    fork: Fork = None,
) -> None:
    """First phase: decide what the next run replays.

    Example: hindstream plan jobs/flights.py:job --until 2013-02-01T00:00Z
    """
    from hindstream.cli.replay.run import print_planned  # noqa: PLC0415
    from hindstream.console.result_log import result_is_printed  # noqa: PLC0415

    given = given_settings(settings, warehouse=warehouse, until=until, end_of_input=sealed(seal), fork=fork)
    with nullcontext() if output == "json" else result_is_printed():
        planned = _run_phase("plan", job, given, None)
    print_planned(planned, output)


def phase_command(name: str) -> Callable[..., None]:
    """The command of a phase that works on a planned run."""

    def command(
        job: JobReference,
        run_id: RunId = None,
        warehouse: Warehouse = None,
        settings: Assignments = None,
        fork: Fork = None,
    ) -> None:
        _run_phase(name, job, given_settings(settings, warehouse=warehouse, fork=fork), run_id)

    command.__doc__ = f"{PHASES[name]}\n\nExample: hindstream {name} jobs/flights.py:job"
    return command


def _run_phase(name: str, job: str, settings: Settings, run_id: str | None) -> Any:
    from statelib.job.job import load_job  # noqa: PLC0415

    return importlib.import_module(f"hindstream.spark.phases.{name}").run(
        load_job(job, fork=settings.fork), settings, run_id
    )
