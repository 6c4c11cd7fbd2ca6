"""Where the time and the CPU of a small run go, from the interpreter's start to the end of the last process."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, ClassVar

from benchmarks.scale.imports import STANDARD, imported_ms
from benchmarks.scale.measurement import Figure, Measurement
from benchmarks.scale.parts import AFTER_START, PHASES, Spent, parts, read_spans
from benchmarks.scale.scheduled import Scheduled
from benchmarks.scale.spans import START
from benchmarks.scale.waiting import Waiting, forget
from benchmarks.warm_session import HINDSTREAM
from statelib.commits import Runs, read_staged
from statelib.storage import Storage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_STAGE = "hindstream.spark.phases.spark_stage:run_stage"
_PARTS = {
    START: "interpreter",
    AFTER_START: "imports, command line, settings, job file",
    **PHASES,
    "hindstream.spark.session.session:_started": "Spark's context, without Java's start",
    "pyspark.java_gateway:launch_gateway": "Java, until it answers",
    _STAGE: "Spark's stages: the workers' start, and the tasks",
}
_BETWEEN, _END = "between phases", "end of all processes"
_UNTIL_FIRST_TASK = "until the first task begins, s"
_PACKAGES_SHOWN = 10


@dataclass
class Profile(Measurement):
    """The slice of 11,452 orders that `Waiting` takes, on Spark and locally, from cold; and the tasks of `Scheduled`.

    A part does not count what a part within it takes. Data Docs are left out of the runs, and are made by a process of
    their own, as the one beside a run does. Imports are a part of all the others, and measured in runs of their own.

    Attributes:
        repeats: Of each run; medians of each part count.
        days: Slices through Airflow; the first does not count.
    """

    name: ClassVar[str] = "profile"

    repeats: int = 5
    days: int = 6

    def figures(self, folder: Path) -> Iterator[Figure]:
        """See `Measurement`."""
        yield from self.of_runs(folder)
        (folder / "scheduled").mkdir()
        yield from Scheduled(days=self.days).of_tasks(folder / "scheduled")

    def of_runs(self, folder: Path, engines: Sequence[str] = ("spark", "local")) -> Iterator[Figure]:
        """Those of `hindstream run`."""
        waiting = Waiting(repeats=self.repeats)
        shop = waiting.prepared(folder)
        for engine in engines:
            command = ["run", "jobs/orders_by_day.py:job", "--engine", engine]
            runs = [_run(waiting, shop, command) for _ in range(self.repeats)]
            names = list(dict.fromkeys(name for run in runs for name in run))
            for name in names:
                spent = Spent.median([run.get(name, (Spent(), {}))[0] for run in runs])
                extra = {key: median(run[name][1][key] for run in runs) for key in runs[0][name][1]}
                yield _figure(f"--engine {engine}, {name}", spent, extra)
            yield self._imports(waiting, shop, command)
        yield self._data_docs(waiting, shop)

    def _imports(self, waiting: Waiting, shop: Path, command: Sequence[str]) -> Figure:
        """What the driver imports; Spark's workers are forks of a process that imports the engine once more."""
        runs = []
        for _ in range(self.repeats):
            forget(shop)
            waiting.measured([sys.executable, "-X", "importtime", HINDSTREAM, *command], shop)
            runs.append(imported_ms(waiting.log.read_text(errors="replace")))
        packages = {name: median(run.get(name, 0.0) for run in runs) for name in {*runs[0]} - {STANDARD}}
        largest = sorted(packages, key=lambda name: -packages[name])[:_PACKAGES_SHOWN]
        details = {f"{name}, ms": packages[name] for name in largest}
        details |= {f"{STANDARD}, ms": median(run[STANDARD] for run in runs)}
        seconds = median(sum(run.values()) for run in runs) / 1000
        return Figure(f"{' '.join(command[2:])}, all imports of the driver", seconds, "s", details=details)

    def _data_docs(self, waiting: Waiting, shop: Path) -> Figure:
        forget(shop)
        run = [HINDSTREAM, "run", "jobs/orders_by_day.py:job", "--engine", "local", "--set", "data_docs=report"]
        waiting.measured(run, shop)
        costs = []
        for _ in range(self.repeats):
            shutil.rmtree(shop / "warehouse" / "jobs" / "orders-by-day" / "great_expectations")
            cost = waiting.measured([HINDSTREAM, "data-docs", "orders-by-day"], shop)
            costs.append(Spent(cost.wall_seconds, cost.cpu_seconds))
        return _figure("Data Docs, a process beside", Spent.median(costs))


def _run(waiting: Waiting, shop: Path, arguments: Sequence[str]) -> dict[str, tuple[Spent, dict[str, float]]]:
    """What each part of a run has taken, and what else there is to say of it."""
    forget(shop)
    lines = shop / "spans"
    lines.unlink(missing_ok=True)
    watched = ", ".join(map(repr, (str(lines), *(name for name in _PARTS if ":" in name))))
    program = (
        f"from benchmarks.scale.spans import watch; watch({watched}); from hindstream.__main__ import main; main()"
    )
    cost = waiting.measured([sys.executable, "-c", program, *arguments], shop)
    (spans,) = read_spans(lines).values()
    found: dict[str, tuple[Spent, dict[str, float]]] = {}
    for part, spent in parts(spans).items():
        name = _PARTS.get(part, _BETWEEN)
        found[name] = (spent + found.get(name, (Spent(), {}))[0], {})
    if stages := [span for span in spans if span.name == _STAGE]:
        warehouse = Storage(str(shop / "warehouse"))
        (plan,) = Runs(warehouse, "orders-by-day").attempts(1)
        staged = read_staged(warehouse, plan)
        assert staged is not None
        first = min(task.began_at_ms for task in staged.tasks) / 1000
        found[_PARTS[_STAGE]][1][_UNTIL_FIRST_TASK] = first - stages[0].began.seconds
    last = max((span.ended for span in spans), key=lambda clocks: clocks.seconds)
    until_last = last.seconds - spans[0].began.seconds
    found[_END] = (Spent(cost.wall_seconds - until_last, cost.cpu_seconds - last.cpu_seconds), {})
    return {"in all": (Spent(cost.wall_seconds, cost.cpu_seconds), {}), **found}


def _figure(name: str, spent: Spent, extra: dict[str, float] | None = None) -> Figure:
    cpu = {"CPU, s": spent.cpu_seconds}
    if spent.java or spent.workers:
        cpu |= {"of it Java": spent.java, "workers": spent.workers}
    return Figure(name, spent.seconds, "s", details=cpu | (extra or {}))
