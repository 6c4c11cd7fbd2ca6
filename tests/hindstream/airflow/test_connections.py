"""An Airflow connection gives the phases their credentials, and nobody else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hindstream import Storage
from hindstream.airflow.connections import settings_of, store_environment
from hindstream.airflow.provider import get_provider_info
from statelib.commits import CommitLog
from statelib.errors.kinds import ConfigurationError
from statelib.settings.settings import load_settings
from tests import command
from tests.hindstream.spark.orders import archive_orders, orders
from tests.storage.s3 import S3Server
from tests.storage.s3 import s3 as s3  # noqa: PLC0414

pytestmark = pytest.mark.airflow

CONNECTION = """
import json, sys
from airflow.sdk import Connection
print(json.dumps([[c.conn_type, c.login, c.password, c.host, c.extra_dejson, c.conn_id]
                  for c in (Connection(**given) for given in json.loads(sys.argv[1]))]))
"""

HIDES = """
import json, sys
from airflow.sdk._shared.secrets_masker import should_hide_value_for_key
print(json.dumps([name for name in json.loads(sys.argv[1]) if not should_hide_value_for_key(name)]))
"""

CASES: list[tuple[dict[str, Any], dict[str, str]]] = [
    (
        {"conn_type": "aws", "login": "i", "password": "k", "extra": {"region_name": "eu", "endpoint_url": "http://s"}},
        {"AWS_ACCESS_KEY_ID": "i", "AWS_SECRET_ACCESS_KEY": "k", "AWS_REGION": "eu", "AWS_ENDPOINT_URL": "http://s"},
    ),
    (
        {
            "conn_type": "aws",
            "extra": {"aws_access_key_id": "i", "aws_secret_access_key": "k", "aws_session_token": "t"},
        },
        {"AWS_ACCESS_KEY_ID": "i", "AWS_SECRET_ACCESS_KEY": "k", "AWS_SESSION_TOKEN": "t"},
    ),
    (
        {"conn_type": "google_cloud_platform", "extra": {"keyfile_dict": {"private_key": "k"}}},
        {"GOOGLE_SERVICE_ACCOUNT_KEY": '{"private_key": "k"}'},
    ),
    (
        {"conn_type": "wasb", "login": "account", "password": "key"},
        {"AZURE_STORAGE_ACCOUNT_NAME": "account", "AZURE_STORAGE_ACCOUNT_KEY": "key"},
    ),
    (
        {
            "conn_type": "adls",
            "login": "app",
            "password": "pw",
            "host": "https://lake.blob.core.windows.net",
            "extra": {"tenant_id": "t"},
        },
        {
            "AZURE_STORAGE_ACCOUNT_NAME": "lake",
            "AZURE_STORAGE_CLIENT_ID": "app",
            "AZURE_STORAGE_CLIENT_SECRET": "pw",
            "AZURE_STORAGE_TENANT_ID": "t",
        },
    ),
]

OURS = [
    (
        {
            "conn_type": "hindstream",
            "host": "s3://lake/w",
            "login": "i",
            "password": "k",
            "extra": {
                "endpoint_url": "http://s",
                "region_name": "eu",
                "kafka_bootstrap_servers": "b:9092",
                "kafka_security_protocol": "SASL_SSL",
                "kafka_sasl_username": "u",
                "kafka_sasl_password": "p",
                "kafka_ssl_ca_pem": "trusted",
                "kafka_ssl_private_key_pem": "key",
                "schema_registry_username": "r",
                "schema_registry_password": "s",
                "web_url": "https://lake.example.com",
            },
        },
        {
            "AWS_ACCESS_KEY_ID": "i",
            "AWS_SECRET_ACCESS_KEY": "k",
            "AWS_REGION": "eu",
            "AWS_ENDPOINT_URL": "http://s",
            "KAFKA_SASL_USERNAME": "u",
            "KAFKA_SASL_PASSWORD": "p",
            "KAFKA_SSL_KEY_PEM": "key",
            "SCHEMA_REGISTRY_BASIC_AUTH_USER_INFO": "r:s",
        },
        {
            "warehouse": "s3://lake/w",
            "storage_options": {"aws_endpoint_url": "http://s", "aws_region": "eu", "allow_http": "true"},
            "kafka": {"bootstrap.servers": "b:9092", "security.protocol": "SASL_SSL", "ssl.ca.pem": "trusted"},
            "web_url": "https://lake.example.com",
        },
    ),
    (
        {
            "conn_type": "hindstream",
            "host": "abfss://c@a.dfs.core.windows.net/w",
            "login": "app",
            "password": "pw",
            "extra": {"tenant_id": "t"},
        },
        {"AZURE_STORAGE_CLIENT_ID": "app", "AZURE_STORAGE_CLIENT_SECRET": "pw", "AZURE_STORAGE_TENANT_ID": "t"},
        {"warehouse": "abfss://c@a.dfs.core.windows.net/w"},
    ),
    ({"conn_type": "hindstream", "host": "/srv/w"}, {}, {"warehouse": "/srv/w"}),
]

UNUSABLE = [
    ({"conn_type": "postgres", "password": "hidden-1"}, "is of the type postgres"),
    ({"conn_type": "aws", "login": "id", "extra": {}}, "holds no credentials"),
    ({"conn_type": "aws", "extra": {"role_arn": "r", "aws_secret_access_key": "hidden-2"}}, "names a role"),
]


def test_airflow_hides_each_secret_of_the_form(tmp_path: Path) -> None:
    """By its name: the form's format hides it in the form alone."""
    (kind,) = get_provider_info()["connection-types"]
    secrets = [name for name, field in kind["conn-fields"].items() if field["schema"].get("format") == "password"]
    assert len(secrets) > 5
    done = command.run(sys.executable, "-c", HIDES, json.dumps(secrets), cwd=tmp_path, AIRFLOW_HOME=str(tmp_path))
    assert json.loads(done.stdout.splitlines()[-1]) == [], done.stderr


