"""HTML reports: one page a run, one for the job. A page is one file that needs neither network nor script.

Begin with `write`; `documents` reads what a report is made of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hindstream.lazy import offers

if TYPE_CHECKING:
    from hindstream.report.charts import Figure
    from hindstream.report.write import write_job_report, write_run_report

__all__ = ["Figure", "write_job_report", "write_run_report"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = offers(
        __name__,
        {
            "Figure": "hindstream.report.charts:Figure",
            "write_job_report": "hindstream.report.write:write_job_report",
            "write_run_report": "hindstream.report.write:write_run_report",
        },
    )
