"""The public methods of a release of Kafka Streams, as a text file: taken from its jars, and read again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.completeness.class_files import JavaClass, JavaMethod, public_classes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FILE = Path(__file__).with_name("kafka_streams.txt")
PACKAGE = "org.apache.kafka.streams."
LEFT_OUT = ("errors.", "processor.assignment.")
"""Packages that are no part of the DSL, the state API or the test driver: exceptions, handlers of errors, assignors."""

_VERSION = re.compile(r"-(\d+\.\d+\.\d+)\.jar$")
_METHOD = re.compile(r"    (\w+)\((.*)\)( deprecated)?")


@dataclass(frozen=True, slots=True)
class KafkaApi:
    """What a release has.

    Attributes:
        version: Of the release.
        classes: By name below `PACKAGE`.
    """

    version: str
    classes: dict[str, JavaClass]

    def text(self) -> str:
        """What `read_api` reads."""
        lines = [f"Kafka Streams {self.version}"]
        for name, java_class in self.classes.items():
            lines += [name, *(f"    {method}" for method in java_class.methods)]
        return "\n".join(lines) + "\n"


def api_of(jars: Sequence[Path]) -> KafkaApi:
    """The methods of a release's jars; the first one's name has the version."""
    found = [java_class for jar in jars for java_class in public_classes(jar)]
    version = _VERSION.search(jars[0].name)
    if version is None:
        raise ValueError(f"{jars[0]} does not end in a version")
    return KafkaApi(version[1], _by_name(found))


def read_api(file: Path = FILE) -> KafkaApi:
    """The methods of the release that the answers are for."""
    first, *lines = file.read_text(encoding="utf-8").splitlines()
    methods: dict[str, list[JavaMethod]] = {}
    name = ""
    for line in lines:
        match = _METHOD.fullmatch(line)
        if match is None:
            name = line
            methods[name] = []
        else:
            parameters = tuple(match[2].split(", ")) if match[2] else ()
            methods[name].append(JavaMethod(match[1], parameters, bool(match[3])))
    classes = {of: JavaClass(f"{PACKAGE}{of}", tuple(found)) for of, found in methods.items()}
    return KafkaApi(first.removeprefix("Kafka Streams "), classes)


def _by_name(classes: Iterable[JavaClass]) -> dict[str, JavaClass]:
    named = {java_class.name.removeprefix(PACKAGE): java_class for java_class in classes}
    return {name: named[name] for name in sorted(named) if not name.startswith(LEFT_OUT)}
