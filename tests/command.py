"""Commands as a user types them: a process in a folder, without the settings of whoever runs the tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

_PROGRESS = re.compile(r".+: .*(so far|left|a second)")

_SETTINGS = ("HINDSTREAM_", "AIRFLOW_", "PYTHONPATH", "PYSPARK_")


def run(*command: str | Path, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """A process that ran in ``cwd`` to its end; ``environ`` is added to its environment."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(_SETTINGS)}
    environment = {**clean, "COLUMNS": "160", **environ}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def hindstream(*arguments: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """``hindstream ARGUMENTS``."""
    return run(sys.executable, "-m", "hindstream", *arguments, cwd=cwd, **environ)


def spark_submit(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """``spark-submit ARGUMENTS``, that of this environment."""
    return run(Path(sys.executable).with_name("spark-submit"), *arguments, cwd=cwd)


def besides_progress(stderr: str) -> list[str]:
    """What a command said on its standard error, without the lines that it writes every ten seconds."""
    return [line for line in stderr.splitlines() if not _PROGRESS.fullmatch(line)]
