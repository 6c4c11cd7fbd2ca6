"""Third phase: looks at what a run has staged, before anything of it becomes visible.

Audited are the records of every sink, the staged files, and the ledger that accounts for every record. A run that fails
is in quarantine: its files are never published, state does not move, and the next plan makes a fresh try.
"""

from __future__ import annotations

import json
import logging
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from hindstream.lineage.reported import reported
from hindstream.runs import find_replay, open_warehouse
from hindstream.spark.expectations.checks import FILES
from hindstream.spark.phases import report
from hindstream.spark.phases.audited_tables import AuditedTables
from hindstream.spark.phases.command import phase_main
from hindstream.spark.validation.data_docs import keep_site, page_of_passed
from statelib.commits import JobLayout, Runs, read_staged, record_audit
from statelib.documents.manifests import Audit, AuditCheck
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError, CorruptedDataError, HindstreamError, InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hindstream.spark.validation.validator import Validated, Validator
    from statelib.job.job import Job
    from statelib.settings.settings import Settings
    from statelib.storage import Storage

_log = logging.getLogger(__name__)


@reported("audit")
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
        audit = record_audit(warehouse, plan, _audit(AuditedTables(job, settings, warehouse, plan, staged)))
    if not audit.success:
        raise _failure(job, warehouse, audit, _page_of_run(job, settings, audit))
    checks = counted(len(audit.checks), "check")
    _log.info("%s: run %s passed %s in %.1f s", job.name, audit.run_id, checks, audit.seconds)
    return audit


def _audit(tables: AuditedTables) -> Audit:
    started = time.perf_counter()
    checks = _decided(tables) if tables.settings.audit_engine == "auto" else None
    if checks is None:
        checks, page = _examined(tables)
    else:
        page = None if tables.settings.data_docs == "failed" else page_of_passed(tables.plan.run_id)
    return Audit(
        run_id=tables.plan.run_id,
        success=all(check.success for check in checks),
        checks=checks,
        data_docs=page,
        seconds=time.perf_counter() - started,
    )


def _decided(tables: AuditedTables) -> tuple[AuditCheck, ...] | None:
    """The verdicts that need no Great Expectations, whose import takes longer than most audits."""
    try:
        return tables.decided()
    except CorruptedDataError:
        return None  # one check among others is to say so


def _examined(tables: AuditedTables) -> tuple[tuple[AuditCheck, ...], str | None]:
    """The results of Great Expectations, and the page to look at in its Data Docs."""
    from hindstream.spark.validation.validator import Validator  # noqa: PLC0415 - Great Expectations: two seconds

    with tempfile.TemporaryDirectory(prefix="hindstream-audit-") as name:
        site = Path(name).resolve()
        validator = Validator(site)
        validated: list[Validated] = []
        damage: list[AuditCheck] = []
        try:
            for suite, frame in tables.frames():
                validated.append(validator.validate(suite, frame, run=tables.plan.run_id))
        except CorruptedDataError as error:
            damage = [
                AuditCheck(topic=FILES, expectation="can_be_read", parameters={}, success=False, error=str(error))
            ]
        checks = (*(check for part in validated for check in part.checks), *damage)
        if tables.settings.data_docs == "failed" and all(check.success for check in checks):
            return checks, None
        validator.write_docs()
        page = _page(validator, validated)
        folder = keep_site(tables.warehouse, tables.job.name, tables.plan.run_id, site)
    return checks, f"{folder}/{page.relative_to(site).as_posix()}" if page else None


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
