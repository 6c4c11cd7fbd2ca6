"""The test bed's Java parts: what Maven builds and fetches, by a Maven that is fetched too.

A machine needs a Java run-time (``./dev`` sees to that) and, the first time, Maven Central or a mirror of it: Maven
takes mirrors and proxies from ``~/.m2/settings.xml`` as always, and keeps what it fetches in ``~/.m2/repository``.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.kafka.java_runtime import JavaPartsMissing, trust_options
from tests.unpack import unpack

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Path(__file__).with_name("streams-app")
TARGET = PROJECT / "target"

_VERSION = "3.9.11"
_URL = (
    f"https://repo.maven.apache.org/maven2/org/apache/maven/apache-maven/{_VERSION}/apache-maven-{_VERSION}-bin.tar.gz"
)
_SHA512 = (
    "bcfe4fe305c962ace56ac7b5fc7a08b87d5abd8b7e89027ab251069faebee516"
    "b0ded8961445d6d91ec1985dfe30f8153268843c89aa392733d1a3ec956c9978"
)
_UNPACK = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:unpack"
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
_KAFKA = re.compile(r"(<kafka\.version>)[^<]+(</kafka\.version>)")
_QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def build(project: Path = PROJECT) -> Path:
    """Builds a project where it has changed since the last time; its ``target`` folder.

    In it ``classes`` and ``lib`` are the class path of all that is Java in it. That of the servers and applications
    also has ``spark-jars``, Spark's Kafka connector.
    """
    target = project / "target"
    target.mkdir(exist_ok=True)
    stamp, wanted = target / "built", _fingerprint(project)
    with _locked(target / "lock"):
        if not stamp.exists() or stamp.read_text() != wanted:
            for left in target.iterdir():  # a class or a jar that is no longer wanted must not be found
                if left.is_dir():
                    shutil.rmtree(left)
            _maven("compile", cwd=project)
            stamp.write_text(wanted)
    return target


def with_kafka(project: Path, version: str) -> Path:
    """A copy of a project with another version of Kafka, to be built."""
    pom = _KAFKA.sub(rf"\g<1>{version}\g<2>", (project / "pom.xml").read_text())
    copy = cached(f"{project.name}-{version}")
    copy.mkdir(exist_ok=True)
    with _locked(_beside(copy, "lock")):
        if not (copy / "pom.xml").exists() or _fingerprint(copy) != _fingerprint(project, pom.encode()):
            shutil.rmtree(copy / "src", ignore_errors=True)
            shutil.copytree(project / "src", copy / "src")
            (copy / "pom.xml").write_text(pom)
    return copy


def unpacked(artifact: str) -> Path:
    """The folder of an archive in Maven Central; unpacked once.

    Args:
        artifact: ``group:artifact:version:type:classifier``.
    """
    folder = _cache() / artifact.replace(":", "-")
    with _locked(_beside(folder, "lock")):
        if not folder.exists():
            part = _beside(folder, "part")
            shutil.rmtree(part, ignore_errors=True)
            with tempfile.TemporaryDirectory() as litter:  # where there is no project it leaves its notes behind
                _maven(_UNPACK, f"-Dartifact={artifact}", f"-DoutputDirectory={part}", cwd=Path(litter))
            part.rename(folder)
    return folder


def cached(name: str) -> Path:
    """A folder for what is built, or kept for the next time."""
    return _cache() / name


def newest(artifact: str, folder: Path) -> Path:
    """The jar of an artifact's newest release, copied into a folder of its own.

    Args:
        artifact: ``group:artifact``.
        folder: Is made.
    """
    folder.mkdir()
    _maven("-U", _COPY, f"-Dartifact={artifact}:RELEASE", f"-DoutputDirectory={folder}", cwd=folder)
    (jar,) = folder.glob("*.jar")
    return jar


def _fingerprint(project: Path, pom: bytes | None = None) -> str:
    """Of its sources; with ``pom``, as if its ``pom.xml`` were that."""
    sources = sorted(path for path in (project / "src").rglob("*") if path.is_file())
    digest = hashlib.sha256(_VERSION.encode())
    for path in (project / "pom.xml", *sources):
        content = pom if pom is not None and path.name == "pom.xml" else path.read_bytes()
        digest.update(f"{path.relative_to(project)} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _maven(*arguments: str, cwd: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        options = (*_QUICK_START, *trust_options(Path(folder)), os.environ.get("MAVEN_OPTS", ""))
        done = subprocess.run(
            [_home() / "bin" / "mvn", "--batch-mode", "--quiet", "--strict-checksums", *arguments],
            cwd=cwd,
            env=os.environ | {"MAVEN_OPTS": " ".join(options)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        raise JavaPartsMissing(
            f"Maven ({' '.join(arguments)}) has failed in {cwd}. What is not yet in ~/.m2/repository it fetches from "
            f"Maven Central, or from the mirror that ~/.m2/settings.xml names. It said:\n"
            f"{(done.stdout + done.stderr)[-4000:]}"
        )


def _home() -> Path:
    """Maven's folder; the archive is fetched and checked the first time."""
    folder = _cache() / f"apache-maven-{_VERSION}"
    with _locked(_beside(folder, "lock")):
        if not folder.exists():
            part = _beside(folder, "part")
            shutil.rmtree(part, ignore_errors=True)
            with tarfile.open(fileobj=io.BytesIO(_archive())) as archive:
                unpack(archive, part)
            (part / folder.name).rename(folder)
            part.rmdir()
    return folder


def _archive() -> bytes:
    try:
        with urllib.request.urlopen(_URL, timeout=60) as response:
            content: bytes = response.read()
    except (urllib.error.URLError, OSError) as error:
        raise JavaPartsMissing(
            f"Maven, which builds the Java parts of these tests, cannot be fetched: {_URL}: {error}"
        ) from error
    if hashlib.sha512(content).hexdigest() != _SHA512:
        raise JavaPartsMissing(
            f"{_URL} is not the file that the tests know: its SHA-512 is another; is a proxy in between?"
        )
    return content


def _cache() -> Path:
    """A folder that outlives a checkout's ``target``: that of the Python environment, or the user's."""
    if sys.prefix != sys.base_prefix:
        folder = Path(sys.prefix) / "java-parts"
    else:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hindstream"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _beside(folder: Path, suffix: str) -> Path:
    return folder.with_name(f"{folder.name}.{suffix}")


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Holds a lock that other processes respect."""
    with file.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
