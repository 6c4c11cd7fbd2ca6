"""Small slices over a large state: what they cost, and how it depends on the size of the state."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, ClassVar

from benchmarks.scale.fresh import seconds_of_slice, seconds_of_spark
from benchmarks.scale.kept_keys import KeptKeys
from benchmarks.scale.measurement import Figure, Measurement
from benchmarks.scale.processes import in_fresh_process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True)
class _Hours:
    """Of a typical hour, in a process that has replayed others before; ``read_bytes``: by the task, see `PhaseCost`."""

    phases: dict[str, float]
    task_cpu_seconds: float
    read_bytes: int
    state_bytes: int


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
            large, small = (
                in_fresh_process(_hours, work, keys, self.records, self.repeats, folder / f"{work}-{keys}")
                for keys in (self.keys, self.keys // 10)
            )
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


def _hours(work: str, keys: int, records: int, repeats: int, folder: Path) -> _Hours:
    kept = KeptKeys(work, keys, records, repeats + 1)
    replays, _ = kept.begin(folder, is_audited=True)
    done = [replays.run(until_ms=kept.end_ms(hour)) for hour in range(1, repeats + 2)]
    done = done[1:]  # the first has loaded what the others find in memory
    return _Hours(
        phases={phase: median(d.phases[phase].wall_seconds for d in done) for phase in done[0].phases},
        task_cpu_seconds=median(d.phases["replay"].cpu_seconds for d in done),
        read_bytes=round(median(d.phases["replay"].read_bytes for d in done)),
        state_bytes=done[-1].state_bytes,
    )
