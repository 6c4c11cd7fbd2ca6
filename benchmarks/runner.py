"""Runs contestants in turn, each work over datasets of growing sizes.

What a process costs whatever is in it (the JVM, imports, Great Expectations, a broker) is where the line through the
runs begins; what each record costs is how it rises.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING, Any

from benchmarks.answers import by_key, differences, load, save
from benchmarks.contestants.floor import answer_path
from benchmarks.dataset import Dataset, Parameters
from benchmarks.regression import Estimate, Line, fit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.contestants.contestant import Contestant
    from benchmarks.measure import Cost
    from benchmarks.works import Work

EMPTY_RECORDS = 1_000
"""Of the small one of two datasets, where a line goes through two sizes only."""


@dataclass
class Measured:
    """What one contestant's runs of one work cost, and what was wrong with its answers.

    Attributes:
        costs: Of each repeat, by the size of the dataset.
        read: How many records a dataset of a size has for this work, where it is not the size.
        differences: From Hindstream's answer, as sentences.
        details: What the contestant says of its first run over the most records.
        failed: Why a run came to no end; its others tell nothing then.
    """

    contestant: str
    work: str
    costs: dict[int, list[Cost]] = field(default_factory=dict)
    read: dict[int, int] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    failed: str | None = None

    def add(self, size: int, cost: Cost) -> None:
        """Takes down a run over a dataset of that size."""
        self.costs.setdefault(size, []).append(cost)
        self.__dict__.pop("cpu", None)

    @cached_property
    def cpu(self) -> Line:
        """CPU seconds by records."""
        runs = [(self.records(size), cost.cpu_seconds) for size, costs in self.costs.items() for cost in costs]
        return fit([records for records, _ in runs], [seconds for _, seconds in runs])

    @property
    def largest(self) -> int:
        """The largest size."""
        return max(self.costs)

    def records(self, size: int) -> int:
        """How many are read of a dataset of that size."""
        return self.read.get(size, size)

    @property
    def net(self) -> Estimate:
        """CPU microseconds that a record adds; unknown if all runs are of one size."""
        return self.cpu.slope.scaled(1e6)

    @property
    def net_us(self) -> float:
        """... without its error, and nothing in place of less, or of what is unknown."""
        return self.net.value if self.net.value > 0 else 0.0

    def gross(self, size: int) -> Estimate:
        """CPU microseconds a record, the start included, over a dataset of that size."""
        return self.cpu.mean([cost.cpu_seconds for cost in self.costs[size]]).scaled(1e6 / self.records(size))

    @property
    def gross_us(self) -> float:
        """... over the largest, without its error."""
        return self.gross(self.largest).value

    def wall_seconds(self, size: int) -> float:
        """From start to end, the mean of the repeats."""
        return fmean(cost.wall_seconds for cost in self.costs[size])

    @property
    def peak_memory_bytes(self) -> int:
        """The most that a run over the largest took."""
        return max(cost.peak_memory_bytes for cost in self.costs[self.largest])

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        if self.failed:
            return asdict(self)
        return {
            **asdict(self),
            "net_us": self.net.as_json(),
            "start_seconds": self.cpu.start.as_json(),
            "gross_us": {size: self.gross(size).as_json() for size in self.costs},
        }


class Runner:
    """Runs works over datasets that differ in their size.

    Args:
        folder: For all that is made.
        parameters: Of all datasets, but for their size.
        sizes: Records of ``clicks`` in each.
    """

    def __init__(self, folder: Path, parameters: Parameters, sizes: Sequence[int]) -> None:
        self._folder = folder
        self.datasets = [Dataset.generate(folder / str(n), replace(parameters, records=n)) for n in sorted(sizes)]

    def run(self, contestants: Sequence[Contestant], works: Sequence[Work], repeats: int) -> list[Measured]:
        """Each contestant with each of its works; in turn, so that what else runs here disturbs all alike."""
        for contestant in contestants:
            contestant.build()
            for dataset in self.datasets:
                contestant.prepare(dataset)
        measured = [Measured(c.name, w.name) for w in works for c in contestants if w.name in c.works]
        by_name, works_by_name = {c.name: c for c in contestants}, {w.name: w for w in works}
        for one in measured:  # not counted: compiled code and the system's caches are not there the first time
            self._measure(by_name[one.contestant], works_by_name[one.work], self.datasets[0], one)
        for _ in range(repeats):
            for one in measured:
                contestant, work = by_name[one.contestant], works_by_name[one.work]
                for dataset in self.datasets:
                    one.read[dataset.parameters.records] = work.records(dataset)
                    one.add(dataset.parameters.records, self._measure(contestant, work, dataset, one))
        return measured

    def _measure(self, contestant: Contestant, work: Work, dataset: Dataset, into: Measured) -> Cost:
        output = self._folder / "output"
        contestant.lay_out(work, dataset, output)
        output.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command, log = contestant.command(work, dataset, output), self._folder / "said.log"
        cost = contestant.measure(command, output, environment=environment, log=log)
        answer = contestant.answer(work, output)
        reference = answer_path(dataset, work)
        if not reference.exists():  # Hindstream's, who comes first
            save(answer, reference)
        if work.name in contestant.agrees:
            wrong = differences(work, answer, by_key(load(reference)), is_exact=contestant.is_exact)
            into.differences += [sentence for sentence in wrong if sentence not in into.differences]
        details = output / "phases.json"
        if dataset is self.datasets[-1] and details.exists():
            into.details = into.details or json.loads(details.read_text(encoding="utf-8"))
        said = f"{cost.wall_seconds:.1f} s, {cost.cpu_seconds:.2f} CPU s, {cost.peak_memory_bytes / 2**20:,.0f} MiB"
        print(
            f"{contestant.name} {work.name} {work.records(dataset):,}: {said}", *into.differences, sep="; ", flush=True
        )
        shutil.rmtree(output)
        return cost
