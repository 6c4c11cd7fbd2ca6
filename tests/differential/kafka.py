"""Kafka Streams' own ``TopologyTestDriver`` in one long-lived Java, which takes programs and answers what comes out."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from statelib.settings.semantics import semantics_of
from tests.kafka.java import JavaProcess
from tests.kafka.java_runtime import executable
from tests.kafka.maven import build, with_kafka

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from statelib.settings.semantics import Semantics
    from tests.differential.program import Program

PROJECT = Path(__file__).with_name("streams-driver")
_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")

Outputs = dict[str, list[list[Any]]]
"""By sink topic, in order: key (of windowed ones [key, start, end]), value, timestamp, headers."""


def without_extractors(text: str) -> str:
    """A topology's text without what a language calls an extractor of topics."""
    return re.sub(r"\(extractor class: .*\)", "(extractor class)", text)


class Refused(Exception):
    """Kafka Streams does not run the program."""


class VersionsDiffer(Exception):
    """Two versions of Kafka Streams answer a program in two ways."""


class Runs(Protocol):
    """What runs programs.

    Attributes:
        semantics: Those that give the same here.
    """

    semantics: Semantics

    def run(self, program: Program) -> Answer:
        """What it makes of a program.

        Raises:
            Refused: It says why.
            VersionsDiffer: It says how.
        """

    def describe(self, steps: Sequence[Mapping[str, Any]], optimization: str = "none", *, fixed: str = "false") -> str:
        """How it describes a program of names (`tests.differential.naming`): see `description_of`.

        Raises:
            Refused: It says why.
        """


def settings_of(optimization: str, fixed: str) -> dict[str, str]:
    """Those that a topology is built with."""
    return {"topology.optimization": optimization, "__enable.process.processValue.fix__": fixed}


@dataclass(frozen=True)
class Answer:
    """What Kafka Streams made of a program.

    Attributes:
        describe: The text of ``Topology.describe()``, `without_extractors`.
        outputs: See `Outputs`.
    """

    describe: str
    outputs: Outputs


class KafkaStreams:
    """The Java process, while the context lasts.

    Args:
        folder: For its log and its stores.
        version: Of Kafka; None: the one of the project's ``pom.xml``.

    Attributes:
        name: The version.
        semantics: Those that give what this version gives.
    """

    def __init__(self, folder: Path, version: str | None = None) -> None:
        self._folder = folder
        self._version = version
        self.name = "of the pom.xml" if version is None else version
        self.semantics: Semantics = "kafka-4.4" if version is None else semantics_of(version)

    def __enter__(self) -> Self:
        target = build(PROJECT if self._version is None else with_kafka(PROJECT, self._version))
        class_path = os.pathsep.join((str(target / "classes"), f"{target / 'lib'}/*"))
        main = [executable(), *_OPTIONS, "-cp", class_path, "hindstream.differential.Main", self._folder / "state"]
        self._process = JavaProcess(main, self._folder / "kafka-streams.log", stdout=subprocess.PIPE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error:
            self._process.kill()
        else:
            self._process.stop()

    def run(self, program: Program) -> Answer:
        """See `Runs`."""
        answer = self._ask(program.as_json())
        return Answer(without_extractors(answer["describe"]), answer["outputs"])

    def describe(self, steps: Sequence[Mapping[str, Any]], optimization: str = "none", *, fixed: str = "false") -> str:
        """See `Runs`."""
        description: str = self._ask(json.dumps({"names": steps, "settings": settings_of(optimization, fixed)}))[
            "describe"
        ]
        return description

    def _ask(self, line: str) -> dict[str, Any]:
        pipes = self._process.process
        pipes.stdin.write(line.encode() + b"\n")
        pipes.stdin.flush()
        told = pipes.stdout.readline()
        if not told:
            raise RuntimeError(f"it has ended; {self._process.said()}")
        answer: dict[str, Any] = json.loads(told)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer


class Versions:
    """Several versions, each of which has to answer as the first does.

    So what comes out here is compared once, by the semantics of one of them: of each in turn.

    Attributes:
        names: The versions.
        semantics: Those for the program that was run last.
    """

    def __init__(self, versions: Sequence[KafkaStreams]) -> None:
        self._versions = versions
        self.names = [version.name for version in versions]
        self.semantics = versions[0].semantics
        self._turn = 0

    def run(self, program: Program) -> Answer:
        """See `Runs`."""
        self._turn = (self._turn + 1) % len(self._versions)
        self.semantics = self._versions[self._turn].semantics
        first = self._versions[0].run(program)
        for version in self._versions[1:]:
            try:
                other: Answer | str = version.run(program)
            except Refused as refused:
                other = str(refused)
            if other != first:
                raise VersionsDiffer(f"{self.names[0]}: {first}\n  {version.name}: {other}")
        return first

    def describe(self, steps: Sequence[Mapping[str, Any]], optimization: str = "none", *, fixed: str = "false") -> str:
        """See `Runs`."""
        return self._versions[self._turn].describe(steps, optimization, fixed=fixed)
