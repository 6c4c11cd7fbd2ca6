"""Third phase: looks at what a run has staged, before anything of it becomes visible.

Audited are the records of every sink, the staged files, and the ledger that accounts for every record. A run that fails
is in quarantine: its files are never published, state does not move, and the next plan makes a fresh try.
"""

from __future__ import annotations

import json
import logging
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hindstream.runs import find_replay, open_warehouse
from hindstream.spark.expectations.checks import (
    FILES,
    files_frame,
    files_suite,
    ledger_frame,
    ledger_suite,
    topic_suite,
)
from hindstream.spark.expectations.flat_tables import PandasFrame, flat_schema, pandas_frame, read_flat, spark_frame
from hindstream.spark.phases import report
from hindstream.spark.phases.command import phase_main
from hindstream.spark.phases.task_work import stages_of
from hindstream.spark.screening.scan import Scan
from hindstream.spark.screening.screen import screen_of
from hindstream.spark.screening.suspects import find_suspects
from hindstream.spark.session.session import spark_session
from hindstream.spark.validation.data_docs import keep_site
from statelib.commits import CommitLog, JobLayout, Runs, read_staged, reconcile, record_audit
from statelib.commits.archives import open_archive_if_present
from statelib.documents.manifests import Audit, AuditCheck
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError, CorruptedDataError, HindstreamError, InputError
from statelib.storage.transfers import look_ahead
from statelib.topics.schema import topic_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from hindstream.spark.expectations.checks import Suite
    from hindstream.spark.expectations.flat_tables import Frame
    from hindstream.spark.validation.validator import Validated, Validator
    from statelib.documents.manifests import Plan, Staged
    from statelib.job.job import Job
    from statelib.settings.settings import Settings
    from statelib.storage import Storage
    from statelib.topics.files import ArchiveFile

_log = logging.getLogger(__name__)

_OF_SQL = ("unexpected_rows_expectation",)
"""Expectations that pandas has no answer to."""

SCREEN_FROM_ROWS = 200_000
"""``audit_engine = "auto"``: a sink with more staged records than this is screened first, as Great Expectations takes
seconds for each million rows, on any engine."""

SCREEN_ON_SPARK_FROM_ROWS = 10_000_000
SCREEN_ON_SPARK_FROM_BYTES = 256 << 20
"""A sink with more staged records or bytes is screened on Spark, any other in this process: 20 ns a row, or up to 150
where a check needs hashes, are less than the half second of a core that a stage of Spark costs."""


def run(job: Job, settings: Settings, run_id: str | None = None) -> Audit:
    """Audits a run that has staged its result; the outcome is stored as the run's ``audit.json``.

    A run that has been audited already is not audited again: the outcome that stands counts.

    Raises:
        InputError: A check has failed; the failing rows are in the log and in ``audit.json``.
        ConfigurationError: The run has staged nothing.
    """
    warehouse = open_warehouse(settings)
    plan = find_replay(warehouse, job.name, run_id)
    audit = Runs(warehouse, job.name).audit(plan.run_id)
    if audit is None:
        staged = read_staged(warehouse, plan)
        if staged is None:
            next_step = "replay it first: hindstream replay FILE.py:NAME"
            raise ConfigurationError("the run has staged nothing", job=job.name, run=plan.run_id, next_step=next_step)
        audit = record_audit(warehouse, plan, _audit(job, settings, warehouse, plan, staged))
    if not audit.success:
        raise _failure(job, warehouse, audit, _page_of_run(job, settings, audit))
    checks = counted(len(audit.checks), "check")
    _log.info("%s: run %s passed %s in %.1f s", job.name, audit.run_id, checks, audit.seconds)
    return audit


def _audit(job: Job, settings: Settings, warehouse: Storage, plan: Plan, staged: Staged) -> Audit:
    from hindstream.spark.validation.validator import Validator  # noqa: PLC0415  (importing Great Expectations takes two seconds)

    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="hindstream-audit-") as name:
        site = Path(name).resolve()
        validator = Validator(site)
        validated: list[Validated] = []
        damage: list[AuditCheck] = []
        try:
            for suite, frame in _audited(job, settings, warehouse, plan, staged):
                validated.append(validator.validate(suite, frame, run=plan.run_id))
        except CorruptedDataError as error:
            damage = [
                AuditCheck(topic=FILES, expectation="can_be_read", parameters={}, success=False, error=str(error))
            ]
        validator.write_docs()
        page = _page(validator, validated)
        folder = keep_site(warehouse, job.name, plan.run_id, site)
    checks = (*(check for part in validated for check in part.checks), *damage)
    return Audit(
        run_id=plan.run_id,
        success=all(check.success for check in checks),
        checks=checks,
        data_docs=f"{folder}/{page.relative_to(site).as_posix()}" if page else None,
        seconds=time.perf_counter() - started,
    )


def _audited(
    job: Job, settings: Settings, warehouse: Storage, plan: Plan, staged: Staged
) -> Iterator[tuple[Suite, Frame]]:
    """Each table of the run with its suite; a table is released before the next is made."""
    schemas = _schemas(job, settings, warehouse, plan, staged)
    sinks = [sink for outcome in staged.tasks for sink in outcome.sinks]
    for topic in job.topology.sink_topics:
        files = [sink.file for sink in sinks if sink.topic == topic]
        yield from _audited_topic(settings, warehouse, topic_suite(job, topic, schemas[topic]), schemas[topic], files)
    before = CommitLog(warehouse, job.name).read(plan.commit - 1).tasks if plan.commit > 1 else {}
    yield files_suite(), PandasFrame(files_frame(warehouse, sinks, schemas, before))
    yield ledger_suite(), PandasFrame(ledger_frame(reconcile(job.topology, plan, staged)))


