"""Marquez' own server, compiled from a checkout of its repository."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.hindstream.airflow.airflow_environ import free_port
from tests.kafka.java_runtime import executable
from tests.kafka.maven import build
from tests.postgres import USER, postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECKOUT = "HINDSTREAM_MARQUEZ"
"""The variable that names a checkout of https://github.com/MarquezProject/marquez, of version 0.51.1."""

_SOURCES = ("api/src/main", "clients/java/src/main")
_LIBRARIES = Path(__file__).with_name("marquez-server")
_LOOKS = 240


@dataclass(frozen=True)
class Marquez:
    """A running server.

    Attributes:
        url: Where it takes events.
    """

    url: str

    def get(self, path: str, **asked: str | int) -> Any:
        """What its API says."""
        query = f"?{urllib.parse.urlencode(asked)}" if asked else ""
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}{query}") as answer:
            return json.load(answer)


@contextmanager
def marquez(folder: Path) -> Iterator[Marquez]:
    """With a database of its own.

    Args:
        folder: For its classes and its log.
    """
    classes, libraries = folder / "classes", build(_LIBRARIES) / "lib"
    _compile(Path(os.environ[CHECKOUT]), classes, libraries)
    with postgres() as database, (folder / "log").open("wb") as log:
        ports = free_port(), free_port()
        config = folder / "marquez.yml"
        config.write_text(json.dumps(_config(database, *ports)))
        of_java = [executable(), "-XX:TieredStopAtLevel=1", "-Xmx512m", "-cp", f"{classes}{os.pathsep}{libraries}/*"]
        command = [*of_java, "marquez.MarquezApp", "server", config]
        with subprocess.Popen(command, stdout=log, stderr=log) as process:
            try:
                found = Marquez(f"http://127.0.0.1:{ports[0]}")
                _await(found, process, folder / "log")
                yield found
            finally:
                process.kill()


def _compile(checkout: Path, classes: Path, libraries: Path) -> None:
    classes.mkdir()
    files = [str(file) for source in _SOURCES for file in (checkout / source / "java").rglob("*.java")]
    (processor,) = libraries.glob("lombok-*.jar")
    paths = ["-cp", f"{libraries}/*", "-processorpath", processor, "-d", classes]
    javac = shutil.which("javac")
    assert javac is not None
    subprocess.run([javac, "-nowarn", "-parameters", "-encoding", "UTF-8", *paths, *files], check=True)
    for source in _SOURCES:
        shutil.copytree(checkout / source / "resources", classes, dirs_exist_ok=True)


def _config(database: int, port: int, admin_port: int) -> dict[str, Any]:
    connectors = [[{"type": "http", "bindHost": "127.0.0.1", "port": one}] for one in (port, admin_port)]
    url = f"jdbc:postgresql://127.0.0.1:{database}/postgres"
    return {
        "server": {"applicationConnectors": connectors[0], "adminConnectors": connectors[1]},
        "db": {"driverClass": "org.postgresql.Driver", "url": url, "user": USER, "password": "none"},
        "migrateOnStartup": True,
        "search": {"enabled": False},
    }


def _await(server: Marquez, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(_LOOKS):
        assert process.poll() is None, log.read_text()
        try:
            server.get("namespaces")
        except urllib.error.URLError:
            time.sleep(0.5)
        else:
            return
    raise AssertionError(log.read_text())
