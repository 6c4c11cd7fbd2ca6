"""Small slices over a large state: what they cost, and how it depends on the size of the state."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, ClassVar, Self

from benchmarks.scale.fresh import seconds_of_slice, seconds_of_spark
from benchmarks.scale.kept_keys import KeptKeys
from benchmarks.scale.measurement import Figure, Measurement
from benchmarks.scale.processes import in_fresh_process, steps_in_fresh_process

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from benchmarks.scale.replays import PhaseCost


@dataclass(frozen=True)
class _Hour:
    """What an hour's slice cost by phase, and the bytes of the state after it."""

    phases: dict[str, PhaseCost]
    state_bytes: int


@dataclass(frozen=True)
class _Hours:
    """Of a typical hour, in a process that has replayed others before; ``read_bytes``: by the task, see `PhaseCost`."""

    phases: dict[str, float]
    task_cpu_seconds: float
    read_bytes: int
    state_bytes: int

    @classmethod
    def typical(cls, hours: Sequence[_Hour]) -> Self:
        """The median of each figure."""
        return cls(
            phases={phase: median(hour.phases[phase].wall_seconds for hour in hours) for phase in hours[0].phases},
            task_cpu_seconds=median(hour.phases["replay"].cpu_seconds for hour in hours),
            read_bytes=round(median(hour.phases["replay"].read_bytes for hour in hours)),
            state_bytes=hours[-1].state_bytes,
        )


@dataclass
class Slices(Measurement):
    """W1 over a state of ids, W2 over a table of campaigns.

    Attributes:
        keys: In the larger state; the smaller one has a tenth.
        records: Of a slice.
        repeats: Slices that are measured; of most figures the median counts.
    """

    name: ClassVar[str] = "slices"

    keys: int = 1_000_000
    records: int = 10_000
    repeats: int = 5

    def figures(self, folder: Path) -> Iterator[Figure]:
        """See `Measurement`."""
        for work, kind in (("W1", "ids"), ("W2", "campaigns")):
            large, small = self._in_turn(work, folder)
            size = f"{work}, slice of {self.records:,} records over {self.keys:,} {kind}"
            phases = {f"{phase}, s": seconds for phase, seconds in large.phases.items()}
            yield Figure(f"all phases: {size}", sum(large.phases.values()), "s", at_most=3, details=phases)
            cpu = {f"{name}, CPU s": h.task_cpu_seconds for name, h in (("all keys", large), ("a tenth", small))}
            ratio = large.task_cpu_seconds / small.task_cpu_seconds
            yield Figure(f"CPU of the task for ten times the keys: {size}", ratio, "times", at_most=1.5, details=cpu)
            yield self._fresh(work, size, folder / f"{work}-fresh")
            share = (large.read_bytes - small.read_bytes) / (large.state_bytes - small.state_bytes)
            read = {
                f"{name} {what}, MB": size_bytes / 1e6
                for name, hours in (("all keys", large), ("a tenth", small))
                for what, size_bytes in (("read", hours.read_bytes), ("in the state", hours.state_bytes))
            }
            name = f"bytes more that are read, of those that ten times the keys add to the state: {size}"
            # New ids are not in the state, which filters know; campaigns lie scattered over most of a table's blocks.
            yield Figure(name, share, at_most=0.5 if work == "W1" else None, details=read)

    def _in_turn(self, work: str, folder: Path) -> tuple[_Hours, _Hours]:
        """Hours over all keys, and over a tenth of them, which take turns."""
        tenth = self.keys // 10
        with (
            steps_in_fresh_process(_hours, self._kept(work, self.keys), folder / f"{work}-{self.keys}") as large,
            steps_in_fresh_process(_hours, self._kept(work, tenth), folder / f"{work}-{tenth}") as small,
        ):
            hours = [(large(), small()) for _ in range(self.repeats)]
        of_all_keys, of_a_tenth = zip(*hours, strict=True)
        return _Hours.typical(of_all_keys), _Hours.typical(of_a_tenth)

    def _kept(self, work: str, keys: int) -> KeptKeys:
        return KeptKeys(work, keys, self.records, self.repeats + 1)

    def _fresh(self, work: str, size: str, folder: Path) -> Figure:
        """The same in processes of their own, in turn with some that only start Spark."""
        kept = KeptKeys(work, self.keys, self.records, self.repeats)
        in_fresh_process(_begin, kept, folder)
        pairs = [
            (seconds_of_slice(kept, hour, folder), seconds_of_spark(folder)) for hour in range(1, self.repeats + 1)
        ]
        whole, spark = (median(seconds) for seconds in zip(*pairs, strict=True))
        more = median(whole - spark for whole, spark in pairs)
        details = {"whole process, s": whole, "Spark alone, s": spark}
        return Figure(
            f"a process of its own, beyond one that only starts Spark: {size}", more, "s", at_most=3, details=details
        )


def _begin(kept: KeptKeys, folder: Path) -> None:
    kept.begin(folder)


def _hours(kept: KeptKeys, folder: Path) -> Iterator[_Hour]:
    """One hour after the other; the first has loaded what the others find in memory, and is not among them."""
    replays, _ = kept.begin(folder, is_audited=True)
    replays.run(until_ms=kept.end_ms(1))
    for hour in range(2, kept.hours + 1):
        done = replays.run(until_ms=kept.end_ms(hour))
        yield _Hour(done.phases, done.state_bytes)
