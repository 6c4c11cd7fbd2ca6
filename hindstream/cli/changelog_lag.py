"""``hindstream state lag``: how a store's changelog is compacted, and its ``min.compaction.lag.ms``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich import box
from rich.table import Table

from hindstream.console.numbers import count_text, duration_text
from hindstream.console.output import standard_output
from hindstream.runs import open_warehouse
from statelib.commits.changelog_lag import changelog_lag, set_changelog_lag
from statelib.settings.settings import time_span_ms

if TYPE_CHECKING:
    from statelib.commits.changelog_lag import ChangelogLag
    from statelib.settings.settings import Settings


def print_lag(job: str, settings: Settings, store: str, to: str | None) -> None:
    """Prints how far a store's changelog is clean, the lag that it needs and that which is set.

    Args:
        job: The job's name.
        settings: See `Settings`.
        store: The store's name.
        to: A time span: sets the lag before. None: changes nothing.

    Raises:
        HindstreamError: See `statelib.commits.changelog_lag`; or ``to`` is no time span.
    """
    warehouse = open_warehouse(settings)
    if to is None:
        found = changelog_lag(warehouse, job, store)
    else:
        found = set_changelog_lag(warehouse, job, store, time_span_ms(to, "--to"))
    _print_partitions(found)
    if not found.is_compacted:
        why = "it is of a versioned store as shipped, or of one that was migrated not long ago"
        typer.echo(f"Its files are merged, and not compacted: {why}.")
    is_set = "nothing is set" if found.set_ms is None else f"{_lag_text(found.set_ms)} is set"
    typer.echo(f"min.compaction.lag.ms: the store needs {_lag_text(found.needed_ms)}; {is_set}.")


def _print_partitions(found: ChangelogLag) -> None:
    archive = found.changelog
    typer.echo(f"{archive.topic}, the changelog of a {found.store.kind} store:")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("partition", "records", "clean before offset", "ends before offset"):
        table.add_column(name, justify="right")
    for partition, end in sorted(archive.end_offsets().items()):
        rows = sum(file.rows for file in archive.files(partition))
        table.add_row(*map(count_text, (partition, rows, archive.cleaned_offset(partition), end)))
    standard_output().print(table)


def _lag_text(lag_ms: int) -> str:
    return f"{count_text(lag_ms)} ({duration_text(lag_ms)})" if lag_ms else "0"
