"""One slice, all phases, as ``hindstream run`` does it: arguments WAREHOUSE STATE MASTER UNTIL_MS. Prints JSON."""

from __future__ import annotations

import json
import sys

from benchmarks.job import job
from spark_jobs.pipeline import run_slice
from statelib.commits import NothingToDo
from statelib.config import load_settings


def main(warehouse: str, state_dir: str, master: str, until_ms: str, output: str) -> None:
    settings = load_settings({"warehouse": warehouse, "state_dir": state_dir, "spark_master": master}, environ={})
    result = run_slice(job(), settings, int(until_ms))
    if isinstance(result, NothingToDo):
        raise SystemExit(str(result))
    tasks = [task.seconds for task in result.staged.tasks]
    report = {
        "records": result.plan.records,
        "phases": result.seconds,
        "tasks": {
            phase: sum(task.get(phase, 0.0) for task in tasks) for phase in sorted({p for t in tasks for p in t})
        },
        "records_out": sum(sink.file.rows for task in result.staged.tasks for sink in task.sinks),
    }
    with open(output, "w", encoding="utf-8") as file:  # noqa: PTH123
        json.dump(report, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
