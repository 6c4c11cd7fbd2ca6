"""All phases of one slice, in this process: what ``hindstream run`` does, without Airflow."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from hindstream.lineage.reported import all_reported
from hindstream.report.layout import report_path
from hindstream.runs import open_warehouse
from hindstream.spark.phases import audit, commit, maintain, plan, publish, replay, report
from hindstream.spark.phases.command import phase_main
from statelib.commits import CommitLog, NothingToDo

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from statelib.commits import Maintained, Published
    from statelib.commits.sources.checks import EndOffsets
    from statelib.documents.manifests import Audit, Commit, Staged
    from statelib.documents.plans import Leeway, Plan
    from statelib.job.job import Job
    from statelib.settings.settings import Settings


_log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SliceResult:
    """What became of a slice.

    Attributes:
        seconds: By phase.
        report: Where the run's report is; None: none was wanted.
    """

    plan: Plan
    staged: Staged
    audit: Audit
    commit: Commit
    published: tuple[Published, ...]
    maintained: Maintained
    report: str | None
    seconds: dict[str, float]


@dataclass(slots=True)
class _Stopwatch:
    seconds: dict[str, float] = field(default_factory=dict)

    def time(self, phase: str, do: Callable[[], T]) -> T:
        started = time.perf_counter()
        try:
            return do()
        finally:
            self.seconds[phase] = time.perf_counter() - started


@all_reported
def run_slice(
    job: Job,
    settings: Settings,
    until_ms: int | None = None,
    *,
    end_offsets: EndOffsets | None = None,
    leeway: Leeway | None = None,
    with_report: bool = True,
) -> SliceResult | NothingToDo:
    """Plans, replays, audits, commits, publishes, maintains and reports one slice.

    Args:
        job: The job.
        settings: See `Settings`.
        until_ms: End of the slice in event time; None: ``settings.until``, which may be none too: all there is.
        end_offsets: The slice ends before these offsets instead: see `statelib.commits.run.plan`.
        leeway: What it lets in that the topology does not: see `statelib.topology.leeway`.
        with_report: Whether to write the reports: those of a job that is dropped at once are read by nobody.

    Returns:
        What was done, or why there was nothing to do.

    Raises:
        HindstreamError: That of the phase that failed; running the slice again goes on from there.
    """
    if until_ms is not None:
        settings = settings.model_copy(update={"until": until_ms})
    watch = _Stopwatch()
    planned = watch.time("plan", lambda: plan.run(job, settings, end_offsets=end_offsets, leeway=leeway))
    if isinstance(planned, NothingToDo):
        _finish(job, settings, planned.head, with_report=with_report)
        return planned
    run_id = planned.run_id
    return SliceResult(
        plan=planned,
        staged=watch.time("replay", lambda: replay.run(job, settings, run_id)),
        audit=watch.time("audit", lambda: audit.run(job, settings, run_id)),
        commit=watch.time("commit", lambda: commit.run(job, settings, run_id)),
        published=watch.time("publish", lambda: publish.run(job, settings, run_id)),
        maintained=watch.time("maintain", lambda: maintain.run(job, settings, run_id)),
        report=watch.time("report", lambda: report.run(job, settings, run_id)) if with_report else None,
        seconds=watch.seconds,
    )


def _finish(job: Job, settings: Settings, head: int, *, with_report: bool) -> None:
    """Does what the newest commit has left: its run has failed behind it, or it was made by no run, as a rollback is.

    The plan has seen to it that the sinks' archives lack nothing. Topics of Kafka and tables of Iceberg may.
    """
    warehouse = open_warehouse(settings)
    made = CommitLog(warehouse, job.name).read(head) if head else None
    if made is None or warehouse.exists(report_path(job.name, made.run_id)):
        return
    publish.run(job, settings, made.run_id)
    if made.instead_of_replay:
        return
    maintain.run(job, settings, made.run_id)
    if with_report:
        path = report.write(job, settings, made.run_id)
        _log.info("%s: the report of run %s is %s", job.name, made.run_id, path)


def main(argv: Sequence[str] | None = None) -> None:
    """The command line of ``spark_jobs/pipeline.py``: ``--job FILE.py:NAME [--until TIME] [--SETTING VALUE ...]``."""
    phase_main(lambda job, settings, _: run_slice(job, settings), argv, description="Runs one slice, all phases.")
