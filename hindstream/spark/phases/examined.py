"""What Great Expectations says of the tables of an audit, its pages, and the error of a run that has failed."""

from __future__ import annotations

import json
import logging
import tempfile
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from hindstream.spark.expectations.checks import FILES
from hindstream.spark.phases import report
from hindstream.spark.validation.data_docs import keep_site
from statelib.commits import JobLayout
from statelib.documents.manifests import AuditCheck
from statelib.errors.counted import counted
from statelib.errors.kinds import CorruptedDataError, HindstreamError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hindstream.spark.expectations.checks import Suite
    from hindstream.spark.expectations.flat_tables import Frame
    from hindstream.spark.validation.validator import Validated, Validator
    from statelib.documents.manifests import Audit
    from statelib.documents.plans import Plan
    from statelib.job.job import Job
    from statelib.settings.settings import Settings
    from statelib.storage import Storage

_log = logging.getLogger(__name__)


def examined(
    plan: Plan,
    warehouse: Storage,
    frames: Iterable[tuple[Suite, Frame]],
    known: Sequence[AuditCheck] = (),
    *,
    docs: bool = True,
) -> tuple[tuple[AuditCheck, ...], str | None]:
    """Has Great Expectations look at the tables of a run.

    Args:
        plan: The run's.
        warehouse: The warehouse.
        frames: Each table with its checks.
        known: Results of other tables, which belong to the same pages.
        docs: Whether pages are written where nothing has failed for good.

    Returns:
        The results, ``known`` first, and the page to look at in Data Docs, below the job's folder; None: there is none.

    Raises:
        ConfigurationError: It cannot take an expectation.
        InputError: A file of a source cannot be read.
    """
    from hindstream.spark.validation.validator import Validator  # noqa: PLC0415 - Great Expectations: two seconds

    with tempfile.TemporaryDirectory(prefix="hindstream-audit-") as name:
        site = Path(name).resolve()
        validator = Validator(site)
        for table, checks in groupby(known, attrgetter("topic")):
            validator.take(table, list(checks), run=plan.run_id)
        validated: list[Validated] = []
        damage: list[AuditCheck] = []
        try:
            for suite, frame in frames:
                validated.append(validator.validate(suite, frame, run=plan.run_id))
        except CorruptedDataError as error:
            damage = [
                AuditCheck(topic=FILES, expectation="can_be_read", parameters={}, success=False, error=str(error))
            ]
        found = (*known, *(check for part in validated for check in part.checks), *damage)
        if not docs and not any(check.stops for check in found):
            return found, None
        validator.write_docs()
        page = _page(validator, validated)
        folder = keep_site(warehouse, plan.job, plan.run_id, site)
    return found, f"{folder}/{page.relative_to(site).as_posix()}" if page else None


def _page(validator: Validator, validated: Sequence[Validated]) -> Path | None:
    """The page to look at: that of the first table that failed, else of the first."""
    failed = [part for part in validated if not all(check.success for check in part.checks)]
    failed.sort(key=lambda part: not any(check.stops for check in part.checks))
    shown = next(iter(failed or validated), None)
    return validator.page(shown) if shown else None


def failure(job: Job, settings: Settings, warehouse: Storage, plan: Plan, audit: Audit) -> InputError:
    """Logs every failed check with its failing rows, writes the run's report, and makes the error of the phase.

    The phase that writes reports of other runs will not come.
    """
    failed = [check for check in audit.checks if check.stops]
    for check in failed:
        _log.error("%s", describe(check))
    return _error(job, warehouse, plan, audit, failed, _page_of_run(job, settings, audit))


def _error(
    job: Job, warehouse: Storage, plan: Plan, audit: Audit, failed: Sequence[AuditCheck], page_of_run: str | None
) -> InputError:
    page = warehouse.uri(f"{JobLayout(job.name).root}/{audit.data_docs}") if audit.data_docs else None
    of_all = f"{len(failed)} of {counted(len(audit.checks), 'check')}: {summary(failed[0])}"
    what, place = f"the audit failed, {of_all}", {}
    step = "fix the cause and run the same slice again: this run stays in quarantine, the state has not changed"
    if failed[0].topic in {source.topic for source in plan.sources}:
        first = next((row for check in failed for row in check.unexpected_rows), {})
        place = {"topic": failed[0].topic, "partition": first.get("partition"), "offset": first.get("offset")}
        what = f"a source failed its checks before the replay, {of_all}"
        step = "mend the source or the expectation, and run the same slice again: nothing was replayed"
        if first:
            look = "hindstream show {topic} --partition {partition} --from {offset} --limit 1".format(**place)
            step = f"{look}, and then {step}"
    return InputError(
        what,
        job=job.name,
        run=audit.run_id,
        **place,
        report=page_of_run,
        data_docs=page,
        next_step=f"{step} (docs/runbooks/failed-audit.md)",
    )


def _page_of_run(job: Job, settings: Settings, audit: Audit) -> str | None:
    try:
        return report.write(job, settings, audit.run_id)
    except (HindstreamError, ImportError) as error:  # the audit's failure is what has to be said
        _log.warning("%s: the report of run %s could not be written: %s", job.name, audit.run_id, error)
        return None


def warn_of(job: str, checks: Iterable[AuditCheck]) -> None:
    """Logs the checks that fail and let the run pass, each with its failing rows."""
    for check in checks:
        if not check.success and not check.stops:
            _log.warning("%s: a check warns: %s", job, describe(check))


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
