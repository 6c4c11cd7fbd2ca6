"""The public methods of a release of Kafka Streams, as a text file: taken from its jars, and read again."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tests.completeness.class_files import JavaClass, JavaMethod, public_classes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FILE = Path(__file__).with_name("kafka_streams.txt")
PACKAGE = "org.apache.kafka.streams."
LEFT_OUT = re.compile(r"errors\.\w+Exception|processor\.assignment\..*")
"""Classes that nobody calls who writes a topology: exceptions and task assignors."""

_VERSION = re.compile(r"-(\d+\.\d+\.\d+)\.jar$")
_METHOD = re.compile(r"    (\w+)\(([^()]*)\)( deprecated)?( \(new\))?")


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
            lines += [name, *(f"    {method}{' (new)' * method.is_new}" for method in java_class.methods)]
        return "\n".join(lines) + "\n"

    def since(self, former: KafkaApi) -> KafkaApi:
        """The same, with what the former release had not, or what was new in it, as new: nobody has answered for it.

        An overload of a method that has an answer is new, too. Methods of classes that are new are not: these have no
        answers at all, which is an error.
        """
        classes = {}
        for name, java_class in self.classes.items():
            methods = java_class.methods
            if name in former.classes:
                answered = {str(method) for method in former.classes[name].methods if not method.is_new}
                methods = tuple(replace(method, is_new=str(method) not in answered) for method in methods)
            classes[name] = replace(java_class, methods=methods)
        return KafkaApi(self.version, classes)


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
            methods[name].append(JavaMethod(match[1], parameters, bool(match[3]), bool(match[4])))
    classes = {of: JavaClass(f"{PACKAGE}{of}", tuple(found)) for of, found in methods.items()}
    return KafkaApi(first.removeprefix("Kafka Streams "), classes)


def _by_name(classes: Iterable[JavaClass]) -> dict[str, JavaClass]:
    named = {java_class.name.removeprefix(PACKAGE): java_class for java_class in classes}
    return {name: named[name] for name in sorted(named) if not LEFT_OUT.fullmatch(name)}
