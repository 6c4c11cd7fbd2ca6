"""The package's metadata as a build makes them, with its entry points: what is installed here may be older."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

_BUILD = "import sys; from hatchling.build import build_editable; build_editable(sys.argv[1])"


def with_metadata(folder: Path) -> dict[str, str]:
    """The environment in which they are found before any others; they are made in an empty folder."""
    command = [sys.executable, "-c", _BUILD, str(folder)]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        files.extractall(folder)
    return {"PYTHONPATH": str(folder)}
