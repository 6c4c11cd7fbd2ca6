"""``hindstream state lag``: how a store's changelog is compacted, and its ``min.compaction.lag.ms``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from hindstream.console.numbers import count_text, duration_text
from hindstream.console.results import Results
from hindstream.runs import open_warehouse
from statelib.commits.maintenance.changelog_lag import changelog_lag, set_changelog_lag
from statelib.settings.settings import time_span_ms

if TYPE_CHECKING:
    from hindstream.console.json_lines import Output
    from statelib.commits.maintenance.changelog_lag import ChangelogLag
    from statelib.settings.settings import Settings


def print_lag(job: str, settings: Settings, store: str, to: str | None, output: Output = "table") -> None:
    """Prints how far a store's changelog is clean, the lag that it needs and that which is set.

    Args:
        job: The job's name.
        settings: See `Settings`.
        store: The store's name.
        to: A time span: sets the lag before. None: changes nothing.
        output: How.

    Raises:
        HindstreamError: See `statelib.commits.maintenance.changelog_lag`; or ``to`` is no time span.
    """
    warehouse, out = open_warehouse(settings), Results(output)
    if to is None:
        found = changelog_lag(warehouse, job, store)
    else:
        found = set_changelog_lag(warehouse, job, store, time_span_ms(to, "--to"))
    partitions = _partitions(found)
    _print_partitions(found, partitions, out)
    if not found.is_compacted:
        why = "it is of a versioned store as shipped, or of one that was migrated not long ago"
        out.say(f"Its files are merged, and not compacted: {why}.")
    is_set = "nothing is set" if found.set_ms is None else f"{_lag_text(found.set_ms)} is set"
    out.say(f"min.compaction.lag.ms: the store needs {_lag_text(found.needed_ms)}; {is_set}.")
    of = {"job": job, "store": store, "changelog": found.changelog.topic, "is_compacted": found.is_compacted}
    out.result({**of, "needed_ms": found.needed_ms, "set_ms": found.set_ms, "partitions": partitions})


def _partitions(found: ChangelogLag) -> list[dict[str, int]]:
    archive = found.changelog
    return [
        {
            "partition": partition,
            "records": sum(file.rows for file in archive.files(partition)),
            "clean_before_offset": archive.cleaned_offset(partition),
            "end_offset": end,
        }
        for partition, end in sorted(archive.end_offsets().items())
    ]


def _print_partitions(found: ChangelogLag, partitions: list[dict[str, int]], out: Results) -> None:
    archive = found.changelog
    out.say(f"{archive.topic}, the changelog of a {found.store.kind} store:")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("partition", "records", "clean before offset", "ends before offset"):
        table.add_column(name, justify="right")
    for partition in partitions:
        table.add_row(*map(count_text, partition.values()))
    out.table(table)


def _lag_text(lag_ms: int) -> str:
    return f"{count_text(lag_ms)} ({duration_text(lag_ms)})" if lag_ms else "0"
