"""The application of these tests, in one Java, and archives of what it reads."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from hindstream.porting.compiler import compiled
from hindstream.porting.jars import Jars
from hindstream.porting.maven import CENTRAL, Repository
from hindstream.porting.runner import Program, TopologyRunner
from statelib.commits.layout import topic_path
from statelib.storage import Storage
from statelib.topics.append import append_records
from statelib.topics.archive import TopicArchive, topic_schema
from tests.differential.kafka import PROJECT
from tests.kafka.java_runtime import executable
from tests.kafka.maven import build

SOURCE = Path(__file__).with_name("Ports.java")
NUMBER = pa.int64()
WORST_DISORDER_MS = 40


@pytest.fixture(scope="package")
def cache(tmp_path_factory) -> Path:
    """In the place of the user's."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="package")
def repository(cache) -> Repository:
    return Repository(CENTRAL, Path.home() / ".m2" / "repository", cache / "hindstream" / "java")


@pytest.fixture(scope="package")
def libraries() -> Path:
    """Kafka Streams and its test utilities."""
    return build(PROJECT) / "lib"


@pytest.fixture(scope="package")
def classes(libraries, repository) -> Path:
    """The application."""
    return compiled(SOURCE, sorted(libraries.glob("*.jar")), executable(), repository)


@pytest.fixture(scope="package")
def runner(classes, libraries, repository, tmp_path_factory):
    jars = Jars((classes, *sorted(libraries.glob("*.jar"))), "4.4.0")
    with TopologyRunner(Program(jars, java=executable()), repository, tmp_path_factory.mktemp("java")) as runner:
        yield runner


@pytest.fixture(scope="package")
def warehouse(tmp_path_factory) -> Storage:
    """``flights`` and ``weather`` in two partitions: texts and numbers, out of order, some keys in both."""
    storage = Storage(str(tmp_path_factory.mktemp("warehouse")))
    for seed, topic, count in ((1, "flights", 120), (0, "weather", 60)):
        archive_topic(storage, topic, records(Random(seed), count, seed))
    return storage


def records(rng: Random, count: int, rest: int) -> list[tuple[str, int, int]]:
    """Key, value, timestamp; topics of other rests, 0 or 1, have other times."""
    times = [500 + 500 * n // count - rng.randrange(WORST_DISORDER_MS) for n in range(count)]
    return [(f"k{rng.randrange(7)}", rng.randrange(14), 2 * time + rest) for time in times]


def archive_topic(
    storage: Storage, topic: str, rows: list[tuple[Any, Any, int]], value: pa.DataType = NUMBER, partitions: int = 2
) -> None:
    schema = topic_schema(pa.string(), value)
    archive = TopicArchive.ensure(storage.uri(topic_path(topic)), schema, partitions, topic=topic)
    columns = pa.schema([schema.field(name) for name in ("key", "value", "timestamp", "headers")])
    names = ("key", "value", "timestamp", "headers")
    headers = ([], [], [{"key": "third", "value": b"yes"}])
    records = [dict(zip(names, (*row, headers[n % 3]), strict=True)) for n, row in enumerate(rows)]
    table = pa.Table.from_pylist(records, columns)
    append_records(archive, table, attempt="a", app_id="test", app_version=1)
