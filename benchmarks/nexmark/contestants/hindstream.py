"""Hindstream itself: one slice through all phases, by the command that a user gives."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import ClassVar

from benchmarks.nexmark.answers import hindstreams_answer
from benchmarks.nexmark.contestants.contestant import Contestant
from benchmarks.nexmark.dataset import Dataset

EXAMPLES = Path(__file__).parents[3] / "examples" / "nexmark"
QUERIES = tuple(sorted((file.stem for file in EXAMPLES.glob("q*.py")), key=lambda name: int(name[1:])))


class Hindstream(Contestant):
    """``hindstream run examples/nexmark/q0.py:job --seal``, in this process."""

    name = "hindstream"
    title = "Hindstream"
    settings = (
        "the jobs in examples/nexmark, one sealed slice through all phases of a run with checkpointed state (RocksDB), "
        "tasks one after the other in one process (--engine local); settings as they come, but for data_docs=failed: "
        "no Data Docs are written of what passes, since no other contestant validates anything (they would cost some "
        "2.5 CPU seconds a run)"
    )
    queries = QUERIES
    engine: ClassVar[str] = "local"

    def lay_out(self, query: str, dataset: Dataset, output: Path) -> None:
        """A warehouse of its own; the files are the same ones."""
        shutil.copytree(dataset.folder / "topics", output / "warehouse" / "topics", copy_function=os.link)

    def command(self, query: str, dataset: Dataset, output: Path) -> list[str]:
        """See ``hindstream run --help``."""
        settings = {"state_dir": output / "state", "spark_master": "local[2]", "data_docs": "failed"}
        given = [f"--set={name}={value}" for name, value in settings.items()]
        places = ["--warehouse", str(output / "warehouse"), "--engine", self.engine, "--seal"]
        return [sys.executable, "-m", "hindstream", "run", f"{EXAMPLES / query}.py:job", *places, *given]

    def answer(self, query: str, output: Path) -> str:
        """What is published."""
        return hindstreams_answer(query, output / "warehouse")


class HindstreamOnSpark(Hindstream):
    """The same on Spark."""

    name = "hindstream-spark"
    title = "Hindstream on Spark"
    settings = "the same, with tasks on Spark, local[2]"
    engine = "spark"
