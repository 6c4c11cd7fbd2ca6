"""Looks at what a run is about to replay of its sources, before it does; what is expected of them the job says.

All records of the slice are looked at, as they stand in the archive, or a sample of them that is the same in every run.
A source without expectations is not read here at all.
"""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import TYPE_CHECKING

from hindstream.spark.expectations.checks import source_suite
from hindstream.spark.phases.audited_records import SourceSlice
from hindstream.spark.phases.examined import examined, failure, warn_of
from hindstream.spark.screening.slices import SlicePart, SliceRecords
from statelib.commits import record_audit
from statelib.commits.archives import open_archive
from statelib.documents.manifests import Audit
from statelib.errors.counted import counted

if TYPE_CHECKING:
    from statelib.documents.manifests import AuditCheck
    from statelib.documents.plans import Plan, SourceTopic
    from statelib.job.job import Job
    from statelib.settings.settings import Settings
    from statelib.storage import Storage

_log = logging.getLogger(__name__)


def check_sources(job: Job, plan: Plan, warehouse: Storage, settings: Settings) -> tuple[AuditCheck, ...]:
    """Checks the sources of a run that has staged nothing yet.

    Returns:
        The results, for the run's audit; all of them let the run go on.

    Raises:
        InputError: A check has failed: nothing is replayed, and the run is in quarantine. The error names a failing
            record, the log and ``audit.json`` more of them.
    """
    slices = [source_slice(job, plan, source, warehouse, settings) for source in plan.sources]
    wanted = [records for records in slices if records.suite.checks]
    if not wanted:
        return ()
    started = time.perf_counter()
    checks = _decided(wanted) if settings.audit_engine == "auto" else None
    page = None
    if checks is None:
        frames = (frame for records in wanted for frame in records.frames())
        checks, page = examined(plan, warehouse, frames, docs=False)
    seconds = time.perf_counter() - started
    if any(check.stops for check in checks):
        audit = Audit(run_id=plan.run_id, success=False, checks=checks, data_docs=page, seconds=seconds)
        raise failure(job, settings, warehouse, plan, record_audit(warehouse, plan, audit))
    warn_of(job.name, checks)
    count, rows = counted(len(checks), "check"), counted(sum(records.rows for records in wanted), "record")
    _log.info("%s: run %s passed %s of its sources (%s) in %.1f s", job.name, plan.run_id, count, rows, seconds)
    return checks


def source_slice(job: Job, plan: Plan, source: SourceTopic, warehouse: Storage, settings: Settings) -> SourceSlice:
    """What a run is about to replay of a source, each partition once, and what is expected of it."""
    archive = open_archive(warehouse, source.topic, source.delta_version).reading_as(source.delta_schema)
    suite = source_suite(job, source.topic, archive.schema)
    ranges = {part.partition: part for task in plan.tasks for part in task.sources if part.topic == source.topic}
    parts = [
        SlicePart(
            partition=partition,
            start_offset=part.start_offset,
            end_offset=part.end_offset,
            rows=part.records,
            files=tuple(archive.files(partition, part.start_offset, part.end_offset)),
        )
        for partition, part in sorted(ranges.items())
        if part.records
    ]
    records = SliceRecords(archive.storage, source.topic, archive.table_schema, archive.schema, suite.share)
    return SourceSlice(suite, archive.schema, settings, parts, records)


def _decided(slices: list[SourceSlice]) -> tuple[AuditCheck, ...] | None:
    """The results if no record can fail a check; None: Great Expectations has to look."""
    found: list[AuditCheck] = []
    looks = []
    for records in slices:
        if (checks := records.decidable()) is None:
            return None
        found += checks.passed
        looks.append(partial(records.has_suspects, checks.screen))
    return None if any(look() for look in looks) else tuple(found)
