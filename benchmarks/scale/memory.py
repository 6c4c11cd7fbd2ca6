"""A task whose live keys do not fit its memory budget: its peak, its answer and its cost."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from shutil import rmtree
from statistics import median
from typing import TYPE_CHECKING, ClassVar

from benchmarks.dataset import Dataset, Parameters
from benchmarks.scale.measurement import Figure, Measurement
from benchmarks.scale.processes import PeakMemory, in_fresh_process
from benchmarks.scale.replays import Replays
from benchmarks.works import DEDUPLICATION_INTERVAL, GRACE, WINDOW, job

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MIB = 1 << 20


@dataclass(frozen=True)
class _Run:
    """What one run took; `answer` describes its files, their content's SHA-256 included.

    Memory is anonymous (docs/decisions/0012-memory-budget.md): ``peak_bytes`` beyond ``idle_bytes``, those of a process
    that has imported everything and done nothing.
    """

    peak_bytes: int
    idle_bytes: int
    cpu_seconds: float
    wall_seconds: float
    spill_seconds: float
    state_bytes: int
    answer: list[tuple[int, int, int, str | None]]


@dataclass
class Memory(Measurement):
    """One task; the work takes place in a process of its own, of which the peak is read at the end.

    Attributes:
        records: Of ``clicks``.
        live_keys: Ids within the interval (W1), windows that are still open (W3).
        budget_mib: ``memory_budget_bytes`` of the task.
        allowance_mib: What the whole process, all that it has imported included, may need beyond its budget.
        unbounded_mib: Budget of the run that it is compared with, which fits it.
        pairs: Of runs with the budget and without a bound, in turn; the median of their ratios counts.
    """

    name: ClassVar[str] = "memory"

    records: int = 20_000_000
    live_keys: int = 5_000_000
    budget_mib: int = 256
    allowance_mib: int = 250
    unbounded_mib: int = 1 << 20
    pairs: int = 3

    def figures(self, folder: Path) -> Iterator[Figure]:
        """See `Measurement`."""
        for work, parameters in (("W1", self.ids()), ("W3", self.windows())):
            yield from self.compare(folder / work, work, parameters)

    def compare(self, folder: Path, work: str, parameters: Parameters) -> Iterator[Figure]:
        """Runs a work with the budget and without a bound, as often as there are pairs; who is first changes."""
        data = folder / "data"
        in_fresh_process(partial(Dataset.generate, data, parameters))
        budgets = (self.budget_mib, self.unbounded_mib)
        pairs = []
        for number in range(self.pairs):
            runs = {}
            for budget in budgets[:: -1 if number % 2 else 1]:
                runs[budget] = in_fresh_process(_run, work, data, folder / f"{budget}-{number}", budget * _MIB)
                rmtree(folder / f"{budget}-{number}")
            pairs.append((runs[self.budget_mib], runs[self.unbounded_mib]))
        size = f"{work}, {self.records:,} records, {self.live_keys:,} live keys, budget {self.budget_mib} MiB"
        yield from self._figures(size, pairs)

    def _figures(self, size: str, pairs: list[tuple[_Run, _Run]]) -> Iterator[Figure]:
        most, unbounded = (
            max(runs, key=lambda run: run.idle_bytes + run.peak_bytes) for runs in zip(*pairs, strict=True)
        )
        mib = {
            "idle worker": most.idle_bytes / _MIB,
            "beyond that": most.peak_bytes / _MIB,
            "without a bound": (unbounded.idle_bytes + unbounded.peak_bytes) / _MIB,
            "state": most.state_bytes / _MIB,
        }
        limit = self.budget_mib + self.allowance_mib
        whole = (most.idle_bytes + most.peak_bytes) / _MIB
        yield Figure(f"peak anonymous memory of the whole process: {size}", whole, "MiB", at_most=limit, details=mib)
        answers = [run.answer for pair in pairs for run in pair]
        same = bool(answers[0]) and answers[1:] == answers[:-1]
        yield Figure.of_answers(f"answer equal to that of the run in memory: {size}", are_right=same)
        ratios = [bounded.cpu_seconds / in_memory.cpu_seconds for bounded, in_memory in pairs]
        details: dict[str, object] = {
            f"{name}, {key.replace('_', ' ')}": median(getattr(run, key) for run in runs)
            for name, runs in zip(("bounded", "in memory"), zip(*pairs, strict=True), strict=True)
            for key in ("cpu_seconds", "wall_seconds", "spill_seconds")
        }
        details["each pair"] = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        yield Figure(f"CPU of the run in memory: {size}", median(ratios), "times", at_most=1.3, details=details)

    def ids(self) -> Parameters:
        """Ids that are remembered for ten minutes."""
        per_second = self.live_keys / DEDUPLICATION_INTERVAL.total_seconds()
        return Parameters(records=self.records, partitions=1, records_per_second=per_second)

    def windows(self) -> Parameters:
        """Keys so many and even that hardly two records meet in a window; rates, which nobody reads, hardly change."""
        per_second = self.live_keys / (WINDOW + GRACE).total_seconds()
        return Parameters(
            records=self.records,
            partitions=1,
            records_per_second=per_second,
            campaigns=10 * self.live_keys,
            zipf=0,
            rate_minutes=1e6,
        )


def _run(work: str, data: Path, folder: Path, budget_bytes: int) -> _Run:
    replays = Replays(folder, job(work), Dataset.open(data), memory_budget_bytes=budget_bytes)
    with PeakMemory() as memory:
        done = replays.run()
    tasks, cost = done.staged.tasks, done.phases["replay"]
    return _Run(
        peak_bytes=memory.peak_bytes - memory.at_begin_bytes,
        idle_bytes=memory.at_begin_bytes,
        cpu_seconds=cost.cpu_seconds,
        wall_seconds=cost.wall_seconds,
        spill_seconds=sum(task.seconds.get("spill", 0.0) for task in tasks),
        state_bytes=done.state_bytes,
        answer=[(s.file.partition, s.file.first_offset, s.file.rows, s.file.sha256) for t in tasks for s in t.sinks],
    )
