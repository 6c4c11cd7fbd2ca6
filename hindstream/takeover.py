"""``hindstream takeover``: a job goes on where a live Kafka Streams application has stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from hindstream.console import standard_output
from hindstream.numbers import count_text
from spark_jobs.kafka.takeover import take_over

if TYPE_CHECKING:
    from statelib.config import Settings
    from statelib.handover import Handover
    from statelib.job import Job


def run_takeover(job: Job, handover: Handover, settings: Settings, *, stopped: bool) -> None:
    """Takes over, and prints what. Raises as `spark_jobs.kafka.takeover.take_over` does."""
    done = take_over(job, handover, settings, stopped=stopped)
    console = standard_output()
    if done.stores:
        stores = Table("store", "changelog", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
        stores.add_column("records", justify="right")
        for store in done.stores:
            stores.add_row(store.store, store.changelog, count_text(store.records))
        console.print(stores)
    offsets = Table("topic", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    offsets.add_column("partition", justify="right")
    offsets.add_column("goes on at", justify="right")
    for topic, reached in sorted(done.commit.source_offsets().items()):
        for partition, offset in sorted(reached.items()):
            offsets.add_row(topic, str(partition), count_text(offset))
    console.print(offsets)
    console.print(f"{job.name} goes on from {handover.application_id}: commit {done.commit.commit}.")
