"""Jars of Maven repositories: Maven's own folder is looked at first, then what was fetched before, then the network."""

from __future__ import annotations

import hashlib
import tempfile
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from hindstream.cache_folder import cache_folder
from statelib.errors.kinds import ConfigurationError

CENTRAL = "https://repo.maven.apache.org/maven2"
_SECONDS = 60


def kept_folder() -> Path:
    """Where jars are kept, and what is compiled of them."""
    return cache_folder() / "java"


@dataclass(frozen=True, slots=True)
class Artifact:
    """A jar of a repository, by Maven's coordinates."""

    group: str
    name: str
    version: str

    @property
    def path(self) -> str:
        """Where a repository has it."""
        return f"{self.group.replace('.', '/')}/{self.name}/{self.version}/{self.name}-{self.version}.jar"


@dataclass(frozen=True, slots=True)
class Repository:
    """A Maven repository.

    Attributes:
        url: Its root.
        local: Maven's own folder on this machine.
        kept: Where what is fetched is kept.
    """

    url: str
    local: Path
    kept: Path

    @classmethod
    def at(cls, url: str | None) -> Repository:
        """That of a URL, Maven Central if there is none."""
        return cls((url or CENTRAL).rstrip("/"), Path.home() / ".m2" / "repository", kept_folder())

    def jar(self, artifact: Artifact) -> Path:
        """The file of an artifact, which is fetched if it is not on this machine.

        Raises:
            ConfigurationError: It cannot be fetched, or its checksum is not the repository's.
        """
        for root in (self.local, self.kept):
            if (root / artifact.path).is_file():
                return root / artifact.path
        content = self._fetched(artifact, "")
        if hashlib.sha1(content, usedforsecurity=False).hexdigest() != self._fetched(artifact, ".sha1")[:40].decode():
            raise self._failure(artifact, "its checksum is not the repository's")
        file = self.kept / artifact.path
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as unfinished:
            unfinished.write(content)
        Path(unfinished.name).replace(file)
        return file

    def _fetched(self, artifact: Artifact, suffix: str) -> bytes:
        url = f"{self.url}/{artifact.path}{suffix}"
        try:
            with urllib.request.urlopen(url, timeout=_SECONDS) as answer:  # noqa: S310 - as the user says
                content: bytes = answer.read()
        except (urllib.error.URLError, OSError, ValueError) as error:
            raise self._failure(artifact, str(error)) from None
        return content

    def _failure(self, artifact: Artifact, why: str) -> ConfigurationError:
        what = f"{artifact.name} {artifact.version} is not on this machine and cannot be fetched: {why}"
        step = "give the jar (--test-utils FILE.jar), or a repository that has it (--repository URL)"
        if artifact.name != "kafka-streams-test-utils":
            step = "set JAVA_HOME to a JDK, which has a compiler, or give a repository that has it (--repository URL)"
        return ConfigurationError(what, url=f"{self.url}/{artifact.path}", next_step=step)
