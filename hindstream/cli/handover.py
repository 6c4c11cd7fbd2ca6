"""``hindstream handover``: a job's state for a live Kafka Streams application."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich import box
from rich.table import Table

from hindstream.console.numbers import count_text
from hindstream.console.output import standard_output
from hindstream.kafka.handover import hand_over

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from statelib.job.handover import Handover, StoreChangelog
    from statelib.settings.settings import Settings


def run_handover(handover: Handover, settings: Settings, *, commit: int | None, replace: bool, stopped: bool) -> None:
    """Hands over, and prints what. Raises as `hindstream.kafka.handover.hand_over` does."""
    done = hand_over(handover, settings, commit=commit, replace=replace, stopped=stopped)
    print_changelogs(done.stores)
    print_offsets(done.offsets)
    typer.echo(
        f"{done.group} continues from commit {done.commit} of {handover.job}. Everything was read back and is equal."
    )


def print_changelogs(stores: Iterable[StoreChangelog]) -> None:
    """Prints stores with what they were carried over in."""
    table = Table("store", "changelog", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("records", justify="right")
    for of in stores:
        table.add_row(of.store, of.changelog, count_text(of.records))
    standard_output().print(table)


def print_offsets(offsets: Mapping[tuple[str, int], int]) -> None:
    """Prints where the other side goes on, by topic and partition."""
    table = Table("topic", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("partition", justify="right")
    table.add_column("continues at", justify="right")
    for (topic, partition), offset in sorted(offsets.items()):
        table.add_row(topic, str(partition), count_text(offset))
    standard_output().print(table)
