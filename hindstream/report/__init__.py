"""HTML reports: one page a run, one for the job. A page is one file that needs neither network nor script.

Begin with `write`; `documents` reads what a report is made of.
"""

from hindstream.report.charts import Figure
from hindstream.report.write import write_job_report, write_run_report

__all__ = ["Figure", "write_job_report", "write_run_report"]