class Read:
    """What a task reads of a connection that Airflow has made."""

    def __init__(self, *read: Any) -> None:
        self.conn_type, self.login, self.password, self.host, self.extra_dejson, self.conn_id = read


@pytest.fixture(scope="module")
def connections(tmp_path_factory: pytest.TempPathFactory) -> list[Read]:
    """Those of `CASES`, `UNUSABLE` and `OURS`, made by Airflow in a process of its own."""
    home = tmp_path_factory.mktemp("airflow")
    all_given = [{"conn_id": "lake", **given} for given, *_ in [*CASES, *UNUSABLE, *OURS]]
    given = json.dumps([one | {"extra": json.dumps(one.get("extra", {}))} for one in all_given])
    done = command.run(sys.executable, "-c", CONNECTION, given, cwd=home, AIRFLOW_HOME=str(home))
    assert done.returncode == 0, done.stderr
    return [Read(*read) for read in json.loads(done.stdout.splitlines()[-1])]


MISSING = """
from airflow.sdk.exceptions import AirflowNotFoundException
from hindstream.airflow.connections import connected
from hindstream.airflow.spark import connected_cluster

for read in (lambda: connected("lakee", {}).__enter__(), lambda: connected_cluster("sparc", {})):
    try:
        read()
    except AirflowNotFoundException as error:
        print(error)
"""


def test_a_connection_that_is_not_there_is_named_with_what_adds_it(tmp_path: Path) -> None:
    """The task is tried again: a secrets backend that does not answer looks the same."""
    assert command.run("airflow", "db", "migrate", cwd=tmp_path, AIRFLOW_HOME=str(tmp_path)).returncode == 0
    done = command.run(sys.executable, "-c", MISSING, cwd=tmp_path, AIRFLOW_HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    said = "Airflow has no such connection (connection {0}). Next: airflow connections add {0} --conn-type {1}"
    assert done.stdout.splitlines()[-2:] == [
        said.format("lakee", "hindstream --conn-host WAREHOUSE"),
        said.format("sparc", "spark --conn-host spark://HOST --conn-port 7077"),
    ]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_what_a_connection_stands_for(connections: list[Read], number: int) -> None:
    assert store_environment(connections[number]) == CASES[number][1]


@pytest.mark.parametrize("number", range(len(UNUSABLE)))
def test_a_connection_that_cannot_be_used(connections: list[Read], number: int) -> None:
    with pytest.raises(ConfigurationError, match=UNUSABLE[number][1]) as error:
        store_environment(connections[len(CASES) + number])
    assert "connection lake" in str(error.value)
    assert "hidden" not in str(error.value)


@pytest.mark.parametrize("number", range(len(OURS)))
def test_a_connection_of_our_own_type_has_settings_too(connections: list[Read], number: int) -> None:
    connection = connections[len(CASES) + len(UNUSABLE) + number]
    assert store_environment(connection) == OURS[number][1]
    assert settings_of(connection) == OURS[number][2]


@pytest.fixture(scope="module")
def ran(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A slice that has run with credentials in a connection, and wrong ones in the environment."""
    folder = tmp_path_factory.mktemp("connected")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in s3.credentials.items():
            patch.setenv(name, value)
        archive_orders(
            load_settings({"warehouse": "s3://warehouse/connected", "storage_options": s3.settings}, environ={}),
            orders(),
        )
    key_id, secret = s3.credentials["AWS_ACCESS_KEY_ID"], s3.credentials["AWS_SECRET_ACCESS_KEY"]
    extra = {"endpoint_url": s3.endpoint, "region_name": "us-east-1"}
    connection = json.dumps({
        "conn_type": "hindstream", "host": "s3://warehouse/connected", "login": key_id, "password": secret,
        "extra": extra,
    })  # fmt: skip
    return folder, command.run(
        sys.executable, "-m", "tests.hindstream.airflow.connected", str(folder),
        cwd=Path(__file__).parents[3], AIRFLOW_CONN_LAKE=connection, AWS_SECRET_ACCESS_KEY="wrong",
    )  # fmt: skip


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
def test_a_slice_runs_with_the_credentials_of_a_connection(
    s3: S3Server, ran: tuple[Path, subprocess.CompletedProcess[str]]
) -> None:
    _, done = ran
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-1] == "00000001-1 wrong"  # after it, the environment is what it was
    pages = [page for _, page in json.loads(done.stdout.splitlines()[-2]) if page]
    assert "https://lake.example.com/jobs/orders/reports/00000001-1.html" in pages
    assert next(page for page in pages if "/reports/" not in page).startswith("https://lake.example.com/jobs/orders/")
    assert CommitLog(Storage("s3://warehouse/connected", s3.options), "orders").head_number() == 1


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
def test_airflow_keeps_no_credentials(s3: S3Server, ran: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    """Not in its database (XComs, rendered templates, serialised DAGs), its logs, the DAG's file; nor does Spark."""
    folder, done = ran
    texts = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert b"conn_id" in texts["airflow/dags/orders.py"]
    assert b"00000001-1" in texts["airflow/airflow.db"]
    assert b"will replay" in texts["airflow/backfill.log"]
    assert any(b"spark.eventLog.dir" in text for text in texts.values())
    texts |= {"output": done.stdout.encode(), "errors": done.stderr.encode()}
    told = [name for name, text in texts.items() for value in s3.credentials.values() if value.encode() in text]
    assert told == []
