"""``hindstream migrate live``: what the steps of a live application's migration say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich import box
from rich.table import Table

from hindstream.console.numbers import count_text, duration_text, time_text
from hindstream.console.output import standard_output
from hindstream.kafka import live_migration
from hindstream.kafka.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hindstream.kafka.changelog_history import ChangelogHistory
    from hindstream.kafka.live_migration import LiveStore, Prepared
    from statelib.settings.settings import Settings

_LONGEST_MS = 2**63 - 1


def print_plan(live: LiveStore, settings: Settings) -> None:
    """Prints what would be done, and what the changelog has."""
    plan = live_migration.preview(Cluster(settings), live)
    _print_histories(plan.histories)
    on_host = ", ".join(map(str, plan.tasks)) or "none"
    typer.echo(f"Partitions of the store on this host, whose tasks' local state is deleted: {on_host}.")
    typer.echo(f"min.compaction.lag.ms is {_lag(plan.lag_ms)}, and has to be {_lag(plan.needed_ms)}.")
    typer.echo("Nothing was changed.")


def run_prepare(live: LiveStore, settings: Settings) -> None:
    """Prepares, and prints what was done."""
    _print_prepared(live_migration.prepare(Cluster(settings), live))
    typer.echo("Start the application with its new store; when it has restored, stop it, and verify.")


def run_verify(live: LiveStore, settings: Settings) -> None:
    """Compares, and prints it.

    Raises:
        CorruptedDataError: Latest values differ.
    """
    compared = live_migration.verify(Cluster(settings), live)
    _print_histories([history for history, _ in compared])
    for _, found in compared:
        equal, differences = count_text(found.equal), count_text(found.differences)
        typer.echo(f"Partition {found.partition}: {equal} latest values are equal, {differences} differ.")
    live_migration.check_equal(live, compared)


def run_rollback(live: LiveStore, settings: Settings, former_lag_ms: int | None) -> None:
    """Goes back, and prints what was done."""
    _print_prepared(live_migration.roll_back(Cluster(settings), live, former_lag_ms))
    typer.echo("Start the application with its former store.")


def _print_prepared(done: Prepared) -> None:
    deleted = ", ".join(done.deleted) or "there was none"
    typer.echo(f"Local state deleted, of tasks: {deleted}.")
    typer.echo(f"min.compaction.lag.ms was {_lag(done.former_lag_ms)}, and is {_lag(done.lag_ms)}.")


def _print_histories(histories: Iterable[ChangelogHistory]) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in ("partition", "records", "compacted or markers", "keys", "too late", "from", "complete from", "to"):
        table.add_column(name, justify="right")
    for found in histories:
        counts = (found.partition, found.records, found.absent, found.keys, len(found.too_late))
        complete = found.oldest_ms if found.complete_from_ms is None else found.complete_from_ms
        times = (found.oldest_ms, complete, found.newest_ms)
        table.add_row(*map(count_text, counts), *("" if time is None else time_text(time) for time in times))
    standard_output().print(table)


def _lag(lag_ms: int) -> str:
    return f"{lag_ms} ({duration_text(lag_ms)})" if lag_ms < _LONGEST_MS else str(lag_ms)
