"""Runs contestants in turn, each query over the whole dataset and over an all but empty one.

What a process costs whatever is in it is where the line through both begins: see `benchmarks.regression`. Every answer
is compared with DuckDB's, which is computed once and not measured.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.measure import Cost, measure
from benchmarks.nexmark.answers import differences, peers_answer
from benchmarks.nexmark.contestants.contestant import Contestant
from benchmarks.nexmark.dataset import Dataset
from benchmarks.nexmark.events import Parameters
from benchmarks.peers import nexmark_duckdb
from benchmarks.runner import EMPTY_RECORDS, Measured

_TIMED_OUT = 124
"""The exit code of timeout(1)."""


class Runner:
    """Runs queries over datasets of one set of parameters.

    Args:
        folder: For all that is made.
        parameters: Of the whole dataset.
        limit_seconds: After which a run is ended, and has failed.
    """

    def __init__(self, folder: Path, parameters: Parameters, *, limit_seconds: int = 900) -> None:
        self._folder = folder
        self._limit_seconds = limit_seconds
        self.full = Dataset.generate(folder / "full", parameters)
        self.empty = Dataset.generate(folder / "empty", replace(parameters, events=EMPTY_RECORDS))

    def run(self, contestants: Sequence[Contestant], queries: Sequence[str], repeats: int) -> list[Measured]:
        """Each contestant with each of its queries; in turn, so that what else runs here disturbs all alike."""
        for contestant in contestants:
            contestant.build()
            for dataset in (self.full, self.empty):
                contestant.prepare(dataset)
        measured = [Measured(c.name, query) for query in queries for c in contestants if query in c.queries]
        by_name = {contestant.name: contestant for contestant in contestants}
        for _ in range(repeats):
            for one in measured:
                for dataset in (self.empty, self.full):
                    if not one.failed:
                        self._add(by_name[one.contestant], dataset, one)
        return measured

    def _add(self, contestant: Contestant, dataset: Dataset, to: Measured) -> None:
        """Adds a run; one that fails, or takes too long, is a result too, and the others go on."""
        try:
            to.add(dataset.parameters.events, self._measure(contestant, dataset, to))
        except subprocess.CalledProcessError as error:
            too_long = error.returncode == _TIMED_OUT
            to.failed = f"no end in {self._limit_seconds} s" if too_long else f"exit code {error.returncode}"
            print(f"{contestant.name} {to.work}: {to.failed}", *getattr(error, "__notes__", ()), sep="\n", flush=True)
            shutil.rmtree(self._folder / "output", ignore_errors=True)

    def _measure(self, contestant: Contestant, dataset: Dataset, into: Measured) -> Cost:
        query, output = into.work, self._folder / "output"
        contestant.lay_out(query, dataset, output)
        output.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = ["timeout", "-k", "9", str(self._limit_seconds), *contestant.command(query, dataset, output)]
        cost = measure(command, environment=environment, log=self._folder / "said.log")
        if query not in contestant.differs:
            wrong = differences(query, contestant.answer(query, output), peers_answer(self._reference(query, dataset)))
            into.differences += [sentence for sentence in wrong if sentence not in into.differences]
        size = "full" if dataset is self.full else "empty"
        said = f"{cost.wall_seconds:.1f} s, {cost.cpu_seconds:.2f} CPU s, {cost.peak_memory_bytes / 2**20:,.0f} MiB"
        print(f"{contestant.name} {query} {size}: {said}", *into.differences, sep="; ", flush=True)
        shutil.rmtree(output)
        return cost

    def _reference(self, query: str, dataset: Dataset) -> Path:
        """The folder with DuckDB's answer."""
        folder = dataset.folder / "answers" / query
        if not folder.exists():
            folder.mkdir(parents=True)
            nexmark_duckdb.main(query, str(dataset.folder / "topics"), str(folder))
        return folder
