"""Great Expectations, kept quiet and in memory: runs suites over frames, and writes their pages of Data Docs."""

from __future__ import annotations

import logging
import os
import warnings
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from hindstream.spark.expectations.plain import plain
from hindstream.spark.session.imports import importing
from statelib.documents.manifests import AuditCheck
from statelib.errors.kinds import ConfigurationError

os.environ["GX_ANALYTICS_ENABLED"] = "false"  # read at import; an audit tells nobody
logging.getLogger("great_expectations").setLevel(logging.ERROR)  # its import logs hundreds of lines

with importing():
    import great_expectations as gx
    from great_expectations.core import ExpectationSuiteValidationResult, ExpectationValidationResult
    from great_expectations.data_context.types.base import (
        DataContextConfig,
        InMemoryStoreBackendDefaults,
        ProgressBarsConfig,
    )
    from great_expectations.data_context.types.resource_identifiers import (
        ExpectationSuiteIdentifier,
        ValidationResultIdentifier,
    )
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
    from great_expectations.expectations.metadata_types import FailureSeverity

    import hindstream.spark.validation.escaped_docs
    import hindstream.spark.validation.exact
    import hindstream.spark.validation.exact_rows
    import hindstream.spark.validation.exact_statistics
    import hindstream.spark.validation.kept_docs_templates  # noqa: F401  (each registers what it replaces)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from great_expectations.checkpoint.checkpoint import CheckpointResult
    from great_expectations.core.batch_definition import BatchDefinition
    from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext

    from hindstream.spark.expectations.checks import Check, Suite
    from hindstream.spark.expectations.flat_tables import Frame
    from statelib.documents.manifests import Severity

_NOTHING_UNEXPECTED = {"unexpected_count": 0, "unexpected_percent": 0.0, "partial_unexpected_list": []}

SEVERITIES: Mapping[Severity, str] = {"fail": "critical", "warn": "warning"}
"""Great Expectations' words for ours."""

SAMPLE_ROWS = 20
"""Failing rows of a check that are recorded."""


@dataclass(frozen=True, slots=True)
class Validated:
    """What came of a suite.

    Attributes:
        checks: In the order of the suite.
        identifier: Great Expectations' own, by which `Validator.page` finds the page.
    """

    checks: tuple[AuditCheck, ...]
    identifier: ValidationResultIdentifier


class Validator:
    """A context of Great Expectations for the suites of one run.

    Args:
        site: The folder in which `write_docs` builds Data Docs: that run's and nothing else, since whatever it has no
            results of is removed there.
    """

    def __init__(self, site: Path) -> None:
        config = DataContextConfig(
            store_backend_defaults=InMemoryStoreBackendDefaults(),
            data_docs_sites={
                "audit": {
                    "class_name": "SiteBuilder",
                    "show_how_to_buttons": False,  # how to edit suites: here they come from the job
                    "store_backend": {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(site)},
                }
            },
            progress_bars=ProgressBarsConfig(globally=False),
            analytics_enabled=False,
        )
        self._context: EphemeralDataContext = gx.get_context(mode="ephemeral", project_config=config)

    def validate(self, suite: Suite, frame: Frame, *, run: str) -> Validated:
        """Runs ``suite`` over ``frame``; ``run`` names the run in Data Docs.

        Raises:
            ConfigurationError: Great Expectations cannot take an expectation.
        """
        exact: dict[str, Any] = {}
        checks = [
            {
                "type": check.type,
                "kwargs": _without_loss(check.kwargs, f"of_check_{n}", exact),
                "meta": {"check": n},
                "severity": SEVERITIES[check.severity],
            }
            for n, check in enumerate(suite.checks)
        ]
        try:
            with warnings.catch_warnings():
                # A condition as text, which has one meaning here on every engine.
                warnings.filterwarnings("ignore", ".*row.condition", DeprecationWarning)
                outcome = self._outcome(suite, checks, frame, exact, run)
        except Exception as error:  # Great Expectations has no error of its own for what it cannot take
            what = f"Great Expectations cannot run the checks: {type(error).__name__}: {' '.join(str(error).split())}"
            step = "fix the job's expectations, and run the same slice again"
            raise ConfigurationError(what, topic=suite.name, next_step=step) from error
        ((identifier, result),) = outcome.run_results.items()
        return Validated(_audit_checks(suite, frame, result), identifier)

    def _outcome(
        self, suite: Suite, checks: list[dict[str, Any]], frame: Frame, exact: dict[str, Any], run: str
    ) -> CheckpointResult:
        stored = self._context.suites.add_or_update(
            gx.ExpectationSuite(name=suite.title, expectations=checks, notes=suite.note or None)
        )
        definition = self._context.validation_definitions.add_or_update(
            gx.ValidationDefinition(
                name=suite.title, data=self._batch_definition(suite.title, frame.engine), suite=stored
            )
        )
        checkpoint = self._context.checkpoints.add_or_update(
            gx.Checkpoint(
                name=suite.title,
                validation_definitions=[definition],
                result_format={
                    "result_format": "SUMMARY",
                    "unexpected_index_column_names": list(suite.place),
                    "partial_unexpected_count": SAMPLE_ROWS,
                },
            )
        )
        return checkpoint.run(
            batch_parameters={"dataframe": frame.data},
            expectation_parameters=exact,
            run_id=gx.RunIdentifier(run_name=run),
        )

    def take(self, table: str, checks: Sequence[AuditCheck], *, run: str) -> None:
        """Takes results that another process has, or that are known without it, for `write_docs`.

        ``run`` is as for `validate`.
        """
        expectations = [
            ExpectationConfiguration(
                type=check.expectation,
                kwargs=check.parameters,
                meta={"check": n},
                severity=FailureSeverity(SEVERITIES[check.severity]),
            )
            for n, check in enumerate(checks)
        ]
        results = [
            ExpectationValidationResult(
                success=check.success,
                expectation_config=expectation,
                result=_result(check),
                exception_info={
                    "raised_exception": check.error is not None,
                    "exception_message": check.error,
                    "exception_traceback": check.error,
                },
            )
            for expectation, check in zip(expectations, checks, strict=True)
        ]
        count, passed = len(checks), sum(check.success for check in checks)
        statistics = {
            "evaluated_expectations": count,
            "successful_expectations": passed,
            "unsuccessful_expectations": count - passed,
            "success_percent": 100.0 * passed / count,
        }
        of_run = gx.RunIdentifier(run_name=run)
        self._context.suites.add(
            gx.ExpectationSuite(
                name=table, expectations=[{"type": one.type, "kwargs": one.kwargs} for one in expectations]
            )
        )
        self._context.validation_results_store.set(
            ValidationResultIdentifier(ExpectationSuiteIdentifier(name=table), of_run, "staged"),
            ExpectationSuiteValidationResult(
                success=passed == count,
                results=results,
                suite_name=table,
                statistics=statistics,
                meta={
                    "run_id": of_run,
                    "great_expectations_version": gx.__version__,
                    "active_batch_definition": {"data_asset_name": table},
                    "batch_kwargs": {"data_asset_name": table},
                },
            ),
        )

    def write_docs(self) -> None:
        """Writes a page for everything validated so far, and an index of them."""
        self._context.build_data_docs()

    def page(self, validated: Validated) -> Path | None:
        """The page that `write_docs` has written; None: it could not be rendered."""
        (site,) = self._context.get_docs_sites_urls(resource_identifier=validated.identifier)
        address = site["site_url"]
        return Path(unquote(urlsplit(address).path)) if address else None

    def _batch_definition(self, name: str, engine: str) -> BatchDefinition[Any]:
        # A data source of its own for each table: adding one again drops all its assets.
        sources, source_name = self._context.data_sources, f"{name}-on-{engine}"
        source: Any
        if engine == "spark":
            source = sources.add_or_update_spark(source_name, persist=False)
        else:
            source = sources.add_or_update_pandas(source_name)
        return source.add_dataframe_asset(name).add_batch_definition_whole_dataframe("staged")  # type: ignore[no-any-return]


