"""librdkafka's properties, and the same in the Java client's names."""

from __future__ import annotations

import pytest

from hindstream.kafka.properties import client_properties, java_properties
from statelib.errors.kinds import ConfigurationError
from statelib.settings.settings import load_settings

SERVERS = {"bootstrap.servers": "one:9092,two:9092"}


def settings(kafka, **more):
    return load_settings({"kafka": SERVERS | kafka, **more}, environ={})


def test_plain():
    assert client_properties(settings({}), {}) == SERVERS
    assert java_properties(settings({"client.id": "me"}), {}) == SERVERS | {"client.id": "me"}


def test_credentials_come_from_the_environment():
    environ = {"KAFKA_SASL_USERNAME": "me", "KAFKA_SASL_PASSWORD": 'se"cr\\et', "KAFKA_OTHER": "x"}
    given = settings({"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512"})
    mine = client_properties(given, environ)
    assert (mine["sasl.username"], mine["sasl.password"]) == ("me", 'se"cr\\et')
    assert "KAFKA_OTHER" not in mine
    java = java_properties(given, environ)
    assert java["sasl.mechanism"] == "SCRAM-SHA-512"
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    assert java["sasl.jaas.config"] == f'{module} required username="me" password="se\\"cr\\\\et";'


def test_plain_passwords():
    given = settings({"security.protocol": "sasl_plaintext", "sasl.mechanisms": "PLAIN"})
    java = java_properties(given, {"KAFKA_SASL_USERNAME": "a", "KAFKA_SASL_PASSWORD": "b"})
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    assert java["sasl.jaas.config"] == f'{module} required username="a" password="b";'


def test_tokens():
    given = settings(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.scope": "kafka",
            "sasl.oauthbearer.token.endpoint.url": "https://id/token",
        }
    )
    environ = {"KAFKA_SASL_OAUTHBEARER_CLIENT_ID": "me", "KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET": "s"}
    java = java_properties(given, environ)
    assert java["sasl.jaas.config"].endswith(' required clientId="me" clientSecret="s" scope="kafka";')
    assert java["sasl.oauthbearer.token.endpoint.url"] == "https://id/token"
    assert java["sasl.login.callback.handler.class"].endswith(".OAuthBearerLoginCallbackHandler")


def test_certificates_are_read_where_the_driver_is(tmp_path):
    for name in ("ca", "certificate", "key"):
        (tmp_path / name).write_text(f"the {name}")
    given = settings(
        {
            "security.protocol": "SSL",
            "ssl.ca.location": str(tmp_path / "ca"),
            "ssl.certificate.location": str(tmp_path / "certificate"),
            "ssl.key.location": str(tmp_path / "key"),
            "ssl.endpoint.identification.algorithm": "none",
        }
    )
    assert java_properties(given, {"KAFKA_SSL_KEY_PASSWORD": "p"}) == SERVERS | {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "the ca",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "the certificate",
        "ssl.keystore.key": "the key",
        "ssl.key.password": "p",
        "ssl.endpoint.identification.algorithm": "",
    }
    (tmp_path / "ca").unlink()
    with pytest.raises(ConfigurationError, match=r"cannot be read: No such file.*kafka\.ssl\.ca\.location"):
        java_properties(given, {})


def test_a_key_store():
    given = settings({"security.protocol": "SSL", "ssl.keystore.location": "/keys/me.p12"})
    java = java_properties(given, {"KAFKA_SSL_KEYSTORE_PASSWORD": "p"})
    assert java["ssl.keystore.type"] == "PKCS12"
    assert (java["ssl.keystore.location"], java["ssl.keystore.password"]) == ("/keys/me.p12", "p")


def test_what_java_calls_otherwise_may_be_added():
    given = settings({}, kafka_java={"fetch.max.bytes": "1000", "client.id": "spark"})
    assert java_properties(given, {}) == SERVERS | {"fetch.max.bytes": "1000", "client.id": "spark"}


def test_what_java_cannot_do_is_refused():
    with pytest.raises(ConfigurationError, match="cannot do without verified certificates"):
        java_properties(settings({"enable.ssl.certificate.verification": "false"}), {})


def test_no_cluster_is_set():
    with pytest.raises(ConfigurationError, match=r"no Kafka cluster is set \(setting kafka\.bootstrap\.servers\)"):
        client_properties(load_settings({}, environ={}), {})


@pytest.mark.parametrize(
    "name", ["sasl.password", "ssl.key.password", "ssl.key.pem", "sasl.jaas.config", "sasl.oauthbearer.client.secret"]
)
def test_credentials_are_no_settings(name):
    variable = f"KAFKA_{name.replace('.', '_').upper()}"
    with pytest.raises(ConfigurationError, match=f"{name} holds a credential: set {variable} in the environment"):
        settings({name: "x"})
