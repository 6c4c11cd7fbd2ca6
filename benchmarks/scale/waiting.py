"""What a person waits for: whole commands, from start to end, beside a bare pyspark that counts ten rows."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, ClassVar

from benchmarks.measure import Cost, measure
from benchmarks.scale.measurement import Figure, Measurement
from benchmarks.warm_session import HINDSTREAM, warm_session
from statelib.commits import CommitLog
from statelib.storage import Storage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.warm_session import WarmSession

Answer = frozenset[tuple[int, str, int, int, str | None]]
"""Commit, topic, partition, rows and digest of each published file."""

_TEN_ROWS = (
    "from pyspark.sql import SparkSession; SparkSession.builder.master('local[2]').getOrCreate().range(10).count()"
)
_MONTHS = 12


@dataclass
class Waiting(Measurement):
    """A slice of 11,452 orders of `hindstream init`, a backfill of the demo's months, and the demo itself.

    All processes count, those beside a command too. Data Docs are left out (``data_docs = "failed"``).

    Attributes:
        repeats: Of each command; medians count.
        demos: Repeats of the demo.
    """

    name: ClassVar[str] = "waiting"

    repeats: int = 5
    demos: int = 3

    def figures(self, folder: Path) -> Iterator[Figure]:
        """See `Measurement`."""
        shop = self.prepared(folder)
        run = [HINDSTREAM, "run", "jobs/orders_by_day.py:job"]
        local = [*run, "--engine", "local"]
        bare = self._typical([sys.executable, "-c", _TEN_ROWS], shop)
        yield from _both("a bare pyspark that counts ten rows", bare)
        yield from _both("hindstream run on Spark from cold", self._typical(run, shop, fresh=True), 6, 7)
        yield from _both("hindstream run --engine local from cold", self._typical(local, shop, fresh=True))
        yield from _both("... with nothing to do", self._typical(local, shop), 0.5)
        yield from _both(
            "hindstream run --engine local in a session", self._in_session(local, shop, fresh=True), 1.5, 1.5
        )
        yield from _both("... with nothing to do", self._in_session(local, shop), 0.5)
        yield self._equal(f"answers of {len(self._answers)} runs, on Spark, local and in a session, equal")
        self._answers.clear()
        yield self._further_slice(folder)
        yield self._equal(f"answers of {len(self._answers)} backfills equal")
        demo = [HINDSTREAM, "demo", "--fresh"]
        costs = [self.measured(demo, folder) for _ in range(self.demos)]
        yield from _both("hindstream demo --fresh, twelve months", _median(costs), 15)

    def local_starts(self, folder: Path) -> dict[str, Cost]:
        """Medians of a local run from cold, with nothing to do, and in a session: what `benchmarks.guard` looks at."""
        shop = self.prepared(folder)
        local = [HINDSTREAM, "run", "jobs/orders_by_day.py:job", "--engine", "local"]
        return {
            "start": self._typical(local, shop, fresh=True),
            "start-nothing-to-do": self._typical(local, shop),
            "start-in-session": self._in_session(local, shop, fresh=True),
        }

    def prepared(self, folder: Path) -> Path:
        """A project."""
        runtime = folder / "run"  # where no session waits
        runtime.mkdir()
        self.environment = os.environ | {"HINDSTREAM_DATA_DOCS": "failed", "XDG_RUNTIME_DIR": str(runtime)}
        self.log = folder / "log"
        self._answers: list[Answer] = []
        return self._shop(folder)

    def _shop(self, folder: Path) -> Path:
        """A project with its topic loaded; what runs add to it, `forget` takes away."""
        self.measured([HINDSTREAM, "init", "shop"], folder)
        shop = folder / "shop"
        self.measured([HINDSTREAM, "ingest", "jobs/lake.py:orders"], shop)
        return shop

    def _typical(
        self, command: Sequence[str], place: Path, *, fresh: bool = False, session: WarmSession | None = None
    ) -> Cost:
        costs = []
        for _ in range(self.repeats):
            if fresh:
                forget(place)
            costs.append(self.measured(command, place, session))
            if fresh:
                self._answers.append(answer(place))
        return _median(costs)

    def _in_session(self, command: Sequence[str], place: Path, *, fresh: bool = False) -> Cost:
        """What each further command adds to a session, over all processes; the memory is that of all."""
        with warm_session(self.environment) as session:
            self.measured(command, place, session)  # not counted: the first
            return self._typical(command, place, fresh=fresh, session=session)

    def _further_slice(self, folder: Path) -> Figure:
        """What a month adds to a backfill of the demo's job."""
        warehouse = folder / "months"
        self.measured([sys.executable, "-c", _ARCHIVE, str(warehouse)], folder)
        command = [
            HINDSTREAM, "backfill", "hindstream.demo.job:job", "--warehouse", str(warehouse), "--every", "month",
            "--timezone", "America/New_York", "--airflow-home", str(folder / "airflow"), "--from", "2013-01-01",
        ]  # fmt: skip
        walls = []
        for _ in range(self.demos):
            of = {}
            for months in (2, _MONTHS):
                shutil.rmtree(folder / "airflow", ignore_errors=True)
                forget(folder, "months", ("flights-once", "delays-by-hour"))
                end = f"2013-{months + 1:02}-01" if months < _MONTHS else "2014-01-01"
                of[months] = self.measured([*command, "--to", end], folder).wall_seconds
            self._answers.append(answer(folder, "months", "flight-delays"))
            walls.append((of[_MONTHS] - of[2]) / (_MONTHS - 2))
        name = "each further slice of a backfill through Airflow, 30,000 records, 25 checks"
        return Figure(name, median(walls), "s", at_most=0.6, details={"least": min(walls), "most": max(walls)})

    def _equal(self, name: str) -> Figure:
        """Whether all have published the same files, and some at all."""
        same = all(self._answers) and len(set(self._answers)) == 1
        return Figure.of_answers(name, are_right=same)

    def measured(self, command: Sequence[str], place: Path, session: WarmSession | None = None) -> Cost:
        if session is not None:
            return session.measure(command, log=self.log, folder=place)
        return measure(command, environment=self.environment, log=self.log, folder=place)


