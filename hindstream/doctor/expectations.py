"""What a job expects of its sinks: whether it can be asked of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hindstream.doctor.finding import Finding
from hindstream.runs import open_warehouse
from hindstream.spark.expectations.plan_time import check_expectations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statelib.job.job import Job
    from statelib.settings.settings import Settings


def check_job_expectations(job: Job, settings: Settings) -> Iterator[Finding]:
    """Whether there are such expectations, with such parameters, and such columns."""
    count = check_expectations(job, open_warehouse(settings), settings.semantics)
    yield Finding("expectations", "ok", f"{count} can be asked" if count else "the job has none of its own")
