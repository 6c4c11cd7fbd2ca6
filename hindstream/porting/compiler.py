"""Compiles Java of ours for the class path of an application: once, by the Java's own compiler or by Eclipse's."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hindstream.porting.jars import as_text
from hindstream.porting.maven import Artifact
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hindstream.porting.maven import Repository

RUNNER = Path(__file__).with_name("java") / "TopologyRunner.java"
RUNNER_CLASS = "hindstream.porting.TopologyRunner"

_ECLIPSE = Artifact("org.eclipse.jdt", "ecj", "3.36.0")
_RELEASE = ("-source", "11", "-target", "11")
_LONGEST = 2_000


def compiled(source: Path, class_path: Sequence[Path], java: Path, repository: Repository) -> Path:
    """A folder with the classes of a source file, which is made if it is not there.

    Args:
        source: The file.
        class_path: What it needs.
        java: The ``java`` that is to run it.
        repository: Where Eclipse's compiler comes from, for a Java that has none.

    Raises:
        ConfigurationError: There is no compiler; or the class path lacks something, or has it in another version.
    """
    names = "\n".join(path.name for path in class_path)
    digest = hashlib.sha256(source.read_bytes() + f"{names}\n{_ECLIPSE.version}".encode()).hexdigest()
    folder = repository.kept / "classes" / digest[:32]
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        made = Path(scratch) / "classes"
        made.mkdir()
        _compile(source, class_path, java, repository, made)
        try:
            made.rename(folder)
        except OSError:  # another process was quicker
            shutil.rmtree(made)
    return folder


def _compile(source: Path, class_path: Sequence[Path], java: Path, repository: Repository, into: Path) -> None:
    own = java.resolve().with_name("javac")
    compiler = [str(own)] if own.is_file() else [str(java), "-jar", str(repository.jar(_ECLIPSE))]
    command = [*compiler, *_RELEASE, "-proc:none", "-nowarn", "-cp", as_text(class_path), "-d", str(into), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - Java itself
    if done.returncode:
        said = (done.stderr + done.stdout).strip()[:_LONGEST]
        what = f"{source.name} cannot be compiled for the application's class path: {said}"
        step = "give the whole class path (--class-path 'lib/*'); Kafka Streams has to be 2.8 or later"
        raise ConfigurationError(what, next_step=step)
