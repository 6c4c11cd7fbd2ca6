"""Continuous integration runs with the oldest Python that is there."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

_AS_IF = 'import sys; sys.version_info = {version}; code = sys.argv.pop(1); exec(code, {{"__name__": "__main__"}})'


def script(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def chosen(folder: Path, pythons: dict[str, tuple[int, ...]], **environment: str) -> str:
    """What .ci/run calls ./dev with, and the Python it has chosen, where these come first on the PATH."""
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci")
    script(folder / "dev", 'echo "./dev $*, $HINDSTREAM_PYTHON"')
    for name, version in pythons.items():
        as_if = _AS_IF.format(version=version)
        script(folder / "bin" / name, f"[ $1 = -c ] && shift && exec {sys.executable} -c '{as_if}' \"$@\"")
    environ = {"PATH": f"{folder / 'bin'}:/usr/bin:/bin"} | environment
    done = subprocess.run([folder / ".ci" / "run"], env=environ, check=True, capture_output=True, text=True)
    return done.stdout.strip().replace(f"{folder}/bin/", "")


@pytest.mark.parametrize(
    ("pythons", "oldest"),
    [
        ({"python3": (3, 13, 1), "python3.11": (3, 11, 0)}, "python3.11"),
        ({"python3": (3, 11, 0), "python3.12": (3, 12, 4), "python3.11": (3, 11, 9)}, "python3"),
        ({"python3": (3, 10, 4), "python3.11": (3, 11, 0), "python3.14": (3, 15, 0)}, "python3.11"),
    ],
)
def test_the_oldest_that_is_supported(tmp_path: Path, pythons: dict[str, tuple[int, ...]], oldest: str) -> None:
    assert chosen(tmp_path, pythons) == f"./dev test, {oldest}"


def test_one_that_is_asked_for(tmp_path: Path) -> None:
    assert chosen(tmp_path, {"python3.11": (3, 11, 0)}, HINDSTREAM_PYTHON="python3.12") == "./dev test, python3.12"
