"""A Kafka Streams application whose topology can be run: its jar, and all that Java needs besides."""

from __future__ import annotations

import re
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hindstream.porting.jars import jars_of
from hindstream.porting.maven import Repository
from hindstream.porting.runner import Program, TopologyRunner
from statelib.settings.semantics import semantics_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hindstream.porting.protocol import Ready
    from statelib.settings.semantics import Semantics


@dataclass(frozen=True, slots=True)
class Application:
    """Where it is.

    Attributes:
        jar: A jar, one of Spring Boot, or a folder of classes.
        topology: ``CLASS::METHOD``: what gives its topology.
        class_path: More of it, as Java writes it; None: the jar has all.
        config: Its properties; None: none.
        test_utils: The jar of ``kafka-streams-test-utils``; None: that of its version of Kafka is fetched.
        repository: The URL of a Maven repository; None: Maven Central.
        java: The ``java`` to run it; None: the one that Spark runs on.
    """

    jar: Path
    topology: str
    class_path: str | None = None
    config: Path | None = None
    test_utils: Path | None = None
    repository: str | None = None
    java: Path | None = None


@dataclass(frozen=True, slots=True)
class Running:
    """An application that runs.

    Attributes:
        runner: Runs its topology.
        ready: The topology.
        kafka_version: Of its Kafka Streams.
        optimization: What its properties say of ``topology.optimization``; None: nothing.
    """

    runner: TopologyRunner
    ready: Ready
    kafka_version: str
    optimization: str | None

    @property
    def semantics(self) -> Semantics:
        """With which a job does what this version of Kafka Streams does."""
        return semantics_of(self.kafka_version)


@contextmanager
def running(application: Application) -> Iterator[Running]:
    """Starts Java for an application, and finds its topology.

    Raises:
        ConfigurationError: Something that it needs is not there, or there is no such topology.
    """
    with tempfile.TemporaryDirectory(prefix="hindstream-java-") as name:
        folder = Path(name)
        repository = Repository.at(application.repository)
        jars = jars_of(
            application.jar, application.class_path, application.test_utils, repository, folder / "application"
        )
        program = Program(jars, application.config, application.java)
        with TopologyRunner(program, repository, folder) as runner:
            ready = runner.topology(application.topology)
            yield Running(runner, ready, jars.kafka_version, _optimization(application.config))


def _optimization(config: Path | None) -> str | None:
    text = "" if config is None else config.read_text(encoding="utf-8")
    found = re.search(r"^[ \t]*topology\.optimization[ \t]*[=: ][ \t]*(.*?)[ \t]*$", text, re.MULTILINE)
    return None if found is None else found[1]
