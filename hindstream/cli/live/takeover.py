"""``hindstream takeover``: a job goes on where a live Kafka Streams application has stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hindstream.cli.live.handover import offsets_data, print_changelogs, print_offsets
from hindstream.console.results import Results
from hindstream.spark.kafka.takeover import take_over

if TYPE_CHECKING:
    from hindstream.console.json_lines import Output
    from statelib.job.handover import Handover
    from statelib.job.job import Job
    from statelib.settings.settings import Settings


def run_takeover(job: Job, handover: Handover, settings: Settings, *, stopped: bool, output: Output = "table") -> None:
    """Takes over, and prints what. Raises as `hindstream.spark.kafka.takeover.take_over` does."""
    done = take_over(job, handover, settings, stopped=stopped)
    out = Results(output)
    if done.stores:
        print_changelogs(done.stores, out)
    reached = done.commit.source_offsets()
    offsets = {(topic, partition): offset for topic, of in reached.items() for partition, offset in of.items()}
    print_offsets(offsets, out)
    out.say(f"{job.name} continues from {handover.application_id}: commit {done.commit.commit}.")
    of = {"job": job.name, "application_id": handover.application_id, "commit": done.commit.commit}
    out.result({**of, "stores": done.stores, "offsets": offsets_data(offsets)})