def _audited_topic(
    settings: Settings, warehouse: Storage, suite: Suite, schema: pa.Schema, files: Sequence[ArchiveFile]
) -> Iterator[tuple[Suite, Frame]]:
    """The checks of a topic with the rows that they need: see ``audit_engine`` of `Settings`."""
    topic, rows, engine = suite.name, sum(file.rows for file in files), settings.audit_engine
    if engine == "auto":
        engine = "screened" if rows > SCREEN_FROM_ROWS else "pandas"
    on_spark = suite
    if engine == "pandas":
        of_sql = [check for check in suite.checks if check.type in _OF_SQL]
        others = [check for check in suite.checks if check.type not in _OF_SQL]
        yield replace(suite, checks=others), pandas_frame(_rows_of(warehouse, topic, schema, files), schema)
        on_spark = replace(suite, checks=of_sql, part="sql")
    if engine == "screened":
        screen, screened, others = screen_of(suite.checks, flat_schema(schema))
        is_large = (
            rows > SCREEN_ON_SPARK_FROM_ROWS or sum(file.size_bytes for file in files) > SCREEN_ON_SPARK_FROM_BYTES
        )
        spark = spark_session(settings) if is_large else None
        suspects = find_suspects(Scan(warehouse, topic, schema, screen), files, spark)
        if suspects is not None:
            note = f"Run over {len(suspects):,} of {counted(rows, 'row')}: those that can fail one of these checks."
            yield replace(suite, checks=screened, note=note), pandas_frame([suspects], schema)
            on_spark = replace(suite, checks=others, part="all-rows")
    if on_spark.checks:
        frame = spark_frame(spark_session(settings), warehouse, topic, schema, files)
        yield on_spark, frame
        frame.data.unpersist()


def _rows_of(warehouse: Storage, topic: str, schema: pa.Schema, files: Sequence[ArchiveFile]) -> Iterator[pa.Table]:
    """All records of small files, in order."""

    def read(file: ArchiveFile) -> list[pa.Table]:
        return list(read_flat(warehouse, topic, schema, file))

    for tables in look_ahead(read, files, warehouse.requests_at_once):
        yield from tables


def _schemas(job: Job, settings: Settings, warehouse: Storage, plan: Plan, staged: Staged) -> dict[str, pa.Schema]:
    """By topic, the columns of its files: those of its archive, or what the topology gives if there is none yet."""
    types = stages_of(job, plan, warehouse, settings).types
    topics = {*job.topology.sink_topics, *(sink.topic for outcome in staged.tasks for sink in outcome.sinks)}
    schemas = {}
    for topic in topics:
        archive = open_archive_if_present(warehouse, topic)
        if archive is not None:
            schemas[topic] = archive.schema
        elif topic in types:
            schemas[topic] = topic_schema(types[topic].field("key").type, types[topic].field("value").type)
    return schemas


def _page(validator: Validator, validated: Sequence[Validated]) -> Path | None:
    """The page to look at: that of the first table that failed, else of the first."""
    failed = [part for part in validated if not all(check.success for check in part.checks)]
    shown = next(iter(failed or validated), None)
    return validator.page(shown) if shown else None


def _page_of_run(job: Job, settings: Settings, audit: Audit) -> str | None:
    """Writes the report of a run that goes no further: the phase that does it for others will not come."""
    try:
        return report.run(job, settings, audit.run_id)
    except (HindstreamError, ImportError) as error:  # the audit's failure is what has to be said
        _log.warning("%s: the report of run %s could not be written: %s", job.name, audit.run_id, error)
        return None


def _failure(job: Job, warehouse: Storage, audit: Audit, page_of_run: str | None) -> InputError:
    """Logs every failed check with its failing rows, and makes the error of the phase."""
    failed = [check for check in audit.checks if not check.success]
    for check in failed:
        _log.error("%s", describe(check))
    root = JobLayout(job.name).root
    page = warehouse.uri(f"{root}/{audit.data_docs}") if audit.data_docs else None
    return InputError(
        f"the audit failed, {len(failed)} of {counted(len(audit.checks), 'check')}: {summary(failed[0])}",
        job=job.name,
        run=audit.run_id,
        report=page_of_run,
        data_docs=page,
        next_step="fix the cause and run the same slice again: this run stays in quarantine, the state has not changed"
        " (docs/runbooks/failed-audit.md)",
    )


def summary(check: AuditCheck) -> str:
    """A check in one line."""
    parameters = ", ".join(f"{name}={json.dumps(value)}" for name, value in check.parameters.items())
    text = f"{check.topic}: {check.expectation}({parameters})"
    if check.error:
        return f"{text} could not be evaluated: {check.error}"
    if check.unexpected_count:
        return f"{text} has {counted(check.unexpected_count, 'unexpected row')}"
    return f"{text} observed {json.dumps(check.observed)}"


def describe(check: AuditCheck) -> str:
    """A failed check with its failing rows, one a line."""
    rows = [f"    {json.dumps(row)}" for row in check.unexpected_rows]
    return "\n".join([summary(check), *rows])


def main(argv: Sequence[str] | None = None) -> None:
    """The command line of ``spark_jobs/audit.py``: ``--job FILE.py:NAME [--run RUN_ID] [--SETTING VALUE ...]``."""
    phase_main(run, argv, description="Audits what a run has staged.")
