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

from hindstream import load_settings
from hindstream.demo import NAME
from hindstream.demo.in_kafka import send_topics


def main() -> None:
    """Sends, and asks."""
    for topic, records in send_topics(load_settings()).items():
        print(f"{topic}: {records:,} records were sent" if records else f"{topic}: is in Kafka already")
    airflow = Airflow(os.environ["AIRFLOW"], Path("/run/stack/airflow-admin").read_text())
    if airflow.ask("GET", f"api/v2/dags/{NAME}/dagRuns?limit=1")["total_entries"]:
        print("Airflow has been asked before")
        return
    airflow.ask("PATCH", f"api/v2/dags/{NAME}", {"is_paused": False})
    year = {"from_date": "2013-01-01T00:00:00Z", "to_date": "2013-12-31T00:00:00Z"}
    airflow.ask("POST", "api/v2/backfills", {"dag_id": NAME, "max_active_runs": 1, **year})
    print("Airflow replays the twelve months of 2013")


class Airflow:
    """Airflow's API, as the administrator.

    Args:
        address: Such as ``http://airflow-api-server:8080``.
        password: The administrator's.
    """

    def __init__(self, address: str, password: str) -> None:
        self._address = address
        self._headers = {"Content-Type": "application/json"}
        token = self.ask("POST", "auth/token", {"username": "admin", "password": password})["access_token"]
        self._headers["Authorization"] = f"Bearer {token}"

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """What it answers; ends the process where it refuses."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._address}/{path}", data, self._headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            sys.exit(f"{method} {path}: {error.code} {error.read().decode()}")


if __name__ == "__main__":
    main()
