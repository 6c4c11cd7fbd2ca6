"""Writes the pages: ``jobs/<job>/reports/index.html`` for the job, ``<run id>.html`` beside it for each run.

Beside them is what the job's page is made of, see `hindstream.report.history`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hindstream.report.documents import load_attempts, load_run
from hindstream.report.history import follow
from hindstream.report.layout import report_path, reports_folder
from hindstream.report.pages import job_page, run_page
from hindstream.report.rendering import render

if TYPE_CHECKING:
    from hindstream.report.documents import RunDocuments
    from statelib.job.job import Job
    from statelib.storage import Storage


def write_run_report(storage: Storage, job: Job, run_id: str) -> str:
    """Writes the page of one run from its documents.

    Returns:
        The page's path below the warehouse.

    Raises:
        ConfigurationError: There is no such run.
    """
    page = run_page(job, load_run(storage, job.name, run_id))
    return _write(storage, report_path(job.name, run_id), "run.html.j2", page)


def write_job_report(storage: Storage, job: Job) -> str:
    """Writes the page of a job, and the pages of the runs that have come since the last one was written.

    Returns:
        The path of the job's page below the warehouse.
    """
    kept = f"{reports_folder(job.name)}/history.json"
    history, added = follow(storage, job.name, kept)
    under_way = load_attempts(storage, job.name, history.through + 1)
    copied = _copied_since(storage, job.name, added[0].plan.commit) if added else ()
    for run in (*copied, *added, *under_way):
        _write(storage, report_path(job.name, run.run_id), "run.html.j2", run_page(job, run))
    if added:
        storage.put(kept, history.encode())
    for run in under_way:
        history.add(run)
    figures = job.figures(storage) if job.figures is not None else ()
    return _write(storage, report_path(job.name), "job.html.j2", job_page(job, history, figures))


def _copied_since(storage: Storage, job: str, commit: int) -> list[RunDocuments]:
    """The run before a commit, if it has copies of state: they may have been made since its page was written."""
    return [run for run in load_attempts(storage, job, commit - 1) if run.copies is not None] if commit > 1 else []


def _write(storage: Storage, path: str, template: str, page: dict[str, object]) -> str:
    storage.put(path, render(template, page).encode())
    return path
