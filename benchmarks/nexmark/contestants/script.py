"""Contestants that are scripts of ``benchmarks/peers``, as a peer's own user would write them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import ClassVar

from benchmarks.contestants.script import PEERS
from benchmarks.nexmark.contestants.contestant import Contestant
from benchmarks.nexmark.dataset import Dataset


class Script(Contestant):
    """``python SCRIPT QUERY TOPICS OUTPUT``; it imports nothing of ours, whose start would be added to the peer's.

    Attributes:
        script: Its name.
    """

    script: ClassVar[str]

    def command(self, query: str, dataset: Dataset, output: Path) -> list[str]:
        """See the script."""
        return [sys.executable, str(PEERS / self.script), query, str(dataset.folder / "topics"), str(output)]


class DuckDB(Script):
    """One SQL query."""

    name = "duckdb"
    title = "DuckDB"
    settings = "one SQL query over the Parquet files, two threads; no state: an hour more means to read all again"
    script = "nexmark_duckdb.py"


class Polars(Script):
    """One lazy query."""

    name = "polars"
    title = "polars"
    settings = (
        "one lazy query over the Parquet files, streaming engine, two threads; no state: an hour more means to read "
        "all again"
    )
    script = "nexmark_polars.py"


class SparkBatch(Script):
    """One SQL query."""

    name = "spark-batch"
    title = "Spark batch"
    settings = (
        "one SQL query over the Parquet files, local[2], adaptive execution, two shuffle partitions, parallel "
        "collector, 4 GiB; no state"
    )
    script = "nexmark_spark.py"