_ARCHIVE = """
import sys
from hindstream.demo.archives import prepare_topics
from statelib.storage import Storage
prepare_topics(Storage(sys.argv[1]), announce=print)
"""


def forget(place: Path, warehouse: str = "warehouse", sinks: Sequence[str] = ("orders-by-day",)) -> None:
    """Takes away what runs have made."""
    shutil.rmtree(place / warehouse / "jobs", ignore_errors=True)
    for sink in sinks:
        for folder in (place / warehouse / "topics").glob(f"{sink}*"):
            shutil.rmtree(folder)
    shutil.rmtree(place / ".hindstream", ignore_errors=True)


def answer(place: Path, warehouse: str = "warehouse", job: str = "orders-by-day") -> Answer:
    """What the runs of a job have published."""
    log = CommitLog(Storage(str(place / warehouse)), job)
    return frozenset(
        (number, sink.topic, sink.file.partition, sink.file.rows, sink.file.sha256)
        for number in range(1, log.head_number() + 1)
        for sink in log.read(number).sinks
    )


def _median(costs: Sequence[Cost]) -> Cost:
    return Cost(
        median(cost.wall_seconds for cost in costs),
        median(cost.cpu_seconds for cost in costs),
        max(cost.peak_memory_bytes for cost in costs),
    )


def _both(name: str, cost: Cost, seconds: float | None = None, cpu_seconds: float | None = None) -> Iterator[Figure]:
    memory = {"peak, MiB": cost.peak_memory_bytes >> 20}
    yield Figure(name, cost.wall_seconds, "s", at_most=seconds, details=memory)
    yield Figure(f"{name}, CPU", cost.cpu_seconds, "s", at_most=cpu_seconds)
