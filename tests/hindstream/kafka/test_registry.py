"""The registry's client without a registry: what it refuses, whom it trusts. The rest is in tests/kafka."""

from __future__ import annotations

import base64
import os
import pickle
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest

from hindstream.kafka.registry import SchemaRegistry
from statelib.errors.kinds import ConfigurationError, RetryableError

if TYPE_CHECKING:
    from collections.abc import Iterator


class Door(HTTPServer):
    """Lets nobody in, and remembers what they said."""

    def __init__(self) -> None:
        self.heard: list[dict[str, str]] = []
        self.status = 401
        door = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                door.heard.append(dict(self.headers))
                self.send_response(door.status)
                self.end_headers()

            def log_message(self, *args: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def door() -> Iterator[Door]:
    with Door() as door:
        thread = threading.Thread(target=door.serve_forever)
        thread.start()
        yield door
        door.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def nothing_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in [name for name in os.environ if name.startswith("SCHEMA_REGISTRY_")]:
        monkeypatch.delenv(variable)


def refused(door: Door) -> str:
    with pytest.raises(ConfigurationError, match="does not let us in.*SCHEMA_REGISTRY_BASIC_AUTH_USER_INFO") as caught:
        SchemaRegistry(door.url, retries=0).schema(1)
    return str(caught.value)


def test_credentials_come_from_the_environment_and_are_not_told(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    refused(door)
    monkeypatch.setenv("SCHEMA_REGISTRY_BASIC_AUTH_USER_INFO", "who:hush:hush")
    told = refused(door)
    monkeypatch.setenv("SCHEMA_REGISTRY_BEARER_AUTH_TOKEN", "t0ken")
    told += refused(door) + repr(SchemaRegistry(door.url)) + str(pickle.dumps(SchemaRegistry(door.url)))
    assert [heard.get("Authorization") for heard in door.heard] == [
        None, f"Basic {base64.b64encode(b'who:hush:hush').decode()}", "Bearer t0ken",
    ]  # fmt: skip
    assert not any(secret in told for secret in ("hush", "t0ken"))


def test_what_passes_is_tried_again_and_then_retryable(door: Door) -> None:
    door.status = 503
    with pytest.raises(RetryableError, match="cannot answer.*HTTP 503"):
        SchemaRegistry(door.url, retries=1).schema(1)
    assert len(door.heard) == 2


def test_another_server_is_no_registry_without_schemas(door: Door) -> None:
    door.status = 404
    with pytest.raises(ConfigurationError, match="check the address"):
        SchemaRegistry(door.url).schema(1)


def test_nobody_answers() -> None:
    with pytest.raises(RetryableError, match="does not answer.*refused"):
        SchemaRegistry("http://127.0.0.1:9", retries=0).schema(1)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://who:hush@registry", "holds credentials"),
        ("http://a, https://who@b", "holds credentials"),
        ("registry:8081", "no address"),
        ("", "no address"),
    ],
)
def test_an_address_that_cannot_be(url: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        SchemaRegistry(url)
    assert "hush" not in str(caught.value)


def test_files_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCHEMA_REGISTRY_SSL_CA_LOCATION", "/nowhere/ca.pem")
    with pytest.raises(ConfigurationError, match="cannot be set up.*SCHEMA_REGISTRY_"):
        SchemaRegistry("https://127.0.0.1:9").schema(1)
