"""``hindstream migrate ...``: stores of tables made anew; see `hindstream.migrate`."""

from __future__ import annotations

from typing import Annotated

import typer

from hindstream.arguments import Assignments, JobName, JobReference, Warehouse, given_settings, job_name

migrate = typer.Typer(
    name="migrate",
    help="Make the store of a table anew: versioned, plain again, or with another retention.\n\n"
    "Change the job's topology first; then plan, run, and if need be rollback.\n\n"
    "Example: hindstream migrate plan jobs/rates.py:job --store rates",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Stores = Annotated[list[str], typer.Option("--store", metavar="NAME", help="A store to migrate; may be repeated.")]


@migrate.command("plan")
def migrate_plan(job: JobReference, store: Stores, warehouse: Warehouse = None, settings: Assignments = None) -> None:
    """Show what a migration would do; nothing is changed.

    Example: hindstream migrate plan jobs/rates.py:job --store rates
    """
    from hindstream.migrate import print_plan  # noqa: PLC0415
    from statelib.job import load_job  # noqa: PLC0415

    print_plan(load_job(job), given_settings(settings, warehouse=warehouse), store)


@migrate.command("run")
def migrate_run(
    job: JobReference,
    store: Stores,
    warehouse: Warehouse = None,
    settings: Assignments = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Hold the job, make the stores anew in a commit of its own, compare latest values, let the job go.

    Killed at any moment, the same command goes on.

    Example: hindstream migrate run jobs/rates.py:job --store rates
    """
    from hindstream.migrate import run  # noqa: PLC0415
    from statelib.job import load_job  # noqa: PLC0415

    run(load_job(job), given_settings(settings, warehouse=warehouse), store, yes=yes)


@migrate.command("verify")
def migrate_verify(
    job: JobName,
    commit: Annotated[int | None, typer.Option(help="The commit of the migration; none: the newest.")] = None,
    warehouse: Warehouse = None,
    settings: Assignments = None,
) -> None:
    """Compare the latest values of the migrated stores with those before. Exit code 74 if any differs.

    Example: hindstream migrate verify rates --commit 13
    """
    from hindstream.migrate import print_verified  # noqa: PLC0415
    from spark_jobs.migrate import verify  # noqa: PLC0415
    from spark_jobs.runs import open_warehouse  # noqa: PLC0415
    from statelib.commits import CommitLog  # noqa: PLC0415

    given, name = given_settings(settings, warehouse=warehouse), job_name(job)
    log = CommitLog(open_warehouse(given), name)
    print_verified(verify(name, given, log.read(commit or log.head_number())), name)


@migrate.command("rollback")
def migrate_rollback(
    job: JobReference, store: Stores, warehouse: Warehouse = None, settings: Assignments = None
) -> None:
    """Take back a migration that is the newest commit or has not come so far, and let the job go.

    Example: hindstream migrate rollback jobs/rates.py:job --store rates
    """
    from spark_jobs.migrate import take_back  # noqa: PLC0415
    from statelib.job import load_job  # noqa: PLC0415

    loaded = load_job(job)
    head = take_back(loaded, given_settings(settings, warehouse=warehouse), store)
    typer.echo(f"{loaded.name}: commit {head.commit} is the head.")
