"""``hindstream archive``: topics copied from Kafka, and what became of their offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from hindstream.console.numbers import count_text
from hindstream.console.results import Results
from hindstream.spark.kafka.archive import archive_topics

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hindstream.console.json_lines import Output
    from hindstream.spark.kafka.archive import Copied
    from statelib.job.kafka_topic import KafkaTopic
    from statelib.settings.settings import Settings


def run_archive(topics: Sequence[KafkaTopic], settings: Settings, output: Output = "table") -> None:
    """Copies what is new, and prints a line for each topic. Raises as `hindstream.kafka.archive_topics` does."""
    done: list[Copied] = []
    try:
        done.extend(archive_topics(topics, settings))
    finally:
        if done:
            out = Results(output)
            out.table(_table(done))
            for copied in done:
                out.result(copied)


def _table(done: Iterable[Copied]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("topic", no_wrap=True)
    for name in ("partitions", "new offsets", "records", "quarantined", "compacted or markers", "lost"):
        table.add_column(name, justify="right", no_wrap=True)
    for copied in done:
        of_all = copied.partitions
        table.add_row(
            copied.topic if copied.archive == copied.topic else f"{copied.topic} as {copied.archive}",
            count_text(len(of_all)),
            count_text(sum(found.end - found.start for found in copied.ranges.values())),
            count_text(sum(one.read for one in of_all)),
            count_text(sum(one.quarantined for one in of_all)),
            count_text(sum(one.absent for one in of_all)),
            count_text(sum(one.lost for one in of_all)),
        )
    return table
