"""``hindstream topic``: who has committed what to a topic's archive, the way back to a version, and fewer files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich import box
from rich.table import Table

from hindstream.console.numbers import time_text
from hindstream.console.results import Results
from hindstream.runs import file_policy, now_ms, open_warehouse
from statelib.commits.layout import topic_path
from statelib.commits.publication.topic_writers import sought
from statelib.commits.rewriting.source_files import compact_topic
from statelib.errors.counted import counted
from statelib.topics.other_writers import history, restore

if TYPE_CHECKING:
    from hindstream.console.json_lines import Output
    from statelib.settings.settings import Settings


def print_history(topic: str, settings: Settings, output: Output = "table") -> None:
    """Prints a line for each version of a topic's archive, the newest first.

    Raises:
        ConfigurationError: There is none.
    """
    warehouse, out = open_warehouse(settings), Results(output)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in ("version", "made", "operation", "by"):
        table.add_column(name, no_wrap=True)
    with sought(warehouse, topic):
        versions = list(history(warehouse.uri(topic_path(topic)), options=warehouse.options))
    for made in versions:
        when = "" if made.time_ms is None else time_text(made.time_ms).removesuffix(" UTC")
        table.add_row(str(made.version), when, made.operation, "Hindstream" if made.is_ours else made.by)
        out.result(made)
    out.table(table)


def restore_topic(topic: str, settings: Settings, version: int, *, yes: bool, output: Output = "table") -> None:
    """Asks, and restores a former version of a topic's archive.

    Raises:
        ConfigurationError: There is no such version, or files of it are gone.
    """
    warehouse, out = open_warehouse(settings), Results(output)
    uri = warehouse.uri(topic_path(topic))
    with sought(warehouse, topic):
        later = list(history(uri, version, options=warehouse.options))
    for made in reversed(later):
        by = "Hindstream" if made.is_ours else made.by
        out.say(f"Version {made.version}, {made.operation} by {by}, is undone.")
    if not yes and not typer.confirm("Restore?", err=True):
        raise typer.Exit(1)
    restored = restore(uri, version, options=warehouse.options)
    out.say(f"{topic}: version {restored.version} is what version {version} was: {counted(restored.rows, 'record')}.")
    of = {"topic": topic, "version": restored.version, "restored": version}
    out.result({**of, "undone": [made.version for made in later], "records": restored.rows})


def compact(topic: str, settings: Settings, *, despite_others: bool, output: Output = "table") -> None:
    """Merges the small files of a topic's archive, and says how many are left.

    Raises:
        ConfigurationError: There is none, a job writes it, or another program has.
    """
    warehouse, out = open_warehouse(settings), Results(output)
    with sought(warehouse, topic):
        done = compact_topic(warehouse, topic, file_policy(settings), now_ms=now_ms(), despite_others=despite_others)
    if done.replaced:
        out.say(f"{topic}: {counted(done.replaced, 'file')} became {done.files}; it has {done.left} now.")
    else:
        out.say(f"{topic}: no small files to merge; it has {counted(done.left, 'file')}.")
    out.result({"topic": topic, "replaced": done.replaced, "files": done.files, "left": done.left})
