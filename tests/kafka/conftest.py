"""Servers that the tests of this process share; each test takes names of its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.kafka.broker import Broker
from tests.kafka.registry import SchemaRegistry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.kafka.cluster import Cluster


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker without security."""
    broker = Broker(tmp_path_factory.mktemp("broker"))
    broker.start()
    yield broker
    broker.kill()  # nobody wants its files any more


@pytest.fixture(scope="session")
def secured_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One that wants TLS and a password."""
    broker = Broker(tmp_path_factory.mktemp("secured-broker"), secured=True)
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture
def cluster(broker: Broker) -> Cluster:
    """A client of the broker without security."""
    return broker.cluster


@pytest.fixture
def unique(request: pytest.FixtureRequest) -> str:
    """A prefix for names of topics and groups that no other test has."""
    return re.sub(r"[^a-zA-Z0-9]+", "-", request.node.nodeid.split("/")[-1])[-150:].strip("-")


@pytest.fixture(scope="session")
def schema_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a schema registry that speaks Confluent's API; each test takes subjects of its own."""
    registry = SchemaRegistry(tmp_path_factory.mktemp("schema-registry"))
    registry.start()
    yield registry.url
    registry.kill()
