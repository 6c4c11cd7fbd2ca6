"""Operators of Airflow that do a phase of a run each, or all of them: `replay_dag` and `replay_task_group` use them.

::

    plan = HindstreamPlanOperator(task_id="plan", job="jobs/flights.py:job", settings={"warehouse": "s3://lake/w"})
    replay = HindstreamReplayOperator(task_id="replay", job="jobs/flights.py:job", run_id=plan.output, ...)

All fields are templates. Credentials are in the connection, which is read when a task runs, and in no field.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseOperator, BaseOperatorLink, SkipMixin
from airflow.sdk.exceptions import AirflowSkipException

from hindstream.airflow.intervals import EARLIER, check_earlier, interval_of
from hindstream.airflow.links import DataDocsLink, RunReportLink, pages
from hindstream.airflow.runner import Runner, located
from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError, HindstreamError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from hindstream.spark.phases.pipeline import SliceResult
    from statelib.commits import NothingToDo
    from statelib.documents.plans import Plan
    from statelib.job.job import Job
    from statelib.settings.settings import Settings

ALL = "all"
"""As the end of a slice: everything there is, whatever the data interval."""

FUTURE_RECORDS = "future_records"
"""The key of what the first task tells beside its run: records by which others are lost, or have to wait."""

_log = logging.getLogger(__name__)


class HindstreamOperator(BaseOperator):
    """What the operators have in common.

    Args:
        job: ``PACKAGE.MODULE:NAME``, or the path of a file: absolute, or from the folder of the DAG file or the root
            of its bundle, ``jobs/flights.py:NAME``. Loaded when the task runs.
        settings: Settings of `statelib.settings.settings.Settings`, before those of connection, environment and file.
        conn_id: The Airflow connection with credentials: of the type ``hindstream``, whose settings count too, or of
            the store's own type. None: the environment of Airflow's workers has them.
        config: The settings file; None: that in ``HINDSTREAM_CONFIG``, or ``hindstream.toml`` in the workers' folder.
        kwargs: Arguments of Airflow's operators.
    """

    template_fields: Collection[str] = ("job", "settings", "conn_id", "config")
    template_fields_renderers: ClassVar[dict[str, str]] = {"settings": "json"}
    operator_extra_links: Collection[BaseOperatorLink] = (RunReportLink(), DataDocsLink())

    def __init__(
        self,
        *,
        job: str,
        settings: dict[str, Any] | None = None,
        conn_id: str | None = None,
        config: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.job = job
        self.settings = settings or {}
        self.conn_id = conn_id
        self.config = config
        self.pages: dict[str, str] = {}

    def _call(self, do: Callable[[Job, Settings], Any], run_of: Callable[[Any], str | None], **settings: object) -> Any:
        """What ``do`` gives; of what it gives, or of None if it fails, ``run_of`` tells the run, for the links."""

        def do_and_link(job: Job, found: Settings) -> Any:
            done = None
            try:
                done = do(job, found)
            finally:
                with suppress(HindstreamError):  # a link is no reason to fail
                    self.pages = pages(job, found, run_of(done))
            return done

        return Runner(self.job, self.settings, self.conn_id, self.config).call(do_and_link, **settings)


class _SliceOperator(HindstreamOperator):
    """What begins a slice.

    Args:
        until: Where the slice ends: ISO 8601 with time zone, ms, or ``all``. None or nothing: at the end of the run's
            data interval; without one, at the end of all there is.
        end_of_input: What happens there: ``hold`` open windows for the next slice, or ``seal`` the job.
        before_interval: What a scheduled run, or one of a backfill, does with records from before its data interval
            that nobody has replayed: ``refuse`` them, or ``replay`` them too.
        kwargs: As for `HindstreamOperator`.
    """

    template_fields: Collection[str] = (
        *HindstreamOperator.template_fields, "until", "end_of_input", "before_interval",
    )  # fmt: skip

    def __init__(
        self, *, until: str | None = None, end_of_input: str = "hold", before_interval: str = "refuse", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.until = until
        self.end_of_input = end_of_input
        self.before_interval = before_interval

    def _of_slice(self, context: Context, do: Callable[[Job, Settings], Any]) -> Any:
        """What ``do`` gives for the slice."""
        is_of_interval = self.until in {None, "", "None"}
        start_ms, end = interval_of(context) if is_of_interval else (None, None)

        def checked(job: Job, settings: Settings) -> Any:
            if self.before_interval not in EARLIER:
                what = f"before_interval is {' or '.join(EARLIER)}, not {self.before_interval!r}"
                raise ConfigurationError(what, next_step="change it where the task is made")
            if start_ms is not None and self.before_interval == "refuse":
                check_earlier(context, job, settings, start_ms)
            return do(job, settings)

        until = end if is_of_interval else None if self.until == ALL else self.until
        done = self._call(checked, _run_of, until=until, end_of_input=self.end_of_input)
        planned = getattr(done, "plan", done)
        found = [f"{record}. Next: {record.next_step}" for record in planned.future_records]
        context["ti"].xcom_push(key=FUTURE_RECORDS, value=found)
        return planned


class HindstreamPlanOperator(_SliceOperator, SkipMixin):
    """Plans a slice, and gives the id of its run to the other phases; skips what follows if there is nothing to do."""

    def execute(self, context: Context) -> str | None:
        """The id of the run."""
        run_id: str | None = getattr(self._of_slice(context, _phase("plan")), "run_id", None)
        if run_id is None:
            following = context["task"].get_direct_relatives(upstream=False)
            self.skip(context["ti"], [task for task in following if not task.is_teardown])
        return run_id


class HindstreamRunOperator(_SliceOperator):
    """All phases of a slice in one task, for slices so small that seven tasks take longer to start than to work.

    A retry goes on where the task has failed.
    """

    def execute(self, context: Context) -> str:
        """The id of the run.

        Raises:
            AirflowSkipException: There is nothing to do.
        """

        def run_slice(job: Job, settings: Settings) -> SliceResult | NothingToDo:
            from hindstream.spark.phases import pipeline  # noqa: PLC0415 - parsing a DAG file must stay quick

            return pipeline.run_slice(job, settings)

        run_id = getattr(self._of_slice(context, run_slice), "run_id", None)
        if run_id is None:
            raise AirflowSkipException("there is nothing to do")
        return str(run_id)


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

    def execute(self, context: Context) -> None:  # noqa: ARG002 - Airflow's own signature
        """Does the phase."""
        self._call(_phase(self.phase, self.run_id), lambda _: self.run_id)


class HindstreamReplayOperator(_PhaseOperator):
    """Replays the slice on Spark, and stages what it gives."""

    phase = "replay"


class HindstreamAuditOperator(_PhaseOperator):
    """Audits what was staged, by Great Expectations; fails if it does not hold what the job expects."""

    phase = "audit"


class HindstreamCommitOperator(_PhaseOperator):
    """Commits the run: from now on it counts."""

    phase = "commit"


class HindstreamPublishOperator(_PhaseOperator):
    """Adds what was committed to the sinks."""

    phase = "publish"


class HindstreamMaintainOperator(_PhaseOperator):
    """Expires old state, removes what dead runs have left, merges small files."""

    phase = "maintain"


class HindstreamReportOperator(_PhaseOperator):
    """Writes the report of the run, and that of the job."""

    phase = "report"


class HindstreamArchiveOperator(HindstreamOperator):
    """Copies new records of a job's topics: all that is new, since slices end by event time and records come late.

    Args:
        topics: A `KafkaTopic`, a `LakeTopic` or a list of them, in the form of ``job``.
        kwargs: As for `HindstreamOperator`.
    """

    template_fields: Collection[str] = (*HindstreamOperator.template_fields, "topics")
    operator_extra_links: Collection[BaseOperatorLink] = ()

    def __init__(self, *, topics: str, do_xcom_push: bool = False, **kwargs: Any) -> None:
        super().__init__(do_xcom_push=do_xcom_push, **kwargs)
        self.topics = topics

    def execute(self, context: Context) -> None:  # noqa: ARG002 - Airflow's own signature
        """Copies them."""
        copy_topics(Runner(self.job, self.settings, self.conn_id, self.config), self.topics)


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


def copy_topics(runner: Runner, topics: str) -> None:
    """Copies all that is new of topics, whatever the slice.

    Args:
        runner: What the tasks of the DAG have in common.
        topics: The topics, in the form of a job.
    """

    def copy(_: Job, settings: Settings) -> None:
        from hindstream.spark.lake.archive import archive as archived  # noqa: PLC0415
        from statelib.ingest.load import Loaded  # noqa: PLC0415
        from statelib.job.topics import load_topics  # noqa: PLC0415

        for copied in archived(load_topics(located(topics)), settings):
            if isinstance(copied, Loaded):
                _log.info("%s: %s loaded", copied.topic, counted(copied.records, "record was", "records were"))
            else:
                offsets = sum(found.end - found.start for found in copied.ranges.values())
                _log.info("%s: %s copied", copied.topic, counted(offsets, "offset was", "offsets were"))

    runner.call(copy, until=None)


def _phase(name: str, run_id: str | None = None) -> Callable[[Job, Settings], Any]:
    def run(job: Job, settings: Settings) -> Any:
        return importlib.import_module(f"hindstream.spark.phases.{name}").run(job, settings, run_id)

    return run


def _run_of(done: Plan | NothingToDo | SliceResult | None) -> str | None:
    return getattr(getattr(done, "plan", done), "run_id", None)
