"""Starts the demo on the stack: sends its topics to Kafka, and has Airflow run the DAG for the months of 2013.

What is done is not done again.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from hindstream.demo.in_kafka import send_topics
from statelib.config import load_settings

DAG = "flight-delays"
_EXISTS = "Airflow has been asked before"


def main(first: str = "2013-01-01", last: str = "2013-12-01") -> None:
    """Sends, and asks.

    Args:
        first: The month with which to begin: its first day.
        last: The month with which to end: the same.
    """
    for topic, records in send_topics(load_settings()).items():
        print(f"{topic}: {records:,} records were sent" if records else f"{topic}: is in Kafka already")
    airflow = Airflow(os.environ["AIRFLOW"], Path("/run/stack/airflow-admin").read_text())
    if airflow.get(f"dags/{DAG}/dagRuns?limit=1")["total_entries"]:
        print(_EXISTS)
        return
    airflow.patch(f"dags/{DAG}", {"is_paused": False})
    slices = {"from_date": f"{first}T00:00:00Z", "to_date": f"{last}T23:59:59Z"}
    airflow.post("backfills", {"dag_id": DAG, "max_active_runs": 1, "dag_run_conf": {}, **slices})
    print(f"Airflow replays the months that begin from {first} to {last}")


class Airflow:
    """Airflow's API, as the administrator.

    Args:
        address: Such as ``http://airflow-api-server:8080``.
        password: The administrator's.
    """

    def __init__(self, address: str, password: str) -> None:
        self._address = address
        self._headers = {"Content-Type": "application/json"}
        token = self._ask("POST", "auth/token", {"username": "admin", "password": password})["access_token"]
        self._headers["Authorization"] = f"Bearer {token}"

    def get(self, path: str) -> Any:
        """What it has."""
        return self._ask("GET", f"api/v2/{path}")

    def post(self, path: str, body: object) -> Any:
        """Makes something."""
        return self._ask("POST", f"api/v2/{path}", body)

    def patch(self, path: str, body: object) -> Any:
        """Changes something."""
        return self._ask("PATCH", f"api/v2/{path}", body)

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._address}/{path}", data, self._headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            sys.exit(f"{method} {path}: {error.code} {error.read().decode()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
