"""Calls the Spark jobs from Airflow's tasks: with the job, its settings and credentials, and errors as Airflow's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

if TYPE_CHECKING:
    from collections.abc import Callable

    from statelib.job.job import Job
    from statelib.settings.settings import Settings


@dataclass(frozen=True, slots=True)
class Runner:
    """What the tasks of a DAG have in common.

    Attributes:
        job: Where the job is; loaded when a task runs.
        settings: Settings that go before environment and file.
        storage_conn_id: The Airflow connection with the object store's credentials; None: the environment has them.
        config: The settings file; None: as `statelib.settings.settings.load_settings` finds it.
    """

    job: str
    settings: dict[str, object]
    storage_conn_id: str | None
    config: str | None = None

    def call(self, do: Callable[[Job, Settings], Any], **settings: object) -> Any:
        """What ``do`` gives; an error that a retry cannot mend fails the task at once.

        Args:
            do: Imports what it needs when it is called, since parsing a DAG file must stay quick.
            settings: As those of the DAG, and before them.
        """
        from hindstream.airflow.connections import store_credentials  # noqa: PLC0415
        from statelib.errors.kinds import HindstreamError, RetryableError  # noqa: PLC0415
        from statelib.job.job import load_job  # noqa: PLC0415
        from statelib.settings.settings import load_settings  # noqa: PLC0415

        file = None if self.config is None else Path(self.config)
        try:
            with store_credentials(self.storage_conn_id):
                found = load_settings({**self.settings, **settings}, file=file)
                return do(load_job(self.job, fork=found.fork), found)
        except RetryableError:
            raise
        except HindstreamError as error:
            raise AirflowFailException(str(error)) from error
