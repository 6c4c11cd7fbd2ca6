"""Airflow: whether it is installed, its database answers, and a connection holds what a store's client wants."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hindstream.doctor.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

_DATABASE = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"
_CONNECTION = """
import sys
from airflow.sdk import BaseHook
from hindstream.airflow.connections import store_environment
from statelib.errors.kinds import HindstreamError
try:
    print(*sorted(store_environment(BaseHook.get_connection(sys.argv[1]))))
except HindstreamError as error:
    sys.exit(error.message)
except Exception as error:
    sys.exit(f"{type(error).__name__}: {error}".splitlines()[0])
"""


def check_airflow(connection: str | None) -> Iterator[Finding]:
    """Looks at the Airflow of this environment, in processes of its own: it takes its settings when it is imported."""
    try:
        version = importlib.metadata.version("apache-airflow")
    except importlib.metadata.PackageNotFoundError:
        step = "pip install 'hindstream[airflow]', if it is to schedule runs"
        yield Finding("Airflow", "look", "it is not installed here", step)
        return
    home = os.environ.get("AIRFLOW_HOME", "~/airflow")
    is_elsewhere = any(name.startswith((_DATABASE, "AIRFLOW_CONFIG")) for name in os.environ)  # also ..._CMD
    if connection is None and not is_elsewhere and not Path(home).expanduser().exists():
        # Airflow would make a home and an empty database, and say that this answers.
        yield Finding(
            "Airflow", "ok", f"{version}: not set up ({home} is not there); hindstream backfill needs no more"
        )
        return
    done = _run("-m", "airflow", "db", "check")
    if done.returncode:
        step = f"airflow db migrate; or set AIRFLOW_HOME and {_DATABASE} as for the scheduler"
        yield Finding("Airflow", "wrong", f"{version}: its database ({home}) does not answer: {_last(done)}", step)
        return
    yield Finding("Airflow", "ok", f"{version}: its database ({home}) answers")
    if connection is not None:
        done = _run("-c", _CONNECTION, connection)
        about = f"connection {connection}"
        if done.returncode:
            step = "add it to Airflow: airflow connections add (docs/object-stores.md)"
            yield Finding(about, "wrong", _last(done), step)
        else:
            yield Finding(about, "ok", f"gives {', '.join(done.stdout.split())}")


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - this Python


def _last(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return lines[-1] if lines else f"exit code {done.returncode}"
