"""Kafka Streams 4.3.0 as an application over a real broker, which holds the topics."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from benchmarks.contestants.kafka_streams import KafkaStreams, inputs, java

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.dataset import Dataset
    from benchmarks.works import Work


class KafkaStreamsBroker(KafkaStreams):
    """Starts the broker, runs the application from the first record to the last, reads its answer, stops both."""

    name = "kafka-streams-broker"
    title = "Kafka Streams with a broker"
    settings = (
        "4.3.0, as above, over one broker in KRaft mode on the loopback interface, in a process of its own; at least "
        "once, which gives the same answer here and costs less than exactly once; fetches of 8 MiB, batches of 256 KiB "
        "without compression; max.task.idle.ms 0: with -1 a task does not wait for rates that lie in the broker, and "
        "W4 over 500,000 clicks gave 36 windows instead of 61,084; the topics lie in the broker before; its start, the "
        "reading of the answer and the stop are measured too"
    )

    def prepare(self, dataset: Dataset) -> None:
        """The folder of a broker that has the topics."""
        super().prepare(dataset)
        if not _broker(dataset).exists():
            arguments = (inputs(dataset), _broker(dataset), dataset.parameters.partitions)
            subprocess.run(java("Produce", *arguments), check=True)

    def lay_out(self, work: Work, dataset: Dataset, output: Path) -> None:
        """A copy of the broker's folder: it writes into it."""
        shutil.copytree(_broker(dataset), output / "broker")

    def command(self, work: Work, dataset: Dataset, output: Path) -> list[str]:
        """See ``Application.java``."""
        return java("Application", work.name, output, dataset.parameters.partitions)


def _broker(dataset: Dataset) -> Path:
    return dataset.folder / "kafka-broker"
