"""What a run would do: what it would read, whether its expectations can be asked, how long it may take. No Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hindstream.spark.expectations.plan_time import expectation_problems
from hindstream.spark.phases.plan import planner
from statelib.commits import CommitLog, NothingToDo, Runs, published_through
from statelib.commits.archives import open_archive
from statelib.commits.run_times import estimated_time
from statelib.storage.storage import existing_storage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from statelib.commits.run_times import Estimate
    from statelib.documents.plans import Plan, SourceRange
    from statelib.errors.kinds import ConfigurationError
    from statelib.job.job import Job
    from statelib.settings.settings import Settings
    from statelib.storage import Storage


@dataclass(frozen=True, slots=True)
class ToRead:
    """What a run would read of one partition of a source.

    ``files`` and ``size_bytes`` are those of all files that hold such records, and maybe others.
    """

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    records: int
    files: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Preview:
    """What a run would do.

    Attributes:
        planned: The plan, which is not stored unless the run is a former one that would be resumed; or why there would
            be none.
        is_resumed: Whether the run is open already.
        reads: By source and partition; partitions with nothing new are left out.
        partitions: How many partitions the sources have.
        expectations: How many are declared.
        problems: Expectations that cannot be asked of their topics: each with its message and the way on.
        unpublished: The first commit that the run would publish before; None: all are published.
        estimate: How long replay and audit may take; None: there is no run to tell by.
    """

    planned: Plan | NothingToDo
    is_resumed: bool
    reads: tuple[ToRead, ...]
    partitions: int
    expectations: int
    problems: tuple[ConfigurationError, ...]
    unpublished: int | None
    estimate: Estimate | None


def preview(job: Job, settings: Settings) -> Preview:
    """Plans as `hindstream.spark.phases.plan` does, and stores nothing.

    Raises:
        HindstreamError: What the plan of the run would raise, except for expectations.
    """
    warehouse = existing_storage(settings.warehouse, settings.store_options)
    problems = tuple(expectation_problems(job, warehouse, settings.semantics))
    make_plan = planner(job, settings, warehouse)
    planned = make_plan(until_ms=settings.until_ms, end_of_input=settings.end_of_input, dry_run=True)
    head = CommitLog(warehouse, job.name).head_number()
    through = published_through(warehouse, job.name)
    is_nothing = isinstance(planned, NothingToDo)
    ranges = () if isinstance(planned, NothingToDo) else _ranges(planned)
    return Preview(
        planned=planned,
        is_resumed=not isinstance(planned, NothingToDo) and Runs(warehouse, job.name).plan(planned.run_id) is not None,
        reads=_reads(warehouse, planned, ranges),
        partitions=len(ranges),
        expectations=sum(map(len, job.expectations.values())),
        problems=problems,
        unpublished=through + 1 if through < head else None,
        estimate=None if is_nothing else estimated_time(warehouse, job.name, sum(part.records for part in ranges)),
    )


def _ranges(planned: Plan) -> list[SourceRange]:
    """What the run takes up, each partition once: a global table's are read by every task."""
    found = {(part.topic, part.partition): part for task in planned.tasks for part in task.sources}
    return [part for _, part in sorted(found.items())]


def _reads(warehouse: Storage, planned: Plan | NothingToDo, ranges: Iterable[SourceRange]) -> tuple[ToRead, ...]:
    if isinstance(planned, NothingToDo):
        return ()
    archives = {source.topic: open_archive(warehouse, source.topic, source.delta_version) for source in planned.sources}
    reads = []
    for part in ranges:
        if not part.records:
            continue
        files = archives[part.topic].files(part.partition, part.start_offset, part.end_offset)
        reads.append(
            ToRead(
                topic=part.topic,
                partition=part.partition,
                start_offset=part.start_offset,
                end_offset=part.end_offset,
                records=part.records,
                files=len(files),
                size_bytes=sum(file.size_bytes for file in files),
            )
        )
    return tuple(reads)
