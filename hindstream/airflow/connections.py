"""An Airflow connection as the environment in which the object stores' clients look for credentials.

Only the process of a task has them, while a phase runs, and what it starts: Spark's processes on this machine. They are
in no argument, template, XCom or setting, and Airflow masks a connection's password in its logs.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


@contextmanager
def store_credentials(conn_id: str | None) -> Iterator[None]:
    """Puts what a connection holds into the environment, in place of what is there, for as long as the context lasts.

    Args:
        conn_id: The connection; None: the environment stays as it is.

    Raises:
        ConfigurationError: The connection is of no object store, or holds no credentials.
    """
    before = dict(os.environ)
    if conn_id is not None:
        from airflow.sdk import BaseHook  # noqa: PLC0415  (parsing a DAG file must stay quick)

        os.environ.update(store_environment(BaseHook.get_connection(conn_id)))
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


def store_environment(connection: Any) -> dict[str, str]:
    """The variables that stand for a connection.

    Args:
        connection: Of the type ``aws``, ``google_cloud_platform``, ``wasb`` or ``adls``, with what Airflow's own hooks
            of these names read: keys, tokens, endpoint and region. A role to be assumed is not among it.

    Raises:
        ConfigurationError: It is of another type, or holds no credentials.
    """
    kind = connection.conn_type
    if kind not in _VARIABLES:
        raise _unusable(connection, f"is of the type {kind}", f"use one of the type {', '.join(_VARIABLES)}")
    extra = connection.extra_dejson
    if kind == "aws" and ("role_arn" in extra or "profile_name" in extra):
        raise _unusable(connection, "names a role or a profile", "give the role to the machine, or use access keys")
    found = {name: str(value) for name, value in _VARIABLES[kind](connection, extra).items() if value}
    if not found.keys() & _CREDENTIALS:
        raise _unusable(connection, "holds no credentials", "add them to the connection")
    return found


def _unusable(connection: Any, what: str, next_step: str) -> ConfigurationError:
    return ConfigurationError(f"the Airflow connection {what}", connection=connection.conn_id, next_step=next_step)


def _aws(connection: Any, extra: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "AWS_ACCESS_KEY_ID": connection.login or extra.get("aws_access_key_id"),
        "AWS_SECRET_ACCESS_KEY": connection.password or extra.get("aws_secret_access_key"),
        "AWS_SESSION_TOKEN": extra.get("aws_session_token"),
        "AWS_REGION": extra.get("region_name"),
        "AWS_ENDPOINT_URL": extra.get("endpoint_url"),
    }


def _google(_: Any, extra: Mapping[str, Any]) -> dict[str, Any]:
    key = extra.get("keyfile_dict")
    return {
        "GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(key) if isinstance(key, dict) else key,
        "GOOGLE_SERVICE_ACCOUNT": extra.get("key_path"),
    }


def _azure(connection: Any, extra: Mapping[str, Any]) -> dict[str, Any]:
    """With a tenant, login and password are those of an application, and the host is the account's."""
    if tenant := extra.get("tenant_id"):
        return {
            "AZURE_STORAGE_TENANT_ID": tenant,
            "AZURE_STORAGE_CLIENT_ID": connection.login,
            "AZURE_STORAGE_CLIENT_SECRET": connection.password,
            "AZURE_STORAGE_ACCOUNT_NAME": (connection.host or "").removeprefix("https://").partition(".")[0],
        }
    return {
        "AZURE_STORAGE_ACCOUNT_NAME": connection.login,
        "AZURE_STORAGE_ACCOUNT_KEY": connection.password,
        "AZURE_STORAGE_SAS_TOKEN": extra.get("sas_token"),
    }


_VARIABLES: dict[str, Callable[[Any, Mapping[str, Any]], dict[str, Any]]] = {
    "aws": _aws,
    "google_cloud_platform": _google,
    "wasb": _azure,
    "adls": _azure,
}

_CREDENTIALS = frozenset({
    "AWS_SECRET_ACCESS_KEY", "GOOGLE_SERVICE_ACCOUNT_KEY", "GOOGLE_SERVICE_ACCOUNT", "AZURE_STORAGE_CLIENT_SECRET",
    "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN",
})  # fmt: skip
