"""Writes the Data Docs of audits that have passed without Great Expectations: from their results, once they count.

Nothing waits for them. The report phase writes those of its run, or, with ``data_docs = "beside"``, a process of its
own those of all runs that have none yet.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from hindstream.runs import open_warehouse
from hindstream.spark.validation.data_docs import keep_site, site_folder
from statelib.commits import CommitLog, JobLayout, Runs
from statelib.commits.dropped import delete_if_dropped
from statelib.errors.kinds import ConfigurationError
from statelib.settings.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.documents.manifests import Audit
    from statelib.storage import Storage

_log = logging.getLogger(__name__)

_NICENESS = 10

LOG = "data-docs.log"
"""In ``state_dir``: what processes beside runs have to say."""


def write_missing(job: str, settings: Settings) -> list[str]:
    """Writes the Data Docs of the newest runs that have none yet, back to one that has.

    Returns:
        The runs.

    Raises:
        ConfigurationError: There is no such job.
        RetryableError: The store did not answer.
    """
    warehouse = open_warehouse(settings)
    if CommitLog(warehouse, job).head() is None and next(Runs(warehouse, job).attempts(1), None) is None:
        step = "check --warehouse and the job's name"
        raise ConfigurationError("the job has no runs", job=job, warehouse=warehouse.uri(""), next_step=step)
    written = []
    for audit in _without_docs(warehouse, job):
        _write(warehouse, job, audit)
        written.append(audit.run_id)
        _log.info("%s: the Data Docs of run %s are written", job, audit.run_id)
    return written


def _without_docs(warehouse: Storage, job: str) -> Iterator[Audit]:
    runs, head = Runs(warehouse, job), CommitLog(warehouse, job).head_number()
    for commit in range(head + 1, 0, -1):
        for plan in reversed(list(runs.attempts(commit))):
            audit = runs.audit(plan.run_id)
            if audit is None or not audit.success or audit.data_docs is None:
                continue
            if _has_docs(warehouse, job, audit):
                return
            yield audit


def _has_docs(warehouse: Storage, job: str, audit: Audit) -> bool:
    """Whether the page is there that an audit names; if it names none, none is missing."""
    return audit.data_docs is None or warehouse.exists(f"{JobLayout(job).root}/{audit.data_docs}")


def write_if_missing(warehouse: Storage, job: str, audit: Audit) -> None:
    """Writes the Data Docs of an audit that has passed, if the audit names a page that is not there."""
    if not _has_docs(warehouse, job, audit):
        _write(warehouse, job, audit)


def _write(warehouse: Storage, job: str, audit: Audit) -> None:
    from hindstream.spark.validation.validator import Validator  # noqa: PLC0415 - Great Expectations: two seconds

    with tempfile.TemporaryDirectory(prefix="hindstream-docs-") as name:
        site = Path(name).resolve()
        validator = Validator(site)
        for table, checks in groupby(audit.checks, attrgetter("topic")):
            validator.take(table, list(checks), run=audit.run_id)
        validator.write_docs()
        keep_site(warehouse, job, audit.run_id, site)
    delete_if_dropped(warehouse, job, site_folder(job, audit.run_id))


def beside_by_default(settings: Settings) -> Settings:
    """The settings of who waits for a run: Data Docs are written beside it, unless it is said who writes them."""
    return (
        settings.model_copy(update={"data_docs": "beside"}) if settings.origin("data_docs") == "default" else settings
    )


def write_beside(job: str, settings: Settings) -> None:
    """Starts a process that does `write_missing`, if the settings say so, and does not wait for it."""
    if settings.data_docs != "beside":
        return
    folder = settings.local_state_dir
    command = [sys.executable, "-P", "-m", "hindstream.spark.phases.data_docs", job]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / LOG).open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 - ourselves
                command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
            )
        assert process.stdin is not None  # noqa: S101 - asked for above
        with process.stdin as given:
            given.write(settings.model_dump_json().encode())
        Thread(target=process.wait, name="data-docs", daemon=True).start()  # a notebook keeps no zombies
    except OSError as error:
        _log.warning("%s: the Data Docs are not written: %s. Next: hindstream data-docs %s", job, error, job)


def main() -> None:
    """The process beside a run: the job's name is its argument, the settings are its standard input."""
    os.nice(_NICENESS)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    (job,) = sys.argv[1:]
    write_missing(job, Settings.model_validate_json(sys.stdin.buffer.read()))


if __name__ == "__main__":
    main()
