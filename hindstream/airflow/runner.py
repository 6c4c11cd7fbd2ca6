"""Calls the Spark jobs from Airflow's tasks: with the job, its settings and credentials, and errors as Airflow's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowFailException

from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from statelib.job.job import Job
    from statelib.settings.settings import Settings


@dataclass(frozen=True, slots=True)
class Runner:
    """What the tasks of a DAG have in common.

    Attributes:
        job: Where the job is; loaded when a task runs.
        settings: Settings that go before those of the connection, of the environment and of the file.
        conn_id: The Airflow connection with credentials, and maybe settings; None: the environment has them.
        config: The settings file; None: as `statelib.settings.settings.load_settings` finds it.
    """

    job: str
    settings: dict[str, Any]
    conn_id: str | None
    config: str | None = None

    def call(self, do: Callable[[Job, Settings], Any], **settings: object) -> Any:
        """What ``do`` gives; an error that a retry cannot mend fails the task at once.

        Args:
            do: Imports what it needs when it is called, since parsing a DAG file must stay quick.
            settings: As those of the DAG, and before them.
        """
        from hindstream.airflow.connections import connected  # noqa: PLC0415
        from hindstream.airflow.parent import task_as_parent  # noqa: PLC0415
        from statelib.errors.kinds import HindstreamError, RetryableError  # noqa: PLC0415
        from statelib.job.job import load_job  # noqa: PLC0415
        from statelib.settings.settings import load_settings  # noqa: PLC0415
        from statelib.settings.value_sources import TASK_ARGUMENTS  # noqa: PLC0415

        file = None if self.config is None else Path(self.config)
        try:
            with connected(self.conn_id, self.settings) as under:
                found = load_settings({**under, **settings}, file=file, given_by=TASK_ARGUMENTS)
                with task_as_parent(found):
                    return do(load_job(located(self.job), fork=found.fork), found)
        except RetryableError:
            raise
        except HindstreamError as error:
            raise AirflowFailException(str(error)) from error


def located(reference: str) -> str:
    """A job, or what has the form of one, as the task finds it that runs.

    A relative path is looked up from the folder of the DAG file, then from the root of its bundle: that of the version
    with which the DAG run was made.

    Args:
        reference: ``PACKAGE.MODULE:NAME``, or a path: ``jobs/flights.py:job``.

    Raises:
        ConfigurationError: There is no such file in these folders.
    """
    place, colon, name = reference.partition(":")
    if not place.endswith(".py") or Path(place).is_absolute():
        return reference
    context = get_current_context()
    dag_file = Path(context["dag"].fileloc)
    folders = [dag_file.parent, dag_file.resolve().parent]  # a DAG file may be a link to one in a project
    if bundle := getattr(context["ti"], "bundle_instance", None):
        folders.append(Path(bundle.path))
    for folder in folders:
        if (file := folder / place).is_file():
            return f"{file.resolve()}{colon}{name}"
    step = f"put it into {' or '.join(str(folder) for folder in dict.fromkeys(folders))}, or give an absolute path"
    raise ConfigurationError("there is no such file", file=place, next_step=step)
