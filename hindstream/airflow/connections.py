"""An Airflow connection as settings, and as the environment in which clients look for credentials.

A connection of the type ``hindstream`` has the warehouse, its object store, Kafka and a schema registry;
`hindstream.airflow.hook` is its form. One of a store's own type has the store's credentials alone.

Only the process of a task has credentials, while a phase runs, and what it starts: Spark's processes on this machine.
They are in no argument, template, XCom or setting, and Airflow masks a connection's secret fields in its logs.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

OWN_TYPE = "hindstream"
"""The type of connections of ours."""


@contextmanager
def connected(conn_id: str | None, settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Puts a connection's credentials into the environment, in place of what is there, while the context lasts.

    Args:
        conn_id: The connection; None: the environment stays as it is.
        settings: Settings that go before those of the connection; of options such as ``storage_options``, one by one.

    Yields:
        The settings of both.

    Raises:
        ConfigurationError: The connection cannot be used: see `store_environment`.
    """
    before = dict(os.environ)
    found: dict[str, Any] = {}
    if conn_id is not None:
        connection = named_connection(conn_id, "hindstream --conn-host WAREHOUSE")
        os.environ.update(store_environment(connection))
        found = settings_of(connection)
    try:
        yield under(found, settings)
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


def named_connection(conn_id: str, like: str) -> Any:
    """A connection of Airflow.

    Args:
        conn_id: Its name.
        like: The type of one that is missing, and what else ``airflow connections add`` needs.

    Raises:
        AirflowNotFoundException: There is none of this name, or a secrets backend that has it does not answer. Airflow
            tells no difference, so another try is in order.
    """
    from airflow.sdk import BaseHook  # noqa: PLC0415 - parsing a DAG file must stay quick
    from airflow.sdk.exceptions import AirflowNotFoundException  # noqa: PLC0415

    try:
        return BaseHook.get_connection(conn_id)
    except AirflowNotFoundException as error:
        step = f"airflow connections add {conn_id} --conn-type {like}"
        told = ConfigurationError("Airflow has no such connection", connection=conn_id, next_step=step)
        raise AirflowNotFoundException(str(told)) from error


def under(found: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a connection, and over them others; of mappings such as ``storage_options`` entry by entry."""
    return {
        **found,
        **{
            name: {**found[name], **value} if isinstance(value, dict) and name in found else value
            for name, value in settings.items()
        },
    }


def settings_of(connection: Any) -> dict[str, Any]:
    """The settings that a connection of the type ``hindstream`` has; one of another type has none."""
    if connection.conn_type != OWN_TYPE:
        return {}
    extra = connection.extra_dejson
    endpoint, region = extra.get("endpoint_url"), extra.get("region_name")
    storage = {
        "aws_endpoint_url": endpoint,
        "aws_region": region,
        "allow_http": "true" if str(endpoint).startswith("http://") else None,
    }
    kafka = {name: extra.get(field) for field, name in _KAFKA.items()}
    found = {
        "warehouse": connection.host,
        "web_url": extra.get("web_url"),
        "storage_options": _filled(storage),
        "kafka": _filled(kafka),
    }
    return _filled(found)


def store_environment(connection: Any) -> dict[str, str]:
    """The variables that stand for a connection's credentials.

    Args:
        connection: Of the type ``hindstream``, or of the type ``aws``, ``google_cloud_platform``, ``wasb`` or ``adls``
            with what Airflow's own hooks of these names read: keys, tokens, endpoint and region. A role to be assumed
            is not among it.

    Raises:
        ConfigurationError: It is of another type, or of a store's type and holds no credentials.
    """
    kind = connection.conn_type
    if kind == OWN_TYPE:
        return _own(connection)
    if kind not in _VARIABLES:
        raise _unusable(
            connection, f"is of the type {kind}", f"use one of the type {', '.join([OWN_TYPE, *_VARIABLES])}"
        )
    extra = connection.extra_dejson
    if kind == "aws" and ("role_arn" in extra or "profile_name" in extra):
        raise _unusable(connection, "names a role or a profile", "give the role to the machine, or use access keys")
    found = _texts(_VARIABLES[kind](connection, extra))
    if not found.keys() & _CREDENTIALS:
        raise _unusable(connection, "holds no credentials", "add them to the connection")
    return found


def _own(connection: Any) -> dict[str, str]:
    """Without credentials of the store, the role of the machine counts, as it does without a connection."""
    scheme = urlsplit(connection.host or "").scheme
    extra = connection.extra_dejson
    found: dict[str, Any] = _STORES[scheme](connection, extra) if scheme in _STORES else {}
    if scheme in {"abfss", "az"} and extra.get("tenant_id"):
        del found["AZURE_STORAGE_ACCOUNT_NAME"]  # the address of the warehouse has it
    if user := extra.get("schema_registry_username"):
        found["SCHEMA_REGISTRY_BASIC_AUTH_USER_INFO"] = f"{user}:{extra.get('schema_registry_password') or ''}"
    return _texts({**found, **{variable: extra.get(field) for field, variable in _CLIENT_CREDENTIALS.items()}})


def _filled(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in _filled(values).items()}


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

_STORES = {"s3": _aws, "s3a": _aws, "gs": _google, "abfss": _azure, "az": _azure}
"""By the scheme of a warehouse's address."""

_KAFKA = {
    "kafka_bootstrap_servers": "bootstrap.servers",
    "kafka_security_protocol": "security.protocol",
    "kafka_sasl_mechanism": "sasl.mechanism",
    "kafka_ssl_ca_location": "ssl.ca.location",
    "kafka_ssl_ca_pem": "ssl.ca.pem",
}
"""The settings below ``kafka``, by the fields that have them."""
_CLIENT_CREDENTIALS = {
    "kafka_sasl_username": "KAFKA_SASL_USERNAME",
    "kafka_sasl_password": "KAFKA_SASL_PASSWORD",
    "kafka_ssl_certificate_pem": "KAFKA_SSL_CERTIFICATE_PEM",
    "kafka_ssl_private_key_pem": "KAFKA_SSL_KEY_PEM",
    "kafka_ssl_private_key_password": "KAFKA_SSL_KEY_PASSWORD",
    "schema_registry_token": "SCHEMA_REGISTRY_BEARER_AUTH_TOKEN",
    "schema_registry_ssl_ca_location": "SCHEMA_REGISTRY_SSL_CA_LOCATION",
}
"""What `hindstream.kafka.properties` and `hindstream.kafka.registry` look for, by the fields that have it."""

_CREDENTIALS = frozenset({
    "AWS_SECRET_ACCESS_KEY", "GOOGLE_SERVICE_ACCOUNT_KEY", "GOOGLE_SERVICE_ACCOUNT", "AZURE_STORAGE_CLIENT_SECRET",
    "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN",
})  # fmt: skip
