"""Commands as a user types them: a process in a folder, without the settings of whoever runs the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
