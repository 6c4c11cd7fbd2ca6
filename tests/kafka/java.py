"""Java processes that end when this one does, however it ends."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tests.kafka.maven import JavaPartsMissing, build

if TYPE_CHECKING:
    from collections.abc import Iterable

_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Starts in half the time, and is only slower where a test would be too long anyway."""

_LOG = ("defaultLogLevel=warn", "showDateTime=true", "dateTimeFormat=HH:mm:ss.SSS")
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
                start_new_session=True,  # an interrupt is for pytest, which stops what it has started
            )

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended yet."""
        return self.process.poll() is None

    def stop(self) -> int:
        """Lets it end by itself; its exit code."""
        self._close()
        try:
            return self.process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError(f"it has not ended within {_STOP_SECONDS} s of being asked to; {self.said()}") from None

    def kill(self) -> None:
        """Ends it at once."""
        self.process.kill()
        self.process.wait()
        self._close()

    def said(self) -> str:
        """The end of its log."""
        return f"{self.log} ends with:\n{self.log.read_text(errors='replace')[-_LOG_CHARS:]}"

    def _close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()


def java(main: str, *arguments: str | Path, heap_mb: int) -> list[str | Path]:
    """The command of a main class of the project or its libraries."""
    return command(["-cp", f"{build() / 'classes'}{os.pathsep}{build() / 'lib'}/*", main, *arguments], heap_mb)


def attached(main: str, *arguments: str | Path, heap_mb: int) -> list[str | Path]:
    """The same for one that knows nothing of the pipe."""
    return java("hindstream.testbed.Attached", main, *arguments, heap_mb=heap_mb)


def command(arguments: Iterable[str | Path], heap_mb: int) -> list[str | Path]:
    """A command of Java with the options that all have here."""
    log = (f"-Dorg.slf4j.simpleLogger.{setting}" for setting in _LOG)
    return [executable(), *_JVM, f"-Xmx{heap_mb}m", *log, *arguments]


def executable() -> Path:
    """The ``java`` that ``./dev`` has chosen, or that of the machine."""
    home = os.environ.get("JAVA_HOME")
    found = Path(home, "bin", "java") if home else shutil.which("java")
    if not found or not Path(found).exists():
        raise JavaPartsMissing(
            "there is no Java (JAVA_HOME, PATH): run the tests by ./dev test, which has one in .venv if need be"
        )
    return Path(found)
