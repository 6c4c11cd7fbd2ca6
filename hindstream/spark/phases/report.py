"""Last phase: writes the run's and the job's report, a page of HTML each (`hindstream.report`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hindstream.console.result_log import result_log
from hindstream.report.layout import reports_folder
from hindstream.runs import find_plan, open_warehouse
from hindstream.spark.phases import data_docs
from hindstream.spark.phases.command import phase_main
from statelib.commits import Runs
from statelib.commits.dropped import delete_if_dropped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.job.job import Job
    from statelib.settings.settings import Settings


def run(job: Job, settings: Settings, run_id: str | None = None) -> str:
    """Writes the report of a run, by default of the newest, and that of the job anew.

    Returns:
        Where the run's report is: a path or URL.

    Raises:
        ConfigurationError: There is no such run.
    """
    plan = find_plan(open_warehouse(settings), job.name, run_id)
    path = write(job, settings, plan.run_id)
    result_log.info("%s: the report of run %s is %s", job.name, plan.run_id, path)
    return path


def write(job: Job, settings: Settings, run_id: str) -> str:
    """Does what `run` does, and says nothing of it: for whoever says where the report is."""
    from hindstream.report.write import write_job_report, write_run_report  # noqa: PLC0415 - templates, for this phase alone

    warehouse = open_warehouse(settings)
    path = warehouse.uri(str(write_run_report(warehouse, job, run_id)))
    write_job_report(warehouse, job)
    delete_if_dropped(warehouse, job.name, reports_folder(job.name))
    audit = Runs(warehouse, job.name).audit(run_id)
    if settings.data_docs == "report" and audit is not None and audit.success:
        data_docs.write_if_missing(warehouse, job.name, audit)
    return path


def main(argv: Sequence[str] | None = None) -> None:
    """The command line of ``spark_jobs/report.py``: ``--job FILE.py:NAME [--run RUN_ID] [--SETTING VALUE ...]``."""
    phase_main(run, argv, description="Writes the report of a run, and that of the job.")
