"""What must not grow: the cost of a record with their number and with partitions, that of a slice with those before."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from benchmarks.dataset import START_MS, Dataset, Parameters
from benchmarks.scale.measurement import Figure, Measurement
from benchmarks.scale.processes import in_fresh_process
from benchmarks.scale.replays import Replays, typical
from benchmarks.works import WORKS, job

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.scale.replays import Slice

_EMPTY_RECORDS = 1_000
_MINUTE_MS = 60_000


@dataclass
class Growth(Measurement):
    """Each run in a process of its own, after one over an all but empty dataset, whose cost is subtracted.

    Attributes:
        records: The smaller number; the larger one is ten times that.
        partitions: The least number, which is doubled twice.
        commits: The last of the history.
        audited_commits: The last of a history with audits and reports, which take a second each.
        slice_records: Of a slice of the history, which is a minute of event time.
        steady_from: The slice that the last one is held against: windows close and state expires as fast as they come.
        repeats: Of each run; the least counts.
    """

    name: ClassVar[str] = "growth"

    records: int = 2_000_000
    partitions: int = 4
    commits: int = 1_000
    audited_commits: int = 100
    slice_records: int = 50
    steady_from: int = 30
    repeats: int = 2

    def figures(self, folder: Path) -> Iterator[Figure]:
        """See `Measurement`."""
        small, large = (self._per_record(folder, n, self.partitions) for n in (self.records, 10 * self.records))
        for work in WORKS:
            us = {f"{self.records:,}, us": small[work], f"{10 * self.records:,}, us": large[work]}
            name = f"{work}, CPU of a record among {10 * self.records:,}, against {self.records:,}"
            yield Figure(name, large[work] / small[work], "times", at_most=1.2, details=us)
        fewer = large  # of the smaller number the cost of tasks, which is subtracted, would hide what is asked for
        for doubled in (2 * self.partitions, 4 * self.partitions):
            more = self._per_record(folder, 10 * self.records, doubled)
            for work in WORKS:
                name = f"{work}, CPU of a record in {doubled} partitions, against {doubled // 2}"
                us = {f"{doubled // 2}, us": fewer[work], f"{doubled}, us": more[work]}
                yield Figure(name, more[work] / fewer[work], "times", at_most=1.1, details=us)
            fewer = more
        for last, is_audited in ((self.commits, False), (self.audited_commits, True)):
            yield from self._history(folder / f"history-{last}", last, is_audited=is_audited)

    def _per_record(self, folder: Path, records: int, partitions: int) -> dict[str, float]:
        """CPU microseconds of a record, by work."""
        data, empty = (folder / f"{n}-{partitions}" for n in (records, _EMPTY_RECORDS))
        for path, number in ((data, records), (empty, _EMPTY_RECORDS)):
            if not path.exists():
                in_fresh_process(partial(Dataset.generate, path, Parameters(records=number, partitions=partitions)))
        costs = {}
        for work in WORKS:
            runs = [in_fresh_process(_cpu_seconds, work, data, empty, folder / "run") for _ in range(self.repeats)]
            full, base = (min(seconds) for seconds in zip(*runs, strict=True))
            datasets = Dataset.open(data), Dataset.open(empty)
            number, fewer = (WORKS[work].records(dataset) for dataset in datasets)
            costs[work] = (full - base) / (number - fewer) * 1e6
        return costs

    def _history(self, folder: Path, last: int, *, is_audited: bool) -> Iterator[Figure]:
        """All phases of the last slice against those of an early one."""
        parameters = Parameters(
            records=self.slice_records * (last + 1),
            records_per_second=self.slice_records / 60,
            partitions=1,
            campaigns=100,
            rate_minutes=60,
        )
        in_fresh_process(partial(Dataset.generate, folder / "data", parameters))
        costs = in_fresh_process(_phases, folder, last, is_audited)
        begin, end = (typical(costs, around) for around in (self.steady_from, last))
        kind = "with audit and report" if is_audited else "without audit and report"
        details = {f"{phase}, ms": f"{begin[phase] * 1000:.1f} -> {end[phase] * 1000:.1f}" for phase in begin}
        ratio = sum(end.values()) / sum(begin.values())
        yield Figure(
            f"CPU of slice {last:,}, against slice {self.steady_from}, {kind}",
            ratio,
            "times",
            at_most=1.2,
            details=details,
        )


def _cpu_seconds(work: str, data: Path, empty: Path, folder: Path) -> tuple[float, float]:
    """Of all phases over the whole dataset, and over the small one, the second time."""
    replays = [
        Replays(folder / f"{n}", job(work), Dataset.open(dataset)) for n, dataset in enumerate((empty, empty, data))
    ]
    _, base, full = (one.run().cpu_seconds for one in replays)
    shutil.rmtree(folder)
    return full, base


def _phases(folder: Path, last: int, is_audited: bool) -> list[dict[str, float]]:
    """CPU seconds of each phase, by commit."""
    replays = Replays(folder, job("W4"), Dataset.open(folder / "data"), is_audited=is_audited)
    done = (replays.run(until_ms=START_MS + n * _MINUTE_MS) for n in range(1, last + 1))
    return [_by_phase(one) for one in done]


def _by_phase(done: Slice) -> dict[str, float]:
    return {phase: cost.cpu_seconds for phase, cost in done.phases.items()}
