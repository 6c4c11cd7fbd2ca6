"""Runs contestants in turn, each work over the whole dataset and over an all but empty one.

What a process costs whatever is in it (the JVM, imports, Great Expectations, a broker) is measured with the small
dataset and subtracted: both are kept.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import asdict, dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.answers import by_key, differences, load, save
from benchmarks.contestants.floor import answer_path
from benchmarks.dataset import Dataset, Parameters
from benchmarks.measure import Cost, measure

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.contestants.contestant import Contestant
    from benchmarks.works import Work

EMPTY_RECORDS = 1_000
"""Of the small dataset."""


@dataclass
class Measured:
    """What one contestant's run of one work cost, and what was wrong with its answer.

    Attributes:
        records: Read from the whole dataset, more than from the small one.
        full: Each repeat's cost over the whole dataset.
        empty: ... over the small one.
        differences: From Hindstream's answer, as sentences.
        details: What the contestant says of its run, of the first repeat.
    """

    contestant: str
    work: str
    records: int
    full: list[Cost] = field(default_factory=list)
    empty: list[Cost] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def gross_us(self) -> float:
        """CPU microseconds a record, the start included; the least counts, as what disturbs only adds to it."""
        return min(cost.cpu_seconds for cost in self.full) / self.records * 1e6

    @property
    def net_us(self) -> float:
        """CPU microseconds a record without what the small dataset costs.

        The median of the repeats' differences: a machine that is now faster, now slower, is mostly the same for both
        runs of a repeat, while the least of all runs may come from different times.
        """
        differences = [full.cpu_seconds - empty.cpu_seconds for full, empty in zip(self.full, self.empty, strict=True)]
        return max(median(differences), 0.0) / self.records * 1e6

    @property
    def peak_memory_bytes(self) -> int:
        """The most that a run over the whole dataset took."""
        return max(cost.peak_memory_bytes for cost in self.full)

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return {**asdict(self), "gross_us": self.gross_us, "net_us": self.net_us}


class Runner:
    """Runs works over datasets of one set of parameters.

    Args:
        folder: For all that is made.
        parameters: Of the whole dataset.
    """

    def __init__(self, folder: Path, parameters: Parameters) -> None:
        self._folder = folder
        self.full = Dataset.generate(folder / "full", parameters)
        self.empty = Dataset.generate(folder / "empty", replace(parameters, records=EMPTY_RECORDS))

    def run(self, contestants: Sequence[Contestant], works: Sequence[Work], repeats: int) -> list[Measured]:
        """Each contestant with each of its works; in turn, so that what else runs here disturbs all alike."""
        for contestant in contestants:
            contestant.build()
            for dataset in (self.full, self.empty):
                contestant.prepare(dataset)
        measured = [
            Measured(c.name, w.name, w.records(self.full) - w.records(self.empty))
            for w in works
            for c in contestants
            if w.name in c.works
        ]
        by_name, works_by_name = {c.name: c for c in contestants}, {w.name: w for w in works}
        for _ in range(repeats):
            for one in measured:
                contestant, work = by_name[one.contestant], works_by_name[one.work]
                one.empty.append(self._measure(contestant, work, self.empty, one))
                one.full.append(self._measure(contestant, work, self.full, one))
        return measured

    def _measure(self, contestant: Contestant, work: Work, dataset: Dataset, into: Measured) -> Cost:
        output = self._folder / "output"
        contestant.lay_out(work, dataset, output)
        output.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command, log = contestant.command(work, dataset, output), self._folder / "said.log"
        cost = measure(command, environment=environment, log=log)
        answer = contestant.answer(work, output)
        reference = answer_path(dataset, work)
        if not reference.exists():  # Hindstream's, who comes first
            save(answer, reference)
        if work.name in contestant.agrees:
            wrong = differences(work, answer, by_key(load(reference)), is_exact=contestant.is_exact)
            into.differences += [sentence for sentence in wrong if sentence not in into.differences]
        details = output / "phases.json"
        if dataset is self.full and details.exists():
            into.details = into.details or json.loads(details.read_text(encoding="utf-8"))
        size = "full" if dataset is self.full else "empty"
        said = f"{cost.wall_seconds:.1f} s, {cost.cpu_seconds:.2f} CPU s, {cost.peak_memory_bytes / 2**20:,.0f} MiB"
        print(f"{contestant.name} {work.name} {size}: {said}", *into.differences, sep="; ", flush=True)
        shutil.rmtree(output)
        return cost
