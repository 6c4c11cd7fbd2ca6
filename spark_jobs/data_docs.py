"""Keeps the pages of Data Docs that audits make: one site a job.

::

    jobs/<job>/great_expectations/index.html                                   what the newest run validated
                                 /expectations/<suite>.html                    what was expected then
                                 /validations/<suite>/<run id>/<time>/*.html   a page a validation, of every run
                                 /static/                                      styles, fonts and images of all pages

Great Expectations removes from a site what it has no results of, and reads all former results for the index. So each
audit builds a site of its own, of one run, whose pages are added here: its cost does not grow with the former runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.commits import JobLayout

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.storage import Storage

FOLDER = "great_expectations"
"""Of the site, below the job's."""

_STATIC = "static"


def add_pages(warehouse: Storage, job: str, site: Path) -> None:
    """Adds the pages of ``site``, a local folder with those of one run, to the job's.

    Args:
        warehouse: Root of all durable data.
        job: The job's name.
        site: As Great Expectations builds it.
    """
    root = f"{JobLayout(job).root}/{FOLDER}"
    stored = {entry.path: entry.size_bytes for entry in warehouse.list(f"{root}/{_STATIC}")}
    for file in sorted(path for path in site.rglob("*") if path.is_file()):
        path = f"{root}/{file.relative_to(site).as_posix()}"
        if stored.get(path) != file.stat().st_size:  # what is static is the same in every run
            warehouse.upload(file, path)
