"""Links from a task in Airflow to the pages of its run, where a web server shows the warehouse (``web_url``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from statelib.job.job import Job
    from statelib.settings.settings import Settings


class _PageLink(BaseOperatorLink):
    """A page of the run: the operator has found its address when it ends, even if it fails."""

    @property
    def xcom_key(self) -> str:
        """The key under which Airflow keeps the address."""
        return f"hindstream_{self.name.lower().replace(' ', '_')}"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ARG002 - Airflow's own signature
        """The address; empty: there is no such page, or no ``web_url`` is set."""
        return str(operator.pages.get(self.name, ""))


class RunReportLink(_PageLink):
    """The report of the run."""

    name = "Run report"


class DataDocsLink(_PageLink):
    """Great Expectations' page of the run's audit."""

    name = "Data Docs"


def pages(job: Job, settings: Settings, run_id: str | None) -> dict[str, str]:
    """The address of each page that a run has, by the name of its link.

    Args:
        job: The job.
        settings: ``web_url`` is where the warehouse is shown.
        run_id: The run; None: there is none.
    """
    from hindstream.report.layout import report_path  # noqa: PLC0415 - parsing a DAG file must stay quick
    from hindstream.runs import open_warehouse  # noqa: PLC0415
    from statelib.commits import Runs  # noqa: PLC0415
    from statelib.commits.layout import JobLayout  # noqa: PLC0415

    if settings.web_url is None or run_id is None:
        return {}
    root = settings.web_url.rstrip("/")
    found = {RunReportLink.name: f"{root}/{report_path(job.name, run_id)}"}
    audit = Runs(open_warehouse(settings), job.name).audit(run_id)
    if audit is not None and audit.data_docs is not None:
        found[DataDocsLink.name] = f"{root}/{JobLayout(job.name).root}/{audit.data_docs}"
    return found
