"""What groups of tasks have in common that work with forks: the name of a run's fork, and its end."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context

if TYPE_CHECKING:
    from hindstream.airflow.runner import Runner
    from statelib.commits.versions.trials import Trial
    from statelib.job.job import Job
    from statelib.settings.settings import Settings


class ForkSteps:
    """The tasks of a group that makes forks.

    Args:
        runner: What its tasks have in common.
        group_id: Its id.
    """

    def __init__(self, runner: Runner, group_id: str) -> None:
        self._runner = runner
        self.group_id = group_id

    def drop(self) -> None:
        """Drops the forks, whatever has become of the other tasks."""

        def do(_: Job, settings: Settings) -> None:
            from hindstream.trials.forks import drop_named  # noqa: PLC0415 - parsing a DAG file must stay quick

            drop_named(self.name(), settings)

        self._runner.call(do)

    def name(self) -> str:
        """The fork's: the same in all tasks of a run and their retries, and in no other run."""
        from hindstream.trials.forks import FORK_PREFIX  # noqa: PLC0415

        context = get_current_context()
        run = f"{context['ti'].dag_id}/{context['run_id']}/{self.group_id}"
        return f"{FORK_PREFIX}{hashlib.sha256(run.encode()).hexdigest()[:8]}"


def trial_of(data: Any) -> Trial:
    """What a group's first task has given."""
    from statelib.commits.versions.trials import Trial  # noqa: PLC0415

    return Trial.model_validate(data)
