"""The class path of an application, and which Kafka Streams is on it."""

from __future__ import annotations

import os
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hindstream.porting.maven import Artifact
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hindstream.porting.maven import Repository

_SPRING_CLASSES, _SPRING_JARS = "BOOT-INF/classes/", "BOOT-INF/lib/"
_VERSION_FILE = "kafka/kafka-streams-version.properties"
_VERSION = re.compile(r"^version=(\S+)", re.MULTILINE)
_DRIVER = "org/apache/kafka/streams/TopologyTestDriver.class"


@dataclass(frozen=True, slots=True)
class Jars:
    """What an application consists of.

    Attributes:
        class_path: Jars and folders of classes, Kafka Streams' test utilities among them.
        kafka_version: Of the Kafka Streams that is on it.
    """

    class_path: tuple[Path, ...]
    kafka_version: str


def jars_of(jar: Path, class_path: str | None, test_utils: Path | None, repository: Repository, scratch: Path) -> Jars:
    """Finds out what is needed to run an application's topology.

    Args:
        jar: The application: a jar, one of Spring Boot, or a folder of classes.
        class_path: More of it, as Java writes it: ``lib/*:classes``; None: the jar has all.
        test_utils: The jar of ``kafka-streams-test-utils``; None: that of the application's version is fetched.
        repository: Where it is fetched from.
        scratch: A folder, for what is packed in the jar.

    Raises:
        ConfigurationError: Something is not there, or Kafka Streams is not on the class path.
    """
    entries = (*_unpacked(jar, scratch), *_entries(class_path or ""))
    version = next((found for entry in entries if (found := _kafka_version(entry)) is not None), None)
    if version is None:
        step = "give the folder of its libraries: --class-path 'lib/*' (mvn dependency:copy-dependencies makes one)"
        what = "neither the jar nor the class path has Kafka Streams"
        raise ConfigurationError(what, jar=str(jar), next_step=step)
    if test_utils is not None:
        _check_there(test_utils, "--test-utils")
        return Jars((*entries, test_utils), version)
    if any(_has(entry, _DRIVER) for entry in entries):
        return Jars(entries, version)
    return Jars((*entries, repository.jar(Artifact("org.apache.kafka", "kafka-streams-test-utils", version))), version)


def _unpacked(jar: Path, scratch: Path) -> tuple[Path, ...]:
    """The jar; of Spring Boot's, whose loader nobody else knows, the classes and jars in it."""
    _check_there(jar, "--jar")
    if jar.is_dir():
        return (jar.absolute(),)
    try:
        with zipfile.ZipFile(jar) as archive:
            inner = [name for name in archive.namelist() if name.startswith((_SPRING_CLASSES, _SPRING_JARS))]
            archive.extractall(scratch, inner)  # never outside of the folder
    except zipfile.BadZipFile:
        step = "give the jar of the application, or its folder of classes"
        raise ConfigurationError("this is no jar", jar=str(jar), next_step=step) from None
    if not inner:
        return (jar.absolute(),)
    return (scratch / _SPRING_CLASSES, *sorted((scratch / _SPRING_JARS).glob("*.jar")))


def _entries(class_path: str) -> Iterator[Path]:
    for entry in filter(None, class_path.split(os.pathsep)):
        path = Path(entry).absolute()
        if path.name == "*":
            _check_there(path.parent, "--class-path")
            yield from sorted(path.parent.glob("*.jar"))
        else:
            _check_there(path, "--class-path")
            yield path


def _check_there(path: Path, option: str) -> None:
    if not path.exists():
        raise ConfigurationError("there is no such file", file=str(path), setting=option, next_step="name one")


def _kafka_version(entry: Path) -> str | None:
    content = _read(entry, _VERSION_FILE)
    found = _VERSION.search(content.decode(errors="replace")) if content is not None else None
    return None if found is None else found[1]


def _has(entry: Path, name: str) -> bool:
    return _read(entry, name) is not None


def _read(entry: Path, name: str) -> bytes | None:
    """A file of a jar or folder; None: it is not there."""
    if entry.is_dir():
        file = entry / name
        return file.read_bytes() if file.is_file() else None
    try:
        with zipfile.ZipFile(entry) as archive:
            return archive.read(name)
    except (KeyError, zipfile.BadZipFile):
        return None


def as_text(class_path: Iterable[Path]) -> str:
    """A class path as Java takes it."""
    return os.pathsep.join(map(str, class_path))
