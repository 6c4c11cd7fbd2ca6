"""Replays slices of a job on Spark, without audit: arguments WAREHOUSE STATE MASTER JOB UNTIL_MS...

An UNTIL_MS of ``end`` is the end of the archives.
"""

from __future__ import annotations

import sys

from hindstream.runs import open_warehouse
from hindstream.spark.phases import commit, plan, publish, replay
from statelib import load_job
from statelib.commits import NothingToDo, record_audit
from statelib.documents.manifests import Audit
from statelib.settings.settings import load_settings


def main(warehouse: str, state_dir: str, master: str, reference: str, *slices: str) -> None:
    job = load_job(reference)
    for until in slices:
        given: dict[str, object] = {"warehouse": warehouse, "state_dir": state_dir, "spark_master": master}
        given |= {} if until == "end" else {"until": int(until)}
        settings = load_settings(given, environ={})
        planned = plan.run(job, settings)
        assert not isinstance(planned, NothingToDo)
        run_id = planned.run_id
        replay.run(job, settings, run_id)
        passed = Audit(run_id=run_id, success=True, checks=(), data_docs=None, seconds=0.0)
        record_audit(open_warehouse(settings), planned, passed)
        commit.run(job, settings, run_id)
        publish.run(job, settings, run_id)


if __name__ == "__main__":
    main(*sys.argv[1:])
