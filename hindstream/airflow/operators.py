"""Operators of Airflow: what all have in common, and those that begin a slice. Those of the phases behind: `phases`.

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
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseOperator, BaseOperatorLink, SkipMixin
from airflow.sdk.exceptions import AirflowSkipException

from hindstream.airflow.arguments import check_names_of, check_reference, check_settings_of_task, is_template
from hindstream.airflow.assets import alias_as_outlet, published_topics, tell, tell_sources
from hindstream.airflow.intervals import (
    check_before_interval,
    check_earlier,
    check_parameters,
    default_earlier,
    interval_of,
)
from hindstream.airflow.links import DataDocsLink, RunReportLink, pages
from hindstream.airflow.runner import Runner
from statelib.errors.kinds import HindstreamError
from statelib.settings.value_sources import TASK_ARGUMENTS

if TYPE_CHECKING:
    from airflow.sdk import Context

    from hindstream.spark.phases.pipeline import SliceResult
    from statelib.commits import NothingToDo
    from statelib.documents.plans import Plan
    from statelib.job.job import Job
    from statelib.settings.settings import Settings

ALL = "all"
"""As the end of a slice: everything there is, whatever the data interval."""

_OF_INTERVAL = (None, "", "None")
"""As the end of a slice, or what a template gives: that of the data interval."""

FUTURE_RECORDS = "future_records"
"""The key of what the first task tells beside its run: records by which others are lost, or have to wait."""

_log = logging.getLogger(__name__)


class HindstreamOperator(BaseOperator):
    """What the operators have in common.

    Args:
        job: ``PACKAGE.MODULE:NAME``, or the path of a file: absolute, or from the folder of the DAG file or the root
            of its bundle, ``jobs/flights.py:NAME``. Loaded when the task runs.
        settings: Settings of `statelib.settings.settings.Settings`; they override connection, environment and file.
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
        place = f"{type(self).__name__}({kwargs.get('task_id')!r})"
        check_names_of(type(self), kwargs, place)
        super().__init__(**kwargs)
        check_reference(job, place)
        check_settings_of_task(settings or {}, place)
        self.job = job
        self.settings = settings or {}
        self.conn_id = conn_id
        self.config = config
        self.pages: dict[str, str] = {}

    def _call(self, do: Callable[[Job, Settings], Any], run_of: Callable[[Any], str | None], **settings: object) -> Any:
        """What ``do`` gives. Of that, or of None if it fails, ``run_of`` tells the run for links, or else the error."""

        def do_and_link(job: Job, found: Settings) -> Any:
            done: Any = None
            named: Any = None
            try:
                done = do(job, found)
            except HindstreamError as error:
                named = error.place.get("run")
                raise
            finally:
                with suppress(HindstreamError):  # a link is no reason to fail
                    self.pages = pages(job, found, run_of(done) or named)
            return done

        return self._runner().call(do_and_link, **settings)

    def _runner(self) -> Runner:
        return Runner(self.job, self.settings, self.conn_id, self.config)


