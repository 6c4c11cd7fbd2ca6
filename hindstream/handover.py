"""``hindstream handover``: a job's state for a live Kafka Streams application."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from hindstream.console import standard_output
from hindstream.numbers import count_text
from spark_jobs.kafka.handover import hand_over

if TYPE_CHECKING:
    from statelib.config import Settings
    from statelib.handover import Handover


def run_handover(handover: Handover, settings: Settings, *, commit: int | None, replace: bool, stopped: bool) -> None:
    """Hands over, and prints what. Raises as `spark_jobs.kafka.handover.hand_over` does."""
    done = hand_over(handover, settings, commit=commit, replace=replace, stopped=stopped)
    console = standard_output()
    stores = Table("store", "changelog", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    stores.add_column("records", justify="right")
    for store in done.stores:
        stores.add_row(store.store, store.changelog, count_text(store.records))
    console.print(stores)
    offsets = Table("topic", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    offsets.add_column("partition", justify="right")
    offsets.add_column("goes on at", justify="right")
    for (topic, partition), offset in sorted(done.offsets.items()):
        offsets.add_row(topic, str(partition), count_text(offset))
    console.print(offsets)
    console.print(f"{done.group} goes on from commit {done.commit} of {handover.job}. All was read back and is equal.")
