"""Opens the warehouse of a task in Airflow's API server, which serves others too.

The credentials of a connection go to the store's client alone, never into the environment of the process.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from airflow.models.connection import Connection
from airflow.models.dag import DagModel
from airflow.sdk.exceptions import AirflowException

from hindstream.airflow.connections import settings_of, store_environment, under
from hindstream.airflow.probe import QUICK
from statelib.errors.kinds import ConfigurationError
from statelib.settings.settings import load_settings
from statelib.settings.storage_options import STORE_PREFIXES
from statelib.settings.value_sources import TASK_ARGUMENTS
from statelib.storage.objects import local_directory
from statelib.storage.storage import Storage

if TYPE_CHECKING:
    from hindstream.airflow.page.places import Fields


def open_warehouse(dag_id: str, fields: Fields) -> Storage:
    """The warehouse of an operator with these fields.

    Raises:
        ConfigurationError: There is no such connection, a setting cannot be, or there is no such folder here.
    """
    found, credentials = _connected(dag_id, fields.conn_id)
    file = None if fields.config is None else Path(fields.config)
    settings = load_settings({**QUICK, **under(found, fields.settings)}, file=file, given_by=TASK_ARGUMENTS)
    directory = local_directory(settings.warehouse)
    if directory is not None and not directory.is_dir():
        step = (
            "put the warehouse where Airflow's API server can read it, into an object store or on a disk that it shares"
            " with the workers; or let a web server show it, and set web_url"
        )
        what = "the warehouse is a folder that this machine does not have"
        raise ConfigurationError(what, file=str(directory), next_step=step)
    return Storage(settings.warehouse, settings.store_options | credentials)


def _connected(dag_id: str, conn_id: str | None) -> tuple[dict[str, object], dict[str, str]]:
    """Settings of a connection, and its credentials as options of the store."""
    if conn_id is None:
        return {}, {}
    try:
        connection = Connection.get_connection_from_secrets(conn_id, team_name=DagModel.get_team_name(dag_id))
    except AirflowException as error:
        step = f"add it under Admin, Connections, or look at it: airflow connections get {conn_id}"
        what = f"Airflow does not give the connection ({type(error).__name__})"
        raise ConfigurationError(what, connection=conn_id, next_step=step) from error
    variables = {name.lower(): value for name, value in store_environment(connection).items()}
    return settings_of(connection), {k: v for k, v in variables.items() if k.startswith(STORE_PREFIXES)}