def _result(check: AuditCheck) -> dict[str, Any]:
    """What a check has found, as Great Expectations says it."""
    if check.observed is not None:
        return {"observed_value": check.observed}
    if not check.unexpected_count:
        return dict(_NOTHING_UNEXPECTED)
    column = str(check.parameters.get("column"))
    found = [row.get(column, row) for row in check.unexpected_rows]
    return {"unexpected_count": check.unexpected_count, "partial_unexpected_list": found}


def _without_loss(kwargs: Mapping[str, Any], name: str, exact: dict[str, Any]) -> dict[str, Any]:
    """Parameters for a suite, which is kept as JSON: what that cannot hold goes to ``exact``, and is named instead."""
    result = dict(kwargs)
    for parameter, value in kwargs.items():
        if _is_more_than_json(value):
            exact[f"{parameter}_{name}"] = value
            result[parameter] = {"$PARAMETER": f"{parameter}_{name}"}
    return result


def _is_more_than_json(value: Any) -> bool:
    if isinstance(value, (list, tuple, set)):
        return any(map(_is_more_than_json, value))
    return isinstance(value, (Decimal, datetime, date))


def _audit_checks(suite: Suite, frame: Frame, result: ExpectationSuiteValidationResult) -> tuple[AuditCheck, ...]:
    """Each check's result, in the order of the suite: Great Expectations answers in an order of its own."""
    results = {entry.expectation_config.meta["check"]: entry for entry in result.results if entry.expectation_config}
    return tuple(_audit_check(suite, frame, check, results[n]) for n, check in enumerate(suite.checks))


def _audit_check(suite: Suite, frame: Frame, check: Check, entry: ExpectationValidationResult) -> AuditCheck:
    error = _error(entry.exception_info)
    details: Mapping[str, Any] = entry.result or {}
    places: Sequence[Mapping[str, Any]] = details.get("partial_unexpected_index_list") or ()
    found = [] if entry.success else frame.rows([{name: place[name] for name in suite.place} for place in places])
    rows = tuple({suite.names.get(name, name): plain(value) for name, value in row.items()} for row in found)
    return AuditCheck(
        topic=suite.name,
        expectation=check.type,
        parameters=plain(dict(check.shown)),
        success=bool(entry.success) and error is None,
        observed=_shown(plain(details.get("observed_value")), suite.names),
        unexpected_count=int(details.get("unexpected_count") or 0),
        unexpected_rows=rows[:SAMPLE_ROWS],
        error=error,
        severity=check.severity,
        share=suite.share,
    )


def _shown(observed: Any, names: Mapping[str, str]) -> Any:
    """What was observed, with the names of columns that a person uses."""
    if isinstance(observed, list):
        return [names.get(name, name) if isinstance(name, str) else name for name in observed]
    return observed


def _error(exception_info: Mapping[str, Any]) -> str | None:
    """What kept an expectation from being evaluated: one entry, or one by metric."""
    entries = [exception_info] if "raised_exception" in exception_info else list(exception_info.values())
    messages = [str(entry.get("exception_message")) for entry in entries if entry.get("raised_exception")]
    return "; ".join(dict.fromkeys(messages)) or None