class _SliceOperator(HindstreamOperator):
    """What begins a slice.

    Args:
        until: Where the slice ends: ISO 8601 with time zone, ms, or ``all``. None or nothing: at the end of the run's
            data interval; without one, at the end of all there is.
        end_of_input: What happens there: ``hold`` open windows for the next slice, or ``seal`` the job.
        before_interval: What a scheduled run, or one of a backfill, does with records from before its data interval
            that nobody has replayed: ``refuse`` them, or ``replay`` them too. None: ``refuse``; in a DAG whose schedule
            is ``@continuous``, ``replay``.
        kwargs: As for `HindstreamOperator`.
    """

    template_fields: Collection[str] = (
        *HindstreamOperator.template_fields, "until", "end_of_input", "before_interval",
    )  # fmt: skip

    def __init__(
        self,
        *,
        until: str | None = None,
        end_of_input: str = "hold",
        before_interval: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        place = f"{type(self).__name__}({self.task_id!r})"
        ends = {"until": None if until in {ALL, *_OF_INTERVAL} else until, "end_of_input": end_of_input}
        check_settings_of_task({name: value for name, value in ends.items() if value != "hold"}, place)
        if not is_template(before_interval):
            check_before_interval(before_interval, place)
        self.until = until
        self.end_of_input = end_of_input
        self.before_interval = before_interval

    def _of_slice(self, context: Context, do: Callable[[Job, Settings], Any]) -> Any:
        """What ``do`` gives for the slice."""
        check_parameters(context)
        is_of_interval = self.until in _OF_INTERVAL
        start_ms, end = interval_of(context) if is_of_interval else (None, None)
        earlier = self.before_interval or default_earlier(context["dag"].timetable)

        def checked(job: Job, settings: Settings) -> Any:
            check_before_interval(earlier, TASK_ARGUMENTS)
            if start_ms is not None and earlier == "refuse":
                check_earlier(context, job, settings, start_ms)
            return do(job, settings)

        until = end if is_of_interval else None if self.until == ALL else self.until
        done = self._call(checked, _run_of, until=until, end_of_input=self.end_of_input)
        planned = getattr(done, "plan", done)
        if getattr(planned, "reason", None) == "replayed-further":
            since = "TIME" if start_ms is None else f"{datetime.fromtimestamp(start_ms / 1000, UTC):%Y-%m-%dT%H:%MZ}"
            _log.info("to change what was replayed: hindstream repair %s --from %s, or repair_dag", self.job, since)
        found = [f"{record}. Next: {record.next_step}" for record in planned.future_records]
        context["ti"].xcom_push(key=FUTURE_RECORDS, value=found)
        return planned


class HindstreamPlanOperator(_SliceOperator, SkipMixin):
    """Plans a slice, and gives the id of its run to the other phases; skips what follows if there is nothing to do."""

    def execute(self, context: Context) -> str | None:
        """The id of the run."""
        run_id: str | None = getattr(self._of_slice(context, phase("plan")), "run_id", None)
        if run_id is None:
            following = context["task"].get_direct_relatives(upstream=False)
            self.skip(context["ti"], [task for task in following if not task.is_teardown])
        return run_id


class HindstreamRunOperator(_SliceOperator):
    """All phases of a slice in one task, for slices so small that seven tasks take longer to start than to work.

    A retry goes on where the task has failed. Each sink's asset gets an event. Sources are inputs in OpenLineage.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.sinks = alias_as_outlet(self)
        self.run_id: str | None = None

    def execute(self, context: Context) -> str:
        """The id of the run.

        Raises:
            AirflowSkipException: There is nothing to do.
        """

        def run_slice(job: Job, settings: Settings) -> SliceResult | NothingToDo:
            from hindstream.spark.phases import pipeline  # noqa: PLC0415 - parsing a DAG file must stay quick

            tell_sources(self, job, settings)
            done = pipeline.run_slice(job, settings)
            self.run_id = _run_of(done) or _of_earlier_try(context, job, settings)
            if self.run_id is not None:
                tell(context, self.sinks, published_topics(job, settings, self.run_id))
            return done

        self._of_slice(context, run_slice)
        if self.run_id is None:
            raise AirflowSkipException("there is nothing to do")
        return self.run_id


def phase(name: str, run_id: str | None = None) -> Callable[[Job, Settings], Any]:
    """Does the phase of that name, of a run or the newest."""

    def run(job: Job, settings: Settings) -> Any:
        return importlib.import_module(f"hindstream.spark.phases.{name}").run(job, settings, run_id)

    return run


def _run_of(done: Plan | NothingToDo | SliceResult | None) -> str | None:
    return getattr(getattr(done, "plan", done), "run_id", None)


def _of_earlier_try(context: Context, job: Job, settings: Settings) -> str | None:
    """The run that an earlier try of the task has committed, where nothing was left for this one.

    Not that of another DAG run at the same time, whose slice ends elsewhere.
    """
    from hindstream.runs import open_warehouse  # noqa: PLC0415 - parsing a DAG file must stay quick
    from statelib.commits import CommitLog  # noqa: PLC0415

    head, began = CommitLog(open_warehouse(settings), job.name).head(), context["dag_run"].start_date
    if head is None or head.instead_of_replay or head.until_ms != settings.until_ms:
        return None
    return None if began is None or head.created_at_ms < began.timestamp() * 1000 else head.run_id
