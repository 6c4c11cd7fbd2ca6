"""``hindstream archive``: topics copied from Kafka, and what became of their offsets; files of a lake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from hindstream.cli.bring.ingest import print_loaded
from hindstream.console.numbers import count_text
from hindstream.console.results import Results
from hindstream.spark.lake.archive import archive
from statelib.ingest.load import Loaded

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hindstream.console.json_lines import Output
    from hindstream.spark.kafka.archive import Copied
    from statelib.job.topics import Topic
    from statelib.settings.settings import Settings


def run_archive(topics: Sequence[Topic], settings: Settings, output: Output = "table") -> None:
    """Copies what is new, and prints a line for each topic. Raises as `hindstream.spark.lake.archive.archive` does."""
    done: list[Copied | Loaded] = []
    try:
        done.extend(archive(topics, settings))
    finally:
        out = Results(output)
        for loaded in (one for one in done if isinstance(one, Loaded)):
            print_loaded(loaded, out)
        if of_kafka := [one for one in done if not isinstance(one, Loaded)]:
            out.table(_table(of_kafka))
        for one in done:
            out.result(one)


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
