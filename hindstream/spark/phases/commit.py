"""Fourth phase: makes the run true."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from hindstream.lineage.reported import reported
from hindstream.runs import find_plan, now_ms, open_warehouse
from hindstream.spark.phases.command import phase_main
from hindstream.spark.phases.telemetry import export
from statelib.commits import CommitLog, read_staged
from statelib.commits import commit as make_commit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.documents.manifests import Commit
    from statelib.job.job import Job
    from statelib.settings.settings import Settings

_log = logging.getLogger(__name__)


@reported("commit")
def run(job: Job, settings: Settings, run_id: str | None = None) -> Commit:
    """Commits an audited run and exports its metrics (`telemetry`); a repeat gives the commit that is there.

    Raises:
        HindstreamError: See `statelib.commits.run.commit`.
    """
    warehouse = open_warehouse(settings)
    plan = find_plan(warehouse, job.name, run_id)
    is_new = CommitLog(warehouse, job.name).read_if_present(plan.commit) is None
    made = make_commit(warehouse, plan, now_ms=now_ms())
    staged = read_staged(warehouse, plan)
    if is_new and staged is not None:
        export(job.name, staged)
    _log.info("%s: run %s is commit %d", job.name, made.run_id, made.commit)
    return made


def main(argv: Sequence[str] | None = None) -> None:
    """The command line of ``spark_jobs/commit.py``: ``--job FILE.py:NAME [--run RUN_ID] [--SETTING VALUE ...]``."""
    phase_main(run, argv, description="Commits an audited run.")
