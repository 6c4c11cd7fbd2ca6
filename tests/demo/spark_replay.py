"""Replays months of the demo on Spark, without audit: arguments WAREHOUSE STATE MASTER MONTHS."""

from __future__ import annotations

import sys

from hindstream.demo.job import job
from hindstream.demo.run import MONTH_ENDS_MS
from spark_jobs import commit, plan, publish, replay
from spark_jobs.runs import open_warehouse
from statelib.commits import NothingToDo, record_audit
from statelib.config import load_settings
from statelib.manifests import Audit


def main(warehouse: str, state_dir: str, master: str, months: str) -> None:
    demo = job()
    for until in MONTH_ENDS_MS[: int(months)]:
        given = {"warehouse": warehouse, "state_dir": state_dir, "spark_master": master, "until": until}
        settings = load_settings(given, environ={})
        planned = plan.run(demo, settings)
        assert not isinstance(planned, NothingToDo)
        run_id = planned.run_id
        replay.run(demo, settings, run_id)
        passed = Audit(run_id=run_id, success=True, checks=(), data_docs=None, seconds=0.0)
        record_audit(open_warehouse(settings), planned, passed)
        commit.run(demo, settings, run_id)
        publish.run(demo, settings, run_id)


if __name__ == "__main__":
    main(*sys.argv[1:])
