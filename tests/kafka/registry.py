"""A Schema Registry of this process: Apicurio's, which speaks Confluent's API too; in memory, on loopback."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from tests.kafka.java import JavaProcess, attached_jar
from tests.kafka.maven import unpacked

if TYPE_CHECKING:
    from pathlib import Path

_ARTIFACT = "io.apicurio:apicurio-registry-app:3.3.3:tar.gz:all"
_MAIN = "io.quarkus.bootstrap.runner.QuarkusEntryPoint"
_HEAP_MB = 256
_START_SECONDS = 180
_SETTINGS = {
    "quarkus.http.host": "127.0.0.1",
    "quarkus.http.port": "0",
    "quarkus.management.host": "127.0.0.1",  # metrics and health
    "quarkus.management.port": "0",
    "quarkus.otel.sdk.disabled": "true",
}
_LISTENS = re.compile(r"Listening on: (http://127\.0\.0\.1:\d+)")


class SchemaRegistry:
    """A registry, empty at first.

    Args:
        folder: For its log; exists.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def start(self) -> None:
        """Starts it; returns when it answers."""
        jar = unpacked(_ARTIFACT) / "quarkus-run.jar"
        main = attached_jar(jar, _MAIN, heap_mb=_HEAP_MB, settings=_SETTINGS)
        self._process = JavaProcess(main, self._folder / "registry.log")
        deadline = time.monotonic() + _START_SECONDS
        while not (listens := _LISTENS.search(self._process.log.read_text())):
            if not self._process.is_alive or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"the schema registry does not start; {self._process.said()}")
            time.sleep(0.05)
        self.url = f"{listens[1]}/apis/ccompat/v7"

    def kill(self) -> None:
        """Ends it, and what it holds."""
        self._process.kill()
