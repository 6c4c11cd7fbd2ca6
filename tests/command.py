"""Commands as a user types them: a process in a folder, without the settings of whoever runs the tests.

They run in a session (``hindstream session start``), which spares each of them a second of imports. It takes none that
it would run differently.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

_PROGRESS = re.compile(r".+: .*(so far|left|a second)")

_SETTINGS = ("HINDSTREAM_", "AIRFLOW_", "PYTHONPATH", "PYSPARK_")


def run(*command: str | Path, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """A process that ran in ``cwd`` to its end; ``environ`` is added to its environment."""
    ours = {"COLUMNS": "160", "XDG_RUNTIME_DIR": _session(), "HINDSTREAM_DATA_DOCS": "failed"}  # as in tests.conftest
    environment = {**_clean(), **ours, **environ}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def hindstream(*arguments: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """``hindstream ARGUMENTS``."""
    return run(sys.executable, "-m", "hindstream", *arguments, cwd=cwd, **environ)


def spark_submit(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """``spark-submit ARGUMENTS``, that of this environment."""
    return run(Path(sys.executable).with_name("spark-submit"), *arguments, cwd=cwd)


def _clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(_SETTINGS)}


@cache
def _session() -> str:
    """The folder of our session, which ends when the folder is deleted, or soon after we have been killed."""
    folder = tempfile.mkdtemp(prefix="hs-")  # short: the path of a socket is
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    start = (sys.executable, "-m", "hindstream", "session", "start", "--idle-minutes", "5")
    subprocess.run(start, cwd=folder, env={**_clean(), "XDG_RUNTIME_DIR": folder}, capture_output=True, check=True)
    return folder


def besides_progress(stderr: str) -> list[str]:
    """What a command said on its standard error, without the lines that it writes every ten seconds."""
    return [line for line in stderr.splitlines() if not _PROGRESS.fullmatch(line)]
