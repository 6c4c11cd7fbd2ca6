"""A driver that runs a slice for each line that it reads.

``python -m tests.hindstream.spark.placement.placed_runs JOB SETTINGS``

A line is the slice's end in ms; the answer is a line too: the run's id, or why there is none. After ``unkept`` and a
space the slice is not maintained, so that standbys do not get its commit; ``maintain`` does that. ``wait`` waits for
copies that are made in the background, ``slots N`` until Spark has so many.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import TYPE_CHECKING

from hindstream.spark.phases import audit, commit, maintain, plan, publish, replay
from hindstream.spark.phases.pipeline import run_slice
from hindstream.spark.placement import standbys
from hindstream.spark.placement.hosts import slots_now
from hindstream.spark.session.session import spark_session
from statelib.commits import NothingToDo
from statelib.job.job import load_job
from statelib.settings.settings import load_settings

if TYPE_CHECKING:
    from statelib.job.job import Job
    from statelib.settings.settings import Settings


def main(reference: str, settings: str) -> None:
    """Reads until the end of the input."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    job, given = load_job(reference), load_settings(json.loads(settings), environ={})
    for line in map(str.strip, sys.stdin):
        if line == "wait":
            standbys.wait()
            print("done", flush=True)
            continue
        if line.startswith("slots "):
            while slots_now(spark_session(given).sparkContext) < int(line.removeprefix("slots ")):
                time.sleep(0.1)
            print("there", flush=True)
            continue
        if line == "maintain":
            maintain.run(job, given)
            print("maintained", flush=True)
            continue
        if line.startswith("unkept "):
            print(_unkept(job, given.model_copy(update={"until": int(line.removeprefix("unkept "))})), flush=True)
            continue
        made = run_slice(job, given, int(line))
        print(str(made) if isinstance(made, NothingToDo) else made.plan.run_id, flush=True)


def _unkept(job: Job, settings: Settings) -> str:
    planned = plan.run(job, settings)
    assert not isinstance(planned, NothingToDo)
    for phase in (replay, audit, commit, publish):
        phase.run(job, settings, planned.run_id)
    return planned.run_id


if __name__ == "__main__":
    main(*sys.argv[1:])
