"""Keeps the pages of Data Docs that audits make: a site a run.

::

    jobs/<job>/great_expectations/<run id>/index.html                            what the run has validated
                                          /expectations/<suite>.html             what was expected
                                          /validations/<suite>/**/*.html         what was found

Great Expectations' own way, one site for ever, reads all former results for its index after each suite, and removes
the pages of which it has no results. So each audit builds a site of its own, whose cost does not grow with the former
runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hindstream.spark.validation.offline_docs import offline
from statelib.commits import JobLayout
from statelib.storage.transfers import in_parallel

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.storage import Storage


def page_of_passed(run_id: str) -> str:
    """Where a run's Data Docs begin, below the job's folder."""
    return f"{_folder(run_id)}/index.html"


def _folder(run_id: str) -> str:
    return f"great_expectations/{run_id}"


def site_folder(job: str, run_id: str) -> str:
    """Where a run's Data Docs are in the warehouse."""
    return f"{JobLayout(job).root}/{_folder(run_id)}"


_UNUSED = "static"
"""4 MB of images and fonts that no page shows."""


def keep_site(warehouse: Storage, job: str, run_id: str, site: Path) -> str:
    """Keeps the pages of ``site``, a local folder that Great Expectations has built, as those of a run.

    They need no network: see `hindstream.spark.validation.offline_docs`.

    Returns:
        The site's folder, below the job's.
    """

    def upload(file: Path) -> None:
        path = f"{site_folder(job, run_id)}/{file.as_posix()}"
        if file.suffix == ".html":
            warehouse.put(path, offline((site / file).read_text(encoding="utf-8")).encode())
        else:
            warehouse.upload(site / file, path)

    files = sorted(path.relative_to(site) for path in site.rglob("*") if path.is_file())
    in_parallel(upload, [file for file in files if file.parts[0] != _UNUSED], warehouse.requests_at_once)
    return _folder(run_id)
