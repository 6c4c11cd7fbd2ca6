"""The operator of a step that makes a run, in a DAG with an approval: its links lead to that run."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from hindstream.airflow.operators import HindstreamOperator
from statelib.errors.kinds import HindstreamError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from statelib.job.job import Job
    from statelib.settings.settings import Settings


class HindstreamStepOperator(HindstreamOperator):
    """A step that makes a run of its job. What it gives is the task's XCom.

    Args:
        step: Does it.
        step_kwargs: Its arguments; a template field.
        kwargs: As for `hindstream.airflow.operators.HindstreamOperator`.
    """

    template_fields: Collection[str] = (*HindstreamOperator.template_fields, "step_kwargs")

    def __init__(self, *, step: Callable[..., Any], step_kwargs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.step = step
        self.step_kwargs = step_kwargs or {}

    def execute(self, context: Context) -> Any:  # noqa: ARG002
        """What the step gives."""
        done = self.step(**self.step_kwargs)
        with suppress(HindstreamError, AirflowFailException):  # a link is no reason to fail
            self._call(_newest_run, lambda run_id: run_id)
        return done


def _newest_run(job: Job, settings: Settings) -> str:
    from hindstream.runs import find_plan, open_warehouse  # noqa: PLC0415 - parsing a DAG file must stay quick

    return find_plan(open_warehouse(settings), job.name, None).run_id
