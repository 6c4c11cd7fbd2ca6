"""What Airflow's servers of a test need in their environment: a home and ports of their own."""

from __future__ import annotations

import os
import socket
import sys
from contextlib import closing
from pathlib import Path

AIRFLOW = Path(sys.executable).with_name("airflow")


def airflow_environ(home: Path) -> dict[str, str]:
    """That of this process, and Airflow's settings; ``AIRFLOW`` is where its API will be."""
    port, log_port = free_port(), free_port()
    return os.environ | {
        "AIRFLOW": f"http://127.0.0.1:{port}",
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PARALLELISM": "2",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        # DAG files stay as they are: to import them anew twice a minute costs as much as their tasks.
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "600",
        # SQLite has one writer at a time: on a loaded machine, the 5 s that others wait for it by default are too few.
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}?timeout=60",
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(log_port),
        "AIRFLOW__TRIGGERER__DEFAULT_CAPACITY": "1",
        # A task whose supervisor gets no answer within 5 s is killed.
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
        "PYTHONUNBUFFERED": "1",  # their logs are read while they run
        "PATH": f"{AIRFLOW.parent}{os.pathsep}{os.environ['PATH']}",
    }


def free_port() -> int:
    """A port of this machine that nobody has now."""
    with closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
