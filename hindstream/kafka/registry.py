"""A schema registry: Confluent's, and others that speak its API (Apicurio under ``/apis/ccompat/v7``, Karapace).

Credentials and trusted certificates come from the environment of the process, under the names of the client's
properties. Credentials are never in a setting, description or message::

    SCHEMA_REGISTRY_BASIC_AUTH_USER_INFO           user:password
    SCHEMA_REGISTRY_BEARER_AUTH_TOKEN              a bearer token
    SCHEMA_REGISTRY_BEARER_AUTH_LOGICAL_CLUSTER    what goes with a token in Confluent Cloud
    SCHEMA_REGISTRY_BEARER_AUTH_IDENTITY_POOL_ID   the same
    SCHEMA_REGISTRY_SSL_CA_LOCATION                a file or folder of certificates to trust
    SCHEMA_REGISTRY_SSL_CERTIFICATE_LOCATION       the client's own, a file
    SCHEMA_REGISTRY_SSL_KEY_LOCATION, _SSL_KEY_PASSWORD
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import confluent_kafka.schema_registry as confluent
from confluent_kafka.schema_registry.common._httpx_compat import httpx

from statelib.errors.kinds import ConfigurationError, RetryableError
from statelib.serdes.schema_source import RegisteredSchema

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Answer = TypeVar("Answer")

_PREFIX = "SCHEMA_REGISTRY_"
_TOKEN = "bearer.auth.token"  # noqa: S105 - its name
_CLUSTER = "bearer.auth.logical.cluster"
_VARIABLES = {
    f"{_PREFIX}{name.upper().replace('.', '_')}": name
    for name in (
        "basic.auth.user.info", _TOKEN, _CLUSTER, "bearer.auth.identity.pool.id", "ssl.ca.location",
        "ssl.certificate.location", "ssl.key.location", "ssl.key.password",
    )
}  # fmt: skip
"""The client's properties that come from the environment, by their variables."""

_SCHEMA_NOT_FOUND = 40403
_NOT_FOUND = frozenset({40401, 40402, _SCHEMA_NOT_FOUND})
_PASSING = frozenset({408, 429, 500, 502, 503, 504})
_REFUSED = frozenset({401, 403})


