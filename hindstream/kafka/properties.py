"""Properties of Kafka's clients: those of librdkafka, and the same for the Java client that Spark reads with.

The setting ``kafka`` has librdkafka's names (``bootstrap.servers``, ``security.protocol``, ``ssl.ca.location``, ...).
What the Java client calls otherwise is translated; ``kafka_java`` adds what has no counterpart, under the Java client's
names. Credentials are no settings: they are looked for in the environment of the process that connects (`CREDENTIALS`).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.settings.settings import Settings

CREDENTIALS = (
    "sasl.username",
    "sasl.password",
    "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.secret",
    "ssl.key.password",
    "ssl.key.pem",
    "ssl.certificate.pem",
    "ssl.keystore.password",
)
"""Properties that the environment may hold: ``sasl.password`` as ``KAFKA_SASL_PASSWORD``, and so on."""

_SAME = ("bootstrap.servers", "client.id", "client.rack", "security.protocol", "sasl.kerberos.service.name")
_LOGIN = "org.apache.kafka.common.security"


def client_properties(settings: Settings, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """For librdkafka.

    Args:
        settings: ``kafka`` has them.
        environ: Where credentials are; None: the environment of the process.

    Raises:
        ConfigurationError: No ``bootstrap.servers`` are set.
    """
    environ = os.environ if environ is None else environ
    if not settings.kafka.get("bootstrap.servers"):
        step = "--set kafka.bootstrap.servers=HOST:PORT, or [kafka] in hindstream.toml"
        raise ConfigurationError("no Kafka cluster is set", setting="kafka.bootstrap.servers", next_step=step)
    found = {name: environ[variable] for name in CREDENTIALS if (variable := variable_of(name)) in environ}
    return dict(settings.kafka) | found


def variable_of(credential: str) -> str:
    """The environment variable of a credential."""
    return f"KAFKA_{credential.replace('.', '_').upper()}"


def java_properties(settings: Settings, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """For the Java client, without what librdkafka alone has; arguments and errors as for `client_properties`.

    Certificates and keys are read here, so that Spark's executors need no files.

    Raises:
        ConfigurationError: Also: a file is not there, or a property has no counterpart in Java.
    """
    given = client_properties(settings, environ)
    translated = {name: given[name] for name in _SAME if name in given}
    for translate in (_sasl, _trusted, _own_certificate, _host_names):
        translated |= translate(given)
    return translated | dict(settings.kafka_java)


def _sasl(given: Mapping[str, str]) -> dict[str, str]:
    mechanism = given.get("sasl.mechanism", given.get("sasl.mechanisms"))
    if mechanism is None or "sasl" not in given.get("security.protocol", "").lower():
        return {}
    properties = {"sasl.mechanism": mechanism}
    user = {"username": given.get("sasl.username"), "password": given.get("sasl.password")}
    if mechanism == "PLAIN":
        properties["sasl.jaas.config"] = _jaas("plain.PlainLoginModule", user)
    elif mechanism.startswith("SCRAM-"):
        properties["sasl.jaas.config"] = _jaas("scram.ScramLoginModule", user)
    elif mechanism == "OAUTHBEARER" and given.get("sasl.oauthbearer.method", "").lower() == "oidc":
        client = {
            "clientId": given.get("sasl.oauthbearer.client.id"),
            "clientSecret": given.get("sasl.oauthbearer.client.secret"),
            "scope": given.get("sasl.oauthbearer.scope"),
        }
        properties |= {
            "sasl.jaas.config": _jaas("oauthbearer.OAuthBearerLoginModule", client),
            "sasl.login.callback.handler.class": f"{_LOGIN}.oauthbearer.OAuthBearerLoginCallbackHandler",
            "sasl.oauthbearer.token.endpoint.url": given.get("sasl.oauthbearer.token.endpoint.url", ""),
        }
    return properties


def _jaas(module: str, options: Mapping[str, str | None]) -> str:
    def quoted(value: str) -> str:
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'

    listed = "".join(f" {name}={quoted(value)}" for name, value in options.items() if value is not None)
    return f"{_LOGIN}.{module} required{listed};"


def _trusted(given: Mapping[str, str]) -> dict[str, str]:
    if given.get("enable.ssl.certificate.verification", "true").lower() == "false":
        raise ConfigurationError(
            "the Java client cannot do without verified certificates",
            setting="kafka.enable.ssl.certificate.verification",
            next_step="give the certificate to trust: kafka.ssl.ca.location",
        )
    pem = _pem(given, "ssl.ca")
    return {} if pem is None else {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": pem}


def _own_certificate(given: Mapping[str, str]) -> dict[str, str]:
    if "ssl.keystore.location" in given:
        names = ("ssl.keystore.location", "ssl.keystore.password", "ssl.key.password")
        return {"ssl.keystore.type": "PKCS12"} | {name: given[name] for name in names if name in given}
    chain, key = _pem(given, "ssl.certificate"), _pem(given, "ssl.key")
    if chain is None or key is None:
        return {}
    properties = {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": chain, "ssl.keystore.key": key}
    return properties | ({"ssl.key.password": given["ssl.key.password"]} if "ssl.key.password" in given else {})


def _pem(given: Mapping[str, str], name: str) -> str | None:
    """What ``<name>.pem`` holds, or the file that ``<name>.location`` names."""
    if (content := given.get(f"{name}.pem")) is not None:
        return content
    if (location := given.get(f"{name}.location")) is None:
        return None
    try:
        return Path(location).read_text()
    except OSError as error:
        what = f"the file cannot be read: {error.strerror}"
        raise ConfigurationError(what, setting=f"kafka.{name}.location", file=location) from None


def _host_names(given: Mapping[str, str]) -> dict[str, str]:
    name = "ssl.endpoint.identification.algorithm"
    return {name: "" if given[name] == "none" else given[name]} if name in given else {}
