"""Third phase: looks at what a run has staged, before anything of it becomes visible.

Audited are the records of every sink, the staged files, and the ledger that accounts for every record. What the checks
of the sources have said before the replay (`hindstream.spark.phases.source_checks`) is part of the outcome. A run that
fails is in quarantine: its files are never published, state does not move, and the next plan makes a fresh try.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from hindstream.lineage.reported import reported
from hindstream.runs import find_replay, open_warehouse
from hindstream.spark.phases.audited_tables import AuditedTables
from hindstream.spark.phases.command import phase_main
from hindstream.spark.phases.examined import examined, failure, warn_of
from hindstream.spark.validation.data_docs import page_of_passed
from statelib.commits import Runs, read_staged, record_audit
from statelib.documents.manifests import Audit, AuditCheck
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError, CorruptedDataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.job.job import Job
    from statelib.settings.settings import Settings

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
        raise failure(job, settings, warehouse, plan, audit)
    told = {source.topic for source in plan.sources}  # by the replay
    warn_of(job.name, [check for check in audit.warnings if check.topic not in told])
    checks = counted(len(audit.checks), "check")
    if audit.warnings:
        checks = f"{checks} with {counted(len(audit.warnings), 'warning')}"
    _log.info("%s: run %s passed %s in %.1f s", job.name, audit.run_id, checks, audit.seconds)
    return audit


def _audit(tables: AuditedTables) -> Audit:
    started = time.perf_counter()
    docs, known = tables.settings.data_docs != "failed", tables.staged.source_checks
    checks = _decided(tables) if tables.settings.audit_engine == "auto" else None
    if checks is None:
        checks, page = examined(tables.plan, tables.warehouse, tables.frames(), known, docs=docs)
    else:
        checks, page = (*known, *checks), page_of_passed(tables.plan.run_id) if docs else None
    return Audit(
        run_id=tables.plan.run_id,
        success=not any(check.stops for check in checks),
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


def main(argv: Sequence[str] | None = None) -> None:
    """The command line of ``spark_jobs/audit.py``: ``--job FILE.py:NAME [--run RUN_ID] [--SETTING VALUE ...]``."""
    phase_main(run, argv, description="Audits what a run has staged.")