@dataclass(frozen=True, slots=True)
class SchemaRegistry:
    """A `statelib.serdes.schema_source.SchemaSource` over HTTP, which caches the answers.

    Args:
        url: Such as ``https://registry.example.com``; separate several with commas.
        request_timeout_ms: The timeout of one try.
        retries: The number of retries; pauses between them are a second and more, with jitter.

    Raises:
        ConfigurationError: The address is not valid, or contains credentials.
    """

    url: str
    request_timeout_ms: int = 10_000
    retries: int = 3

    def __post_init__(self) -> None:
        for url in self.url.split(","):
            parts = urlsplit(url.strip())
            if parts.username is not None or parts.password is not None:
                step = f"set {_PREFIX}BASIC_AUTH_USER_INFO=user:password in the environment instead"
                raise ConfigurationError("the address of the schema registry holds credentials", next_step=step)
            if parts.scheme not in {"http", "https"} or not parts.netloc:
                step = "write https://registry.example.com"
                raise ConfigurationError(f"{url!r} is no address of a schema registry", next_step=step)

    def schema(self, schema_id: int) -> RegisteredSchema | None:
        """See `SchemaSource`."""
        client = self._client()
        try:
            return _registered(client, self._asked(lambda: client.get_schema(schema_id)), self._asked)
        except _NotThereError as error:
            if error.code == _SCHEMA_NOT_FOUND:
                return None
            raise ConfigurationError(error.said, registry=self.url, schema=schema_id) from None

    def latest(self, subject: str) -> RegisteredSchema:
        """The newest schema under a subject, to declare a serde with.

        Raises:
            ConfigurationError: There is no such subject.
            RetryableError: The registry does not answer.
        """
        client = self._client()
        try:
            found = self._asked(lambda: client.get_latest_version(subject))
            return _registered(client, found.schema, self._asked)
        except _NotThereError as error:
            step = "check the subject: most are a topic's name and -value or -key"
            raise ConfigurationError(error.said, registry=self.url, subject=subject, next_step=step) from None

    def id_of(self, subject: str, schema: RegisteredSchema, *, register: bool) -> int:
        """See `SchemaSource`; what a schema uses is looked up, or registered, under its name."""
        found = self._version(subject, schema, register=register)
        if found.schema_id is None:
            raise ConfigurationError("the registry says no id of the schema", registry=self.url, subject=subject)
        return int(found.schema_id)

    def _version(self, subject: str, schema: RegisteredSchema, *, register: bool) -> Any:
        client = self._client()
        references = [
            confluent.SchemaReference(name, name, self._version(name, used, register=register).version)
            for name, used in schema.references
        ]
        wanted = confluent.Schema(schema.text, schema.kind, references)
        if register:
            self._asked(lambda: client.register_schema(subject, wanted))
        try:
            return self._asked(lambda: client.lookup_schema(subject, wanted))
        except _NotThereError as error:
            raise ConfigurationError(
                f"the schema is not registered: {error.said}",
                registry=self.url,
                subject=subject,
                next_step="register it, or give the serde its id (schema_id), or register=True",
            ) from None

    def _client(self) -> confluent.SchemaRegistryClient:
        found = {name: os.environ[variable] for variable, name in _VARIABLES.items() if variable in os.environ}
        return _client(self, tuple(found.items()), os.getpid())

    def _asked(self, ask: Callable[[], Answer]) -> Answer:
        try:
            return ask()
        except confluent.SchemaRegistryError as error:
            raise self._meaning(error) from None
        except httpx.TransportError as error:
            if "CERTIFICATE" in str(error):
                step = f"set {_PREFIX}SSL_CA_LOCATION to a file with the registry's certificate authority"
                raise ConfigurationError(f"{error}", registry=self.url, next_step=step) from None
            what = f"the schema registry does not answer: {str(error) or type(error).__name__}"
            raise RetryableError(what, registry=self.url, next_step="see that it runs, then the same again") from None

    def _meaning(self, error: confluent.SchemaRegistryError) -> Exception:
        status, said = error.http_status_code, str(error.error_message)
        if error.error_code in _NOT_FOUND:
            return _NotThereError(error.error_code, said)
        if status in _PASSING:
            what = f"the schema registry cannot answer: {said} (HTTP {status})"
            return RetryableError(what, registry=self.url, next_step="see what its log says, then the same again")
        if status in _REFUSED:
            what = f"the schema registry does not let us in (HTTP {status})"
            step = f"check {_PREFIX}BASIC_AUTH_USER_INFO or {_PREFIX}BEARER_AUTH_TOKEN in the environment"
        else:
            what = f"the schema registry refuses: {said} (HTTP {status})"
            step = "check the address, and what the registry allows"
        return ConfigurationError(what, registry=self.url, next_step=step)


class _NotThereError(Exception):
    """There is no such subject, version or schema."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(said)
        self.code, self.said = code, said


def _registered(client: confluent.SchemaRegistryClient, schema: Any, asked: Any) -> RegisteredSchema:
    """A schema with what it uses, asked for by subject and version."""
    references = []
    for reference in schema.references or ():
        used = asked(lambda reference=reference: client.get_version(reference.subject, reference.version))
        references.append((reference.name, _registered(client, used.schema, asked)))
    return RegisteredSchema(schema.schema_type or "AVRO", schema.schema_str, tuple(references))


@lru_cache(maxsize=16)
def _client(
    registry: SchemaRegistry, environment: tuple[tuple[str, str], ...], process: int
) -> confluent.SchemaRegistryClient:
    """One a process: a connection does not survive a fork."""
    del process
    found = dict(environment)
    if _TOKEN in found:
        found = {"bearer.auth.credentials.source": "STATIC_TOKEN", _CLUSTER: "none"} | found
        found.pop("basic.auth.user.info", None)
    own = {"url": registry.url, "timeout": registry.request_timeout_ms / 1000, "max.retries": registry.retries}
    try:
        return confluent.SchemaRegistryClient(own | found)
    except (OSError, ValueError) as error:
        what = f"the client of the schema registry cannot be set up: {error}"
        raise ConfigurationError(what, next_step=f"check the variables {_PREFIX}* in the environment") from None
