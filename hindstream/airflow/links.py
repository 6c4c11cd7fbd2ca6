"""Links from a task in Airflow to the pages of its run: where a web server shows the warehouse, or in Airflow itself.

The address of a run's report ends with the report's path in the warehouse, wherever it is shown. By that,
`hindstream.airflow.page` knows the job and the run of a task.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from statelib.job.job import Job
    from statelib.settings.settings import Settings

PREFIX = "hindstream"
"""Below Airflow's own address: where `hindstream.airflow.page` is."""

DAG_TAB = "hindstream"
RUN_TAB = "hindstream_run"
"""Of a DAG and of a run of it: the tabs in Airflow's addresses."""

REPORT_KEY = "hindstream_run_report"
"""The XCom with the address of a run's report."""

_JOBS = "jobs/"
_REPORT = re.compile(r"(?:.*[/#])?jobs/(?P<job>[A-Za-z0-9._=+@,:~-]+)/reports/(?P<run>[\w-]+)\.html")


class _PageLink(BaseOperatorLink):
    """A page of the run: the operator has found it when it ends, even if it fails."""

    @property
    def xcom_key(self) -> str:
        """The key under which Airflow keeps the address."""
        return f"hindstream_{self.name.lower().replace(' ', '_')}"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """The address; empty: there is no such page."""
        page = str(operator.pages.get(self.name, ""))
        return self._in_airflow(page, ti_key) if page.startswith(_JOBS) else page

    def _in_airflow(self, page: str, ti_key: Any) -> str:
        """Without a slash before it, an address begins where Airflow's pages do, which may be below a prefix."""
        return f"{PREFIX}/{shown_below(ti_key.dag_id, ti_key.run_id, ti_key.task_id, ti_key.map_index)}/{page}"


class RunReportLink(_PageLink):
    """The report of the run: in Airflow, the tab of the DAG run."""

    name = "Run report"

    def _in_airflow(self, page: str, ti_key: Any) -> str:
        return f"dags/{_part(ti_key.dag_id)}/runs/{_part(ti_key.run_id)}/plugin/{RUN_TAB}#{page}"


class DataDocsLink(_PageLink):
    """Great Expectations' page of the run's audit."""

    name = "Data Docs"


def pages(job: Job, settings: Settings, run_id: str | None) -> dict[str, str]:
    """Each page that a run has, by the name of its link: its address, or its path in the warehouse.

    Args:
        job: The job.
        settings: ``web_url`` is where the warehouse is shown; None: in Airflow, hence the paths.
        run_id: The run; None: there is none.
    """
    from hindstream.report.layout import report_path  # noqa: PLC0415 - parsing a DAG file must stay quick
    from hindstream.runs import open_warehouse  # noqa: PLC0415
    from statelib.commits import Runs  # noqa: PLC0415
    from statelib.commits.layout import JobLayout  # noqa: PLC0415

    if run_id is None:
        return {}
    root = "" if settings.web_url is None else f"{settings.web_url.rstrip('/')}/"
    found = {RunReportLink.name: f"{root}{report_path(job.name, run_id)}"}
    audit = Runs(open_warehouse(settings), job.name).audit(run_id)
    if audit is not None and audit.data_docs is not None:
        found[DataDocsLink.name] = f"{root}{JobLayout(job.name).root}/{audit.data_docs}"
    return found


def job_and_run(address: object) -> tuple[str, str] | None:
    """The job and the run of the address of a report; None: it is none."""
    match = _REPORT.fullmatch(str(address))
    return None if match is None or match["job"] in {".", ".."} else (match["job"], match["run"])


def shown_below(dag_id: str, run_id: str, task_id: str, map_index: int | None) -> str:
    """Where the warehouse of a task instance is shown, below `PREFIX`."""
    return f"dags/{_part(dag_id)}/runs/{_part(run_id)}/tasks/{_part(task_id)}/{-1 if map_index is None else map_index}"


def _part(name: str) -> str:
    return quote(name, safe="")
