"""Hindstream itself: one slice through all phases, as ``hindstream run`` does it; on Spark, locally, in a session."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from benchmarks.contestants.contestant import Contestant
from benchmarks.warm_session import HINDSTREAM, warm_session
from benchmarks.works import ANSWER, WORKS, job
from hindstream.garbage import collect_seldom
from hindstream.spark.phases.pipeline import run_slice
from statelib.commits import NothingToDo, topic_path
from statelib.settings.settings import load_settings
from statelib.storage import Storage
from statelib.topics.archive import TopicArchive

if TYPE_CHECKING:
    from benchmarks.dataset import Dataset
    from benchmarks.measure import Cost
    from benchmarks.works import Work

MASTER = os.environ.get("BENCHMARK_SPARK_MASTER", "local[2]")


class Hindstream(Contestant):
    """The whole run protocol: plan, replay, audit, commit, publish, maintain, report; state is checkpointed."""

    name = "hindstream"
    title = "Hindstream"
    settings = (
        f"one slice through all phases of a run on Spark {MASTER}, with checkpointed state (RocksDB), an audit and a "
        "report; settings as they come, but for data_docs=failed: no Data Docs are written of what passes, since no "
        "other contestant validates anything (they would cost some 2.5 CPU seconds a run)"
    )
    is_exact = True
    agrees = tuple(WORKS)
    engine: ClassVar[str] = "spark"

    def lay_out(self, work: Work, dataset: Dataset, output: Path) -> None:
        """A warehouse of its own; the files are the same ones."""
        shutil.copytree(dataset.folder / "topics", output / "warehouse" / "topics", copy_function=os.link)

    def command(self, work: Work, dataset: Dataset, output: Path) -> list[str]:
        """See `main`."""
        return self.module(work.name, output, self.engine)

    def answer(self, work: Work, output: Path) -> pa.Table:
        """What is published."""
        archive = TopicArchive.open_if_present(Storage(str(output / "warehouse")).uri(topic_path(ANSWER)))
        if archive is None:  # no window of the small dataset has closed yet
            return work.answer.empty_table()
        rows = pa.concat_tables([archive.reader(p).read_all() for p in range(archive.partitions)])
        columns = {"timestamp": rows["timestamp"], "key": rows["key"]}
        for name in ("key", "value"):
            if pa.types.is_struct(rows[name].type):
                fields = rows[name].combine_chunks()
                columns |= {field.name: fields.field(field.name) for field in fields.type}
        for name, column in columns.items():
            if pa.types.is_timestamp(column.type):  # the bounds of windows are in microseconds
                columns[name] = column.cast(pa.timestamp("ms", "UTC"))
        return pa.table({name: columns[name] for name in work.answer.names}).cast(work.answer)


class HindstreamLocal(Hindstream):
    """The same without Spark: ``hindstream run --engine local``."""

    name = "hindstream-local"
    title = "Hindstream, local"
    settings = (
        "the same run with --engine local: all phases in one process, started for it, task after task, without Spark"
    )
    engine = "local"


class HindstreamSession(Hindstream):
    """The local run as a command of a session that waits for it: ``hindstream session start``, ``hindstream run``."""

    name = "hindstream-session"
    title = "Hindstream, in a session"
    settings = (
        "the same run as a user's command, hindstream run --engine local, in a session that hindstream session start "
        "has started before each run. The start of the session is not counted (it imports everything once, and each "
        "command is a fork of it, so that no command makes the next one warmer); all that the command adds is, in "
        "client, session and fork. The memory is that of all three"
    )

    def lay_out(self, work: Work, dataset: Dataset, output: Path) -> None:
        """Besides, the job as a file."""
        super().lay_out(work, dataset, output)
        text = f"from benchmarks import works\n\njob = works.job({work.name!r})\n"
        (output / "work.py").write_text(text, encoding="utf-8")

    def command(self, work: Work, dataset: Dataset, output: Path) -> list[str]:
        """As a user types it."""
        settings = {"state_dir": output / "state", "data_docs": "failed"}
        options = [option for name, value in settings.items() for option in ("--set", f"{name}={value}")]
        place = ["--warehouse", str(output / "warehouse"), "--engine", "local"]
        return [HINDSTREAM, "run", f"{output / 'work.py'}:job", *place, *options]

    def measure(self, command: list[str], output: Path, *, environment: dict[str, str], log: Path) -> Cost:
        """Client, session and fork; see `benchmarks.warm_session`."""
        plain = {name: value for name, value in environment.items() if not name.startswith("HINDSTREAM_")}
        with warm_session(plain) as session:
            return session.measure(command, log=log, folder=output)


def main(work: str, output: str, engine: str) -> None:
    """Runs one slice over the topics in ``output``; what it cost by phase goes into ``phases.json`` there."""
    collect_seldom()  # as `hindstream` does
    folder = Path(output)
    places = {"warehouse": str(folder / "warehouse"), "state_dir": str(folder / "state"), "spark_master": MASTER}
    places |= {"engine": engine, "data_docs": "failed"}
    result = run_slice(job(work), load_settings(places, environ={}))
    if isinstance(result, NothingToDo):
        raise SystemExit(str(result))
    tasks = [task.seconds for task in result.staged.tasks]
    phases = sorted({phase for task in tasks for phase in task})
    figures = {
        "records": result.plan.records,
        "phases": result.seconds,
        "tasks": {phase: sum(task.get(phase, 0.0) for task in tasks) for phase in phases},
        "peak_memory_bytes": max(task.peak_memory_bytes for task in result.staged.tasks),
    }
    (folder / "phases.json").write_text(json.dumps(figures), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
