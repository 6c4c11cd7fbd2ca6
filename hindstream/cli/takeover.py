"""``hindstream takeover``: a job goes on where a live Kafka Streams application has stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from hindstream.cli.handover import print_changelogs, print_offsets
from hindstream.spark.kafka.takeover import take_over

if TYPE_CHECKING:
    from statelib.job.handover import Handover
    from statelib.job.job import Job
    from statelib.settings.settings import Settings


def run_takeover(job: Job, handover: Handover, settings: Settings, *, stopped: bool) -> None:
    """Takes over, and prints what. Raises as `hindstream.spark.kafka.takeover.take_over` does."""
    done = take_over(job, handover, settings, stopped=stopped)
    if done.stores:
        print_changelogs(done.stores)
    reached = done.commit.source_offsets()
    print_offsets({(topic, partition): offset for topic, of in reached.items() for partition, offset in of.items()})
    typer.echo(f"{job.name} continues from {handover.application_id}: commit {done.commit.commit}.")
