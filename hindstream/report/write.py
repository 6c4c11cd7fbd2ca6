"""Writes the pages: ``jobs/<job>/reports/index.html`` for the job, ``<run id>.html`` beside it for each run."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from hindstream import numbers
from hindstream.documents import load_run, load_runs
from hindstream.report.accounts import shares
from hindstream.report.flow import order
from hindstream.report.pages import job_page, run_page
from statelib.commits import JobLayout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hindstream.report.charts import Figure
    from statelib.storage import Storage
    from statelib.topology import Topology

INDEX = "index"


def report_path(job: str, page: str = INDEX) -> str:
    """A page's path below the warehouse: ``page`` is a run id, or ``index`` for the job's own."""
    return f"{JobLayout(job).root}/reports/{page}.html"


def write_run_report(storage: Storage, job: str, run_id: str, *, topology: Topology | None = None) -> str:
    """Writes the page of one run from its documents.

    Args:
        storage: The warehouse.
        job: The job's name.
        run_id: The run.
        topology: The job's, for the picture of the flow; None: the page has none.

    Returns:
        The page's path below the warehouse.

    Raises:
        ConfigurationError: There is no such run.
    """
    run = load_run(storage, job, run_id)
    return _write(storage, report_path(job, run_id), "run.html.j2", run_page(job, run, topology))


def write_job_report(
    storage: Storage,
    job: str,
    *,
    topology: Topology | None = None,
    figures: Sequence[Figure] = (),
    notes: Sequence[str] = (),
) -> str:
    """Writes the page of a job from the documents of all its runs, and the page of each run that has none yet.

    Args:
        storage: The warehouse.
        job: The job's name.
        topology: The job's, for the picture of the flow; None: the pages have none.
        figures: Charts of the job's own, shown first.
        notes: What a reader must know of the data, a sentence each.

    Returns:
        The path of the job's page below the warehouse.
    """
    runs = load_runs(storage, job)
    for run in runs:
        if not storage.exists(report_path(job, run.run_id)) or run is runs[-1]:
            _write(storage, report_path(job, run.run_id), "run.html.j2", run_page(job, run, topology))
    page = job_page(job, runs, topology, figures=figures, notes=notes)
    return _write(storage, report_path(job), "job.html.j2", page)


def _write(storage: Storage, path: str, template: str, page: dict[str, object]) -> str:
    html = _templates().get_template(template).render(page)
    storage.put(path, html.encode())
    return path


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        {
            "count": numbers.count_text,
            "parameter": _parameter,
            "bytes": numbers.bytes_text,
            "seconds": numbers.seconds_text,
            "time": numbers.time_text,
        }
    )
    environment.globals.update({"percent": numbers.percent_text, "shares": shares, "in_order": order})
    return environment


def _parameter(value: object) -> str:
    """A parameter of an expectation: a list without brackets and quotes."""
    return ", ".join(str(item) for item in value) if isinstance(value, (list, tuple)) else str(value)
