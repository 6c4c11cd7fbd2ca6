"""The events of a run: made of what it has stored of itself, so that any phase can tell all that is known by then."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import TYPE_CHECKING, Literal, cast

from openlineage.client.event_v2 import Job as LineageJob
from openlineage.client.event_v2 import OutputDataset, Run, RunEvent, RunState, set_producer
from openlineage.client.facet_v2 import (
    documentation_job,
    error_message_run,
    job_type_job,
    nominal_time_run,
    parent_run,
    processing_engine_run,
    test_run,
)
from openlineage.client.generated.base import RunFacet

from hindstream.lineage.datasets import SEVERITIES, Datasets, actual, expected, name_of
from hindstream.lineage.names import dataset_at, run_uuid
from hindstream.lineage.parent import Parent, RunName, parent_of
from hindstream.lineage.source_code import source_code
from hindstream.runs import open_warehouse
from statelib.commits import CommitLog, Runs
from statelib.commits.layout import topic_path
from statelib.documents.plans import Plan

if TYPE_CHECKING:
    from openlineage.client.event_v2 import InputDataset
    from openlineage.client.generated.base import JobFacet

    from statelib.documents.manifests import Audit, Commit
    from statelib.job.job import Job
    from statelib.settings.settings import Settings

State = Literal["START", "RUNNING", "COMPLETE", "FAIL", "ABORT"]

OWN_JOBS = ("audit", "maintain")
"""Phases that are jobs of their own below the run's: what they look at is not what the run reads."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_VERSION = version("hindstream")
set_producer(f"pkg:pypi/hindstream@{_VERSION}")


@dataclass(frozen=True)
class RunEvents:
    """Makes the events of a job's runs.

    Attributes:
        parent: The run that has started this process; None: there is none.
    """

    job: Job
    settings: Settings
    namespace: str = field(default_factory=lambda: os.environ.get("OPENLINEAGE_NAMESPACE", "default"))
    parent: Parent | None = field(default_factory=lambda: parent_of(os.environ))

    def of_run(self, plan: Plan, state: State, at_ms: int, error: str | None = None) -> RunEvent:
        """An event of the run itself, with all that is known by now."""
        warehouse = open_warehouse(self.settings)
        runs = Runs(warehouse, self.job.name)
        staged, audit = runs.staged(plan.run_id), runs.audit(plan.run_id)
        former = self._former(plan)
        data = Datasets(self.job, self.settings, warehouse, plan, staged, former, is_published=state == "COMPLETE")
        facets = run_facets(self.settings, error, self.parent) | _nominal_time(plan, former)
        if audit is not None:
            facets["test"] = _tests(audit)
        facets["hindstream"] = own_facet(plan)
        return self._event(
            state, at_ms, self._run(plan).run_id, self.job.name, "JOB", facets, data.inputs(audit), data.outputs()
        )

    def of_phase(self, phase: str, plan: Plan, state: State, at_ms: int, error: str | None = None) -> RunEvent:
        """An event of a phase that is a job of its own: see `OWN_JOBS`."""
        inputs: list[InputDataset] = []
        former = self._former(plan)
        if phase == "audit" and state != "START":
            warehouse = open_warehouse(self.settings)
            runs = Runs(warehouse, self.job.name)
            if (audit := runs.audit(plan.run_id)) is not None:
                data = Datasets(self.job, self.settings, warehouse, plan, runs.staged(plan.run_id), former)
                inputs = data.audited(audit)
        run = self._run(plan)
        above = Parent(run, run if self.parent is None else self.parent.root)
        facets = run_facets(self.settings, error, above) | _nominal_time(plan, former)
        return self._event(
            state, at_ms, self._run(plan, phase).run_id, f"{self.job.name}.{phase}", "TASK", facets, inputs
        )

    def of_no_run(self, at_ms: int, error: str) -> list[RunEvent]:
        """That none could be planned: a run that only fails."""
        warehouse = open_warehouse(self.settings)
        run_id = str(run_uuid(at_ms, self.namespace, warehouse.uri(""), self.job.name, "plan"))
        outputs = [
            OutputDataset(*dataset_at(warehouse.uri(topic_path(topic)))) for topic in self.job.topology.sink_topics
        ]
        states: list[tuple[State, str | None]] = [("START", None), ("FAIL", error)]
        return [
            self._event(
                state, at_ms, run_id, self.job.name, "JOB", run_facets(self.settings, what, self.parent), [], outputs
            )
            for state, what in states
        ]

    def _run(self, plan: Plan, phase: str = "") -> RunName:
        """The same in whatever process: a UUID made of what the plan says."""
        place = open_warehouse(self.settings).uri("")
        names = (self.namespace, place, self.job.name, plan.run_id, phase)
        job = f"{self.job.name}.{phase}" if phase else self.job.name
        return RunName(self.namespace, job, str(run_uuid(plan.created_at_ms, *names)))

    def _former(self, plan: Plan) -> Commit | None:
        """The commit that the run goes on from."""
        return CommitLog(open_warehouse(self.settings), self.job.name).read_if_present(plan.commit - 1)

    def _event(
        self,
        state: State,
        at_ms: int,
        run_id: str,
        job: str,
        kind: Literal["JOB", "TASK"],
        facets: dict[str, RunFacet],
        inputs: list[InputDataset],
        outputs: list[OutputDataset] | None = None,
    ) -> RunEvent:
        return RunEvent(
            eventTime=time_text(at_ms),
            run=Run(run_id, facets),
            job=LineageJob(self.namespace, job, self._job_facets(kind)),
            eventType=RunState[state],
            inputs=inputs,
            outputs=outputs or [],
        )

    def _job_facets(self, kind: Literal["JOB", "TASK"]) -> dict[str, JobFacet]:
        facets: dict[str, JobFacet] = {"jobType": job_type_job.JobTypeJobFacet("BATCH", "HINDSTREAM", kind)}
        if self.job.notes and kind == "JOB":
            facets["documentation"] = documentation_job.DocumentationJobFacet(" ".join(self.job.notes))
        if (place := source_code(self.job.topology)) is not None:
            facets["sourceCodeLocation"] = place
        return facets


