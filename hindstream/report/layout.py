"""Where a job's pages are in the warehouse."""

from __future__ import annotations

from statelib.commits import JobLayout

INDEX = "index"


def reports_folder(job: str) -> str:
    """Where a job's pages are, below the warehouse."""
    return f"{JobLayout(job).root}/reports"


def report_path(job: str, page: str = INDEX) -> str:
    """A page's path below the warehouse: ``page`` is a run id, or ``index`` for the job's own."""
    return f"{reports_folder(job)}/{page}.html"
