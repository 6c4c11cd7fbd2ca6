"""Operators of Airflow that do one phase of a run that is planned, two of them on Spark."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk.exceptions import AirflowException, TaskDeferralTimeout

from hindstream.airflow.assets import alias_as_outlet, published_topics, tell, tell_sources
from hindstream.airflow.operators import HindstreamOperator, phase
from hindstream.airflow.runner import located
from hindstream.airflow.spark import DEFAULT_CONNECTION, check_mode, connected_cluster
from statelib.errors.kinds import HindstreamError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from hindstream.spark.submission.cluster import Cluster
    from hindstream.spark.submission.follow import Submitted
    from hindstream.spark.submission.running import Running
    from statelib.job.job import Job
    from statelib.settings.settings import Settings

_log = logging.getLogger(__name__)


class _PhaseOperator(HindstreamOperator):
    """A phase behind the plan.

    Args:
        run_id: The run, as `HindstreamPlanOperator` gives it; None: the newest.
        kwargs: As for `HindstreamOperator`.
    """

    template_fields: Collection[str] = (*HindstreamOperator.template_fields, "run_id")
    phase: ClassVar[str]

    def __init__(self, *, run_id: Any = None, do_xcom_push: bool = False, **kwargs: Any) -> None:
        super().__init__(do_xcom_push=do_xcom_push, **kwargs)
        self.run_id = run_id

    def execute(self, context: Context) -> None:
        """Does the phase."""
        do = phase(self.phase, self.run_id)

        def do_and_tell(job: Job, settings: Settings) -> None:
            do(job, settings)
            self._tell(context, job, settings)

        self._call(do_and_tell, lambda _: self.run_id)

    def _tell(self, context: Context, job: Job, settings: Settings) -> None:
        """What Airflow has to know of assets."""


class _SparkPhaseOperator(_PhaseOperator):
    """A phase that works on Spark.

    Args:
        mode: ``in-process``: the task is Spark's driver. ``spark-submit``: the driver is submitted. Where it runs on
            the cluster, no worker's slot is held while it is at work, and a retry finds it again.
        spark_conn_id: The connection to the cluster, of the type ``spark``.
        spark_submit: Options of spark-submit, by the names that the operator of Airflow's Spark provider has for them.
        kwargs: As for `HindstreamOperator`, and ``run_id``.
    """

    template_fields: Collection[str] = (*_PhaseOperator.template_fields, "spark_conn_id", "spark_submit")
    template_fields_renderers: ClassVar[dict[str, str]] = {"settings": "json", "spark_submit": "json"}

    def __init__(
        self,
        *,
        mode: str = "in-process",
        spark_conn_id: str = DEFAULT_CONNECTION,
        spark_submit: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_mode(mode, spark_submit, f"{type(self).__name__}({self.task_id!r})")
        self._running: Running | None = None
        self.mode = mode
        self.spark_conn_id = spark_conn_id
        self.spark_submit = spark_submit or {}

    def execute(self, context: Context) -> None:
        """Does the phase, or submits it and waits.

        Raises:
            TaskDeferred: It is at work on the cluster.
        """
        if self.mode == "in-process":
            super().execute(context)
            return
        cluster, options = connected_cluster(self.spark_conn_id, self.spark_submit)
        application = self._call(
            lambda job, settings: self._attached(context, job, settings, cluster, options), lambda _: self.run_id
        )
        if application is not None:
            self._wait(cluster, application)

    def resume(self, context: Context, event: str, *, is_found: bool = False) -> None:
        """The application has ended; the run's documents say whether the phase is done.

        Args:
            context: Airflow's.
            event: What the cluster says of the application.
            is_found: An earlier try has submitted it. It may have been stopped with that, so another one follows.

        Raises:
            TaskDeferred: Another one is at work.
        """
        cluster, options = connected_cluster(self.spark_conn_id, self.spark_submit)

        def check_and_tell(job: Job, settings: Settings) -> str | None:
            submitted = self._submitted(job, settings, cluster, options)
            if is_found and (another := submitted.submit_after_killed()) is not None:
                return another
            submitted.check(event)
            self._tell(context, job, settings)
            return None

        application = self._call(check_and_tell, lambda _: self.run_id)
        if application is not None:
            self._wait(cluster, application)

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """As Airflow's; what takes longer than ``execution_timeout`` is stopped, with its driver."""
        try:
            return super().resume_execution(next_method, next_kwargs, context)
        except TaskDeferralTimeout:
            self._stop()
            raise

    def on_kill(self) -> None:
        """The task is ended while spark-submit is at work: that ends with it."""
        if self._running is not None:
            self._running.stop()

    def _stop(self) -> None:
        """Stops the driver, or says why it goes on."""
        try:
            cluster, options = connected_cluster(self.spark_conn_id, self.spark_submit)
            self._call(
                lambda job, settings: self._submitted(job, settings, cluster, options).stop(), lambda _: self.run_id
            )
        except (AirflowException, HindstreamError) as error:
            _log.warning("the driver may go on: %s", error)

    def _wait(self, cluster: Cluster, application: str) -> None:
        from hindstream.airflow.trigger import SparkApplicationTrigger  # noqa: PLC0415 - parsing must stay quick

        waits = SparkApplicationTrigger.of(cluster, application)
        is_found = self._running is None or self._running.application != application
        given = {"is_found": is_found}
        self.defer(trigger=waits, method_name=self.resume.__name__, kwargs=given, timeout=self.execution_timeout)

    def _attached(
        self, context: Context, job: Job, settings: Settings, cluster: Cluster, options: dict[str, Any]
    ) -> str | None:
        """The application to wait for; None: the phase is done."""
        application = self._submitted(job, settings, cluster, options).attach_or_submit()
        if application is None:
            self._tell(context, job, settings)
        return application

    def _submitted(self, job: Job, settings: Settings, cluster: Cluster, options: dict[str, Any]) -> Submitted:
        from hindstream.spark.submission.follow import Submitted  # noqa: PLC0415 - parsing a DAG file must stay quick

        submitted = Submitted(located(self.job), job, settings, self.run_id, self.phase, cluster, options)
        self._running = submitted.running
        return submitted