def run_facets(settings: Settings, error: str | None, above: Parent | None) -> dict[str, RunFacet]:
    """What every run has: its engine, its error, and the run above it."""
    spark = settings.engine == "spark"
    facets: dict[str, RunFacet] = {
        "processing_engine": processing_engine_run.ProcessingEngineRunFacet(
            version=version("pyspark") if spark else _VERSION,
            name="spark" if spark else "hindstream",
            openlineageAdapterVersion=_VERSION,
        )
    }
    if error is not None:
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(error, "python")
    if above is not None:
        root = parent_run.Root(
            parent_run.RootRun(above.root.run_id), parent_run.RootJob(above.root.namespace, above.root.job)
        )
        run, job = parent_run.Run(above.run.run_id), parent_run.Job(above.run.namespace, above.run.job)
        facets["parent"] = parent_run.ParentRunFacet(run, job, root)
    return facets


def time_text(time_ms: int) -> str:
    """Milliseconds since 1970 as events have times."""
    return (_EPOCH + timedelta(milliseconds=time_ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _nominal_time(plan: Plan, former: Commit | None) -> dict[str, RunFacet]:
    """The slice in event time; the first one has no beginning, and is left out."""
    if former is None or former.until_ms is None or plan.until_ms is None:
        return {}
    start, end = time_text(former.until_ms), time_text(plan.until_ms)
    return {"nominalTime": nominal_time_run.NominalTimeRunFacet(start, end)}


def own_facet(of: Plan | Commit) -> RunFacet:
    """What only we know: under which names the warehouse has the run."""
    known: dict[str, object] = {"runId": of.run_id, "commit": of.commit, "fingerprint": of.fingerprint}
    if isinstance(of, Plan):
        known["records"] = of.records
    return cast("RunFacet", RunFacet().with_additional_properties(**known))


def _tests(audit: Audit) -> test_run.TestRunFacet:
    return test_run.TestRunFacet(
        [
            test_run.TestExecution(
                name=name_of(check),
                status="pass" if check.success else "fail",
                severity=SEVERITIES[check.severity],
                type=check.expectation,
                expected=expected(check),
                actual=actual(check),
            )
            for check in audit.checks
        ]
    )
