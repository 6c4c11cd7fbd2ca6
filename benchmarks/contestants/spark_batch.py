"""Spark's own batch operators, plain and with stream time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.contestants.script import Script
from benchmarks.works import WORKS

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.dataset import Dataset
    from benchmarks.works import Work

_SETTINGS = (
    "DataFrames on local[2], adaptive execution, two shuffle partitions, parallel collector, 4 GiB, Parquet with zstd; "
    "W2 joins by key and hour with the rates' periods"
)


class SparkBatch(Script):
    """The nearest equivalents."""

    name = "spark-batch"
    title = "Spark batch"
    settings = (
        f"{_SETTINGS}; nothing is late: repeats after more than ten minutes are dropped too, W3 and W4 count records "
        "that come after the grace and give windows that are still open; no state"
    )
    agrees = ("W2",)
    script = "spark_batch.py"


class SparkBatchTimed(Script):
    """The same answers as a stream's."""

    name = "spark-batch-timed"
    title = "Spark batch, with stream time"
    settings = (
        f"{_SETTINGS}; stream time is a running maximum over each partition, a window function; the same records in "
        "another order; no state"
    )
    works = ("W1", "W3", "W4")
    agrees = tuple(WORKS)
    script = "spark_batch.py"

    def command(self, work: Work, dataset: Dataset, output: Path) -> list[str]:
        """See the script."""
        return [*super().command(work, dataset, output), "with-stream-time"]
