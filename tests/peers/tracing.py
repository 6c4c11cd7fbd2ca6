"""Kafka Streams' own tests, run with an agent that records what their ``TopologyTestDriver`` do."""

from __future__ import annotations

import csv
import os
import subprocess
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.kafka.java_runtime import executable
from tests.kafka.maven import build, with_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PROJECT = Path(__file__).with_name("tracer")
_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx1g", "-Dlog4j2.level=INFO")
_OPENED = ("java.base/java.util", "java.base/java.lang", "java.base/java.util.concurrent")
_MANIFEST = "Manifest-Version: 1.0\nPremain-Class: hindstream.peers.Agent\nCan-Retransform-Classes: true\n\n"
_DRIVING = (b"TestDriver", b"AbstractJoinIntegrationTest")
_STREAMS = "org.apache.kafka.streams"
_DESCRIBING = {
    f"{_STREAMS}.kstream.RepartitionTopicNamingTest",
    f"{_STREAMS}.kstream.internals.SuppressTopologyTest",
    f"{_STREAMS}.kstream.internals.graph.StreamsGraphTest",
    f"{_STREAMS}.scala.TopologyTest",
}
"""Test classes without a driver, of which the topologies' text is compared."""
_OF_WHAT_IS_GONE = {
    f"{_STREAMS}.integration.KStreamTransformIntegrationTest",
    f"{_STREAMS}.kstream.internals.KStreamBranchTest",
    f"{_STREAMS}.kstream.internals.KStreamTransformTest",
    f"{_STREAMS}.kstream.internals.KStreamTransformValuesTest",
}
"""Tests of the older release of methods that Kafka Streams 4 has no more."""


@dataclass(frozen=True)
class Ran:
    """A test of Kafka Streams.

    Attributes:
        name: ``class#method``, with its arguments behind it if it has some.
        status: ``successful``, ``failed``, ``aborted``, ``skipped`` or ``not run``.
        drivers: How many drivers it has made.
        error: The first line of its error, if it has failed.
    """

    name: str
    status: str
    drivers: int
    error: str


def test_classes(version: str | None) -> list[str]:
    """The classes of the published test jars in which a test may make a driver, in alphabetical order.

    Those of an older release are among them if the newer one has published none of that name.

    Args:
        version: See `trace`.
    """
    target = _built(version)
    found: set[str] = set()
    for jar in (*(target / "lib").glob("kafka-streams-*-test.jar"), *(target / "older").glob("*.jar")):
        with zipfile.ZipFile(jar) as archive:
            found |= set(_with_a_driver(archive))
    return sorted(found - _OF_WHAT_IS_GONE)


def _with_a_driver(archive: zipfile.ZipFile) -> Iterator[str]:
    for name in archive.namelist():
        if name.endswith("Test.class") and "$" not in name:
            of_class, content = name.removesuffix(".class").replace("/", "."), archive.read(name)
            if of_class in _DESCRIBING or any(mark in content for mark in _DRIVING):
                yield of_class


def _built(version: str | None) -> Path:
    return build(PROJECT if version is None else with_kafka(PROJECT, version))


def trace(classes: Sequence[str], folder: Path, version: str | None = None) -> None:
    """Runs test classes; the folder has a recording of each driver then, and what `tests_of` reads.

    Args:
        classes: Their names.
        folder: An empty one.
        version: Of the library that they run with; None: the one of the project's ``pom.xml``.
    """
    target = _built(version)
    agent = folder / "agent.jar"
    with zipfile.ZipFile(agent, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", _MANIFEST)
    opened = [f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED]
    class_path = os.pathsep.join((str(target / "classes"), f"{target / 'lib'}/*", f"{target / 'older'}/*"))
    command: list[str | Path] = [
        executable(), *_OPTIONS, *opened, f"-javaagent:{agent}", "-cp", class_path, "hindstream.peers.Main", folder,
        *classes,
    ]  # fmt: skip
    with (folder / "log").open("wb") as log:
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=True, cwd=folder)


def tests_of(folder: Path) -> list[Ran]:
    """The tests that were traced into a folder."""
    with (folder / "tests.tsv").open(newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [Ran(name, status, int(drivers), error) for name, status, drivers, error in rows]
