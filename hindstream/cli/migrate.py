"""``hindstream migrate``: what a migration would do, doing it, and the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich import box
from rich.table import Table

from hindstream.console.numbers import count_text, time_text
from hindstream.console.output import standard_output
from hindstream.runs import open_warehouse
from hindstream.spark.migration import migrate
from statelib.commits import CommitLog

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hindstream.spark.migration.migrate import Verified
    from statelib.job.job import Job
    from statelib.settings.settings import Settings


def print_plan(job: Job, settings: Settings, stores: Sequence[str]) -> None:
    """Prints what migrating ``stores`` would do."""
    typer.echo("\n".join(migrate.preview(job, settings, stores).lines()))
    typer.echo("Nothing was changed.")


def run(job: Job, settings: Settings, stores: Sequence[str], *, yes: bool) -> None:
    """Prints what a migration does, asks, and does it.

    Raises:
        CorruptedDataError: A latest value is not what it was.
    """
    warehouse = open_warehouse(settings)
    head = CommitLog(warehouse, job.name).head()
    if head is None or head.fingerprint != job.topology.fingerprint:
        print_plan(job, settings, stores)
        if not yes and not typer.confirm("Migrate?", err=True):
            raise typer.Exit(1)
    made, found = migrate.run(job, settings, stores)
    typer.echo(f"{job.name}: commit {made.commit} has the migrated stores.")
    print_verified(found, job.name)


def print_verified(found: Sequence[Verified], job: str) -> None:
    """Prints the comparison of latest values, by store and task.

    Raises:
        CorruptedDataError: Some differ.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("store", "task"):
        table.add_column(name)
    for name in ("equal", "by order", "different", "versions", "history from"):
        table.add_column(name, justify="right")
    for part in found:
        compared = part.comparison
        counts = (compared.equal, compared.by_order, compared.differences, compared.versions)
        table.add_row(part.store, part.task_id, *map(count_text, counts), time_text(compared.oldest_ms))
    standard_output().print(table)
    migrate.check_equal(job, found)
