"""Iceberg's own REST catalog, in a process of its own on loopback."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE
from typing import TYPE_CHECKING

import pyspark

from tests.kafka.java_runtime import executable
from tests.kafka.maven import build

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROJECT = Path(__file__).with_name("rest-catalog")
_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m")


@contextmanager
def rest_catalog(folder: Path) -> Iterator[str]:
    """Its address; tables and database are in ``folder``, which exists."""
    target = build(_PROJECT)
    hadoop = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-*.jar")  # opens the files of tables
    class_path = os.pathsep.join(map(str, (target / "classes", target / "lib" / "*", *hadoop)))
    command = [executable(), *_JVM, "-cp", class_path, "hindstream.RestCatalog"]
    arguments = [f"jdbc:sqlite:{folder}/catalog.db", str(folder / "tables")]
    errors = folder / "stderr"
    with (
        errors.open("w") as stderr,
        subprocess.Popen([*command, *arguments], stdin=PIPE, stdout=PIPE, stderr=stderr, text=True) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address, errors.read_text()
        try:
            yield address
        finally:
            process.stdin.close()
