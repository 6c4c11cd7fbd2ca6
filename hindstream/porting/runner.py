"""The Java that runs an application's topology, while a context lasts."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Self, TypeVar, cast

from hindstream.porting.compiler import RUNNER, RUNNER_CLASS, compiled
from hindstream.porting.jars import as_text
from hindstream.porting.protocol import (
    Answer,
    Ended,
    Failed,
    Ready,
    naming,
    read_answer,
    read_ready,
    read_version,
    request,
)
from hindstream.spark.session.java import find_java
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path
    from types import TracebackType

    from hindstream.porting.jars import Jars
    from hindstream.porting.maven import Repository

_T = TypeVar("_T")

_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
_STOP_SECONDS = 30
_LOG_CHARS = 1_500
_NOT_FOUND = ("java.lang.ClassNotFoundException", "java.lang.NoClassDefFoundError")
_NO_TOPOLOGY = "hindstream.porting.TopologyRunner$NotATopology"
_NEWER = "java.lang.UnsupportedClassVersionError"


@dataclass(frozen=True, slots=True)
class Program:
    """What is run.

    Attributes:
        jars: The application.
        config: Its properties; None: none.
        java: The ``java`` to run it; None: see `find_java`.
    """

    jars: Jars
    config: Path | None = None
    java: Path | None = None


class TopologyRunner:
    """See the module's docstring.

    Args:
        program: What is run.
        repository: Where a compiler comes from, if this Java has none.
        folder: An empty one, for stores and a log.
    """

    def __init__(self, program: Program, repository: Repository, folder: Path) -> None:
        self._program = program
        self._repository = repository
        self._log = folder / "java.log"
        self._state = folder / "state"

    def __enter__(self) -> Self:
        """Starts it.

        Raises:
            ConfigurationError: There is no such file of properties, no such Java, or it ends at once.
        """
        program = self._program
        for file, option, what in (
            (program.config, "--config", "file of properties"),
            (program.java, "--java", "Java"),
        ):
            if file is not None and not file.is_file():
                raise ConfigurationError(
                    f"there is no such {what}", file=str(file), setting=option, next_step="name one that is there"
                )
        java = program.java or find_java().home / "bin" / "java"
        classes = compiled(RUNNER, program.jars.class_path, java, self._repository)
        class_path = as_text((*program.jars.class_path, classes))
        arguments = (str(program.config or ""), str(self._state))
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - Java itself
                [str(java), *_OPTIONS, "-cp", class_path, RUNNER_CLASS, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        try:
            read_version(self._pipes()[1])
        except Ended:
            error = self._ended()
            self._end(kill=True)
            raise error from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(kill=error is not None)

    def topology(self, reference: str) -> Ready:
        """Finds a topology, which `run` runs from then on; ``reference``: ``CLASS::METHOD``.

        Raises:
            ConfigurationError: There is no such topology, or it cannot be built.
        """
        found = self._asked([naming(reference)], read_ready)
        if isinstance(found, Failed):
            raise _not_built(found, reference)
        return found

    def run(self, topics: Sequence[str], records: Sequence[bytes]) -> Answer | Failed:
        """What the topology makes of records, from its beginning; see `hindstream.porting.protocol.framed`.

        Raises:
            ConfigurationError: Java has ended.
        """
        return self._asked(request(topics, records), read_answer)

    def _asked(self, parts: Iterable[bytes], read: Callable[[IO[bytes]], _T]) -> _T:
        requests, answers = self._pipes()
        try:
            requests.writelines(parts)
            requests.flush()
            return read(answers)
        except (Ended, BrokenPipeError):
            raise self._ended() from None

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        return cast("IO[bytes]", self._process.stdin), cast("IO[bytes]", self._process.stdout)

    def _ended(self) -> ConfigurationError:
        said = self._log.read_text(errors="replace").strip()[-_LOG_CHARS:]
        step = "run it with that changed; --java PROGRAM names another Java"
        return ConfigurationError(f"Java has ended: {said or 'it has said nothing'}", next_step=step)

    def _end(self, *, kill: bool) -> None:
        if kill:
            self._process.kill()
        requests, answers = self._pipes()
        with suppress(BrokenPipeError):
            requests.close()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        answers.close()


def _not_built(failed: Failed, reference: str) -> ConfigurationError:
    """Why there is no topology to run."""
    of_class = reference.partition("::")[0]
    message = failed.message or failed.exception
    what, step = f"the topology cannot be built: {short(failed.exception)}: {message}", "fix that, or name another"
    if failed.exception == _NO_TOPOLOGY:
        what, step = message, "name what gives the topology: --topology CLASS::METHOD"
    elif failed.exception in _NOT_FOUND and message.replace("/", ".") == of_class:
        what, step = "the jar has no such class", "name one with its package, such as com.acme.Flights::build"
    elif failed.exception in _NOT_FOUND:
        missing = message.replace("/", ".")
        what, step = f"the application needs {missing}", "add the jar that has it: --class-path 'lib/*'"
    elif failed.exception == _NEWER:
        step = "name that Java: --java /usr/lib/jvm/java-21/bin/java"
    return ConfigurationError(what, topology=reference, at=failed.place or None, next_step=step)


def short(exception: str) -> str:
    """The name of a class without its package."""
    return exception.rpartition(".")[2]