class HindstreamReplayOperator(_SparkPhaseOperator):
    """Replays the slice on Spark, and stages what it gives. Sources are inputs in OpenLineage."""

    phase = "replay"

    def _tell(self, context: Context, job: Job, settings: Settings) -> None:  # noqa: ARG002
        tell_sources(self, job, settings)


class HindstreamAuditOperator(_SparkPhaseOperator):
    """Audits what was staged, by Great Expectations; fails if it does not hold what the job expects."""

    phase = "audit"


class HindstreamCommitOperator(_PhaseOperator):
    """Commits the run: from now on it counts."""

    phase = "commit"


class HindstreamPublishOperator(_PhaseOperator):
    """Adds what was committed to the sinks, and has Airflow make an event of the asset of each."""

    phase = "publish"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.sinks = alias_as_outlet(self)

    def _tell(self, context: Context, job: Job, settings: Settings) -> None:
        tell(context, self.sinks, published_topics(job, settings, self.run_id))


class HindstreamMaintainOperator(_PhaseOperator):
    """Expires old state, removes what dead runs have left, merges small files."""

    phase = "maintain"


class HindstreamReportOperator(_PhaseOperator):
    """Writes the report of the run, and that of the job."""

    phase = "report"


PHASES: dict[str, type[_PhaseOperator]] = {
    operator.phase: operator
    for operator in (
        HindstreamReplayOperator,
        HindstreamAuditOperator,
        HindstreamCommitOperator,
        HindstreamPublishOperator,
        HindstreamMaintainOperator,
        HindstreamReportOperator,
    )
}
"""The phases behind the plan, in order."""
