"""``hindstream migrate``: what a migration would do, doing it, and the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich import box
from rich.table import Table

from hindstream.console.numbers import count_text, seconds_text, time_text
from hindstream.console.results import Results
from hindstream.runs import open_warehouse
from hindstream.spark.migration import fills, migrate
from statelib.commits import CommitLog
from statelib.errors.counted import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hindstream.console.json_lines import Output
    from hindstream.spark.migration.migrate import MigrationPreview, Verified
    from statelib.job.job import Job
    from statelib.settings.settings import Settings


def print_plan(job: Job, settings: Settings, stores: Sequence[str], output: Output = "table") -> None:
    """Prints what migrating ``stores`` would do."""
    out, found = Results(output), migrate.preview(job, settings, stores)
    _say(found, out)
    out.result(found)


def _say(found: MigrationPreview, out: Results) -> None:
    out.say("\n".join(found.lines()))
    out.say("Nothing was changed.")


def run(job: Job, settings: Settings, stores: Sequence[str], *, yes: bool, output: Output = "table") -> None:
    """Prints what a migration does, asks, and does it.

    Raises:
        CorruptedDataError: A latest value is not what it was.
    """
    warehouse, out = open_warehouse(settings), Results(output)
    head = CommitLog(warehouse, job.name).head()
    if head is None or head.fingerprint != job.topology.fingerprint:
        _say(migrate.preview(job, settings, stores), out)
        if not yes and not typer.confirm("Migrate?", err=True):
            raise typer.Exit(1)
    made, found = migrate.run(job, settings, stores)
    out.say(f"{job.name}: commit {made.commit} has the migrated stores.")
    print_verified(found, job.name, made.commit, output)


def fill(job: Job, settings: Settings, stores: Sequence[str], *, yes: bool, output: Output = "table") -> None:
    """Prints what filling ``stores`` does, asks, and does it."""
    out = Results(output)
    for change in fills.preview(job, settings, stores):
        out.say(f"{change[0].upper()}{change[1:]}.")
    if not yes and not typer.confirm("Fill?", err=True):
        raise typer.Exit(1)
    made, cost = fills.run(job, settings, stores)
    out.say(f"{job.name}: commit {made.commit} has the filled stores.")
    if cost is not None:
        replayed = counted(cost.records, "record")
        out.say(f"{replayed} of history replayed in {seconds_text(cost.seconds)}.")
    out.result({"job": job.name, "commit": made.commit, "stores": list(stores), "fill": cost})


def print_verified(found: Sequence[Verified], job: str, commit: int, output: Output = "table") -> None:
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
    out = Results(output)
    out.table(table)
    out.result({"job": job, "commit": commit, "stores": found})
    migrate.check_equal(job, found)
