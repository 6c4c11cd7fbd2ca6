"""What Airflow is told of Hindstream as a provider: the entry point ``apache_airflow_provider``.

Airflow reads this in each of its processes, so nothing is imported here. Extras of a connection have the names that
Airflow's own hooks of the stores have.
"""

from __future__ import annotations

from typing import Any

_INTEGRATION = "Hindstream"


def get_provider_info() -> dict[str, Any]:
    """As Airflow's ``provider_info.schema.json`` has it."""
    return {
        "package-name": "hindstream",
        "name": "Hindstream",
        "description": "Replays historical Kafka topics through Kafka-Streams-grade state on Spark, slice by slice.",
        "integrations": [{"integration-name": _INTEGRATION, "tags": ["software"]}],
        "operators": [
            {
                "integration-name": _INTEGRATION,
                "python-modules": [
                    "hindstream.airflow.operators",
                    "hindstream.airflow.phases",
                    "hindstream.airflow.archive",
                    "hindstream.airflow.repair",
                ],
            }
        ],
        "hooks": [{"integration-name": _INTEGRATION, "python-modules": ["hindstream.airflow.hook"]}],
        "connection-types": [
            {
                "connection-type": "hindstream",
                "hook-class-name": "hindstream.airflow.hook.HindstreamHook",
                "hook-name": "Hindstream",
                "conn-fields": {
                    "region_name": _field("Region of the store", "of Amazon S3 and compatible stores"),
                    "endpoint_url": _field("Endpoint of the store", "of a compatible store; none: Amazon's"),
                    "aws_session_token": _secret("Session token", "of Amazon's temporary credentials"),
                    "keyfile_dict": _secret("Google's key", "of a service account, as JSON"),
                    "sas_token": _secret("SAS token", "of Azure, in place of the account's key"),
                    "tenant_id": _field("Azure's tenant", "login and password are then those of an application"),
                    "kafka_bootstrap_servers": _field(
                        "Kafka: bootstrap servers", "HOST:PORT, with commas between them"
                    ),
                    "kafka_security_protocol": _field(
                        "Kafka: security protocol", None, ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
                    ),
                    "kafka_sasl_mechanism": _field(
                        "Kafka: SASL mechanism", None, ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
                    ),
                    "kafka_sasl_username": _field("Kafka: user", None),
                    "kafka_sasl_password": _secret("Kafka: password", None),
                    "kafka_ssl_ca_location": _field("Kafka: CA file", "a PEM file on each host that connects"),
                    "kafka_ssl_ca_pem": _field("Kafka: CA", "certificates to trust, as PEM, in place of a file"),
                    "kafka_ssl_certificate_pem": _field("Kafka: client certificate", "as PEM, for mutual TLS"),
                    "kafka_ssl_private_key_pem": _secret("Kafka: key of the certificate", "as PEM"),
                    "kafka_ssl_private_key_password": _secret("Kafka: password of the key", None),
                    "schema_registry_username": _field("Schema registry: user", None),
                    "schema_registry_password": _secret("Schema registry: password", None),
                    "schema_registry_token": _secret("Schema registry: token", "in place of user and password"),
                    "schema_registry_ssl_ca_location": _field(
                        "Schema registry: CA file", "a PEM file or a folder on each host that connects"
                    ),
                    "web_url": _field("Web address of the warehouse", "where its reports can be looked at"),
                },
                "ui-field-behaviour": {
                    "hidden-fields": ["schema", "port"],
                    "relabeling": {
                        "host": "Warehouse",
                        "login": "Key id or account of the store",
                        "password": "Secret key of the store",
                    },
                    "placeholders": {"host": "s3://lake/warehouse"},
                },
            }
        ],
        "extra-links": ["hindstream.airflow.links.RunReportLink", "hindstream.airflow.links.DataDocsLink"],
    }


def _field(label: str, description: str | None, values: list[str] | None = None) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": ["string", "null"]}
    if values is not None:
        schema["enum"] = [*values, None]
    return {"label": label, "schema": schema} | ({} if description is None else {"description": description})


def _secret(label: str, description: str | None) -> dict[str, Any]:
    field = _field(label, description)
    field["schema"]["format"] = "password"
    return field
