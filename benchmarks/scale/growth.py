"""What must not grow: the cost of a record with their number and with partitions, that of a slice with those before."""

from __future__ import annotations

import itertools
import shutil
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from benchmarks.dataset import START_MS, Dataset, Parameters
from benchmarks.scale.measurement import Figure, Measurement
from benchmarks.scale.processes import in_fresh_process, steps_in_fresh_process
from benchmarks.scale.replays import NEIGHBOURS, Replays, typical
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

    What is compared takes turns, so that a machine which is now faster, now slower, is mostly the same for both.

    Attributes:
        records: The smaller number; the larger one is ten times that.
        partitions: The least number, which is doubled twice.
        commits: The last of the history.
        audited_commits: The last of a history with audits and reports, which take a second each.
        slice_records: Of a slice of the history, which is a minute of event time.
        steady_from: The slice that the last one is held against: windows close and state expires as fast as they come.
        rounds: Of all sizes of a dataset; the median of their ratios counts.
    """

    name: ClassVar[str] = "growth"

    records: int = 2_000_000
    partitions: int = 4
    commits: int = 1_000
    audited_commits: int = 100
    slice_records: int = 50
    steady_from: int = 30
    rounds: int = 3

    def figures(self, folder: Path) -> Iterator[Figure]:
        """See `Measurement`."""
        few = _Size(self.records, self.partitions)
        # Of few records the cost of tasks, which is subtracted, would hide that of partitions.
        many, doubled, doubled_twice = (_Size(10 * self.records, n * self.partitions) for n in (1, 2, 4))
        costs = self._costs(folder, (few, many, doubled, doubled_twice))
        for work in WORKS:
            name = f"{work}, CPU of a record among {many.records:,}, against {few.records:,}"
            yield _against(name, costs[work], many, few, at_most=1.2)
        for more, fewer in ((doubled, many), (doubled_twice, doubled)):
            for work in WORKS:
                name = f"{work}, CPU of a record in {more.partitions} partitions, against {fewer.partitions}"
                yield _against(name, costs[work], more, fewer, at_most=1.1)
        for last, is_audited in ((self.commits, False), (self.audited_commits, True)):
            yield self._history(folder / f"history-{last}", last, is_audited=is_audited)

    def _costs(self, folder: Path, sizes: tuple[_Size, ...]) -> dict[str, list[dict[_Size, float]]]:
        """CPU microseconds of a record by work, round and size; the sizes of a round come one after the other."""
        for size in {*sizes, *map(_empty, sizes)}:
            in_fresh_process(partial(Dataset.generate, folder / str(size), Parameters(**size._asdict())))
        return {
            work: [{size: _microseconds(work, folder, size) for size in sizes} for _ in range(self.rounds)]
            for work in WORKS
        }

    def _history(self, folder: Path, last: int, *, is_audited: bool) -> Figure:
        """All phases of the last slice against those of an early one of another warehouse, which take turns."""
        parameters = Parameters(
            records=self.slice_records * (last + 1),
            records_per_second=self.slice_records / 60,
            partitions=1,
            campaigns=100,
            rate_minutes=60,
        )
        in_fresh_process(partial(Dataset.generate, folder / "data", parameters))
        in_turn = min(NEIGHBOURS, self.steady_from)
        with (
            steps_in_fresh_process(_phases, folder / "data", folder / "short", is_audited) as short,
            steps_in_fresh_process(_phases, folder / "data", folder / "long", is_audited) as long,
        ):
            early = [short() for _ in range(self.steady_from - in_turn)]
            late = [long() for _ in range(last - in_turn)]
            for _ in range(in_turn):
                early.append(short())
                late.append(long())
        begin, end = typical(early, self.steady_from), typical(late, last)
        kind = "with audit and report" if is_audited else "without audit and report"
        return Figure(
            f"CPU of slice {last:,}, against slice {self.steady_from}, {kind}",
            sum(end.values()) / sum(begin.values()),
            "times",
            at_most=1.2,
            details={f"{phase}, ms": f"{begin[phase] * 1000:.1f} -> {end[phase] * 1000:.1f}" for phase in begin},
        )


class _Size(NamedTuple):
    """Of a dataset; as text, the name of its folder."""

    records: int
    partitions: int

    def __str__(self) -> str:
        return f"{self.records}-{self.partitions}"


def _empty(size: _Size) -> _Size:
    """All but empty, in as many partitions."""
    return size._replace(records=_EMPTY_RECORDS)


def _against(name: str, rounds: list[dict[_Size, float]], one: _Size, other: _Size, *, at_most: float) -> Figure:
    """The median of the rounds' ratios."""
    details = {f"{size.records:,} in {size.partitions}, us": median(us[size] for us in rounds) for size in (other, one)}
    return Figure(name, median(us[one] / us[other] for us in rounds), "times", at_most=at_most, details=details)


def _microseconds(work: str, folder: Path, size: _Size) -> float:
    """Of a record."""
    data, empty = folder / str(size), folder / str(_empty(size))
    full_seconds, base_seconds = in_fresh_process(_cpu_seconds, work, data, empty, folder / "run")
    records, fewer = (WORKS[work].records(Dataset.open(dataset)) for dataset in (data, empty))
    return (full_seconds - base_seconds) / (records - fewer) * 1e6


def _cpu_seconds(work: str, data: Path, empty: Path, folder: Path) -> tuple[float, float]:
    """Of all phases over the whole dataset, and over the small one, the second time."""
    replays = [
        Replays(folder / f"{n}", job(work), Dataset.open(dataset)) for n, dataset in enumerate((empty, empty, data))
    ]
    _, base, full = (one.run().cpu_seconds for one in replays)
    shutil.rmtree(folder)
    return full, base


def _phases(data: Path, folder: Path, is_audited: bool) -> Iterator[dict[str, float]]:
    """CPU seconds of each phase, by commit."""
    replays = Replays(folder, job("W4"), Dataset.open(data), is_audited=is_audited)
    for number in itertools.count(1):
        yield _by_phase(replays.run(until_ms=START_MS + number * _MINUTE_MS))


def _by_phase(done: Slice) -> dict[str, float]:
    return {phase: cost.cpu_seconds for phase, cost in done.phases.items()}
