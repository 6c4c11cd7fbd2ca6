"""One slice through Airflow with the warehouse and its credentials in a connection, in a process of its own.

``python -m tests.hindstream.airflow.connected FOLDER`` prints the run's id, and what is left of the
credentials after it.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from hindstream.airflow.embedded import backfill
from tests.hindstream.spark.orders import DAY_MS, JOB_FILE


def main(folder: Path) -> None:
    settings = {
        "state_dir": str(folder / "state"),
        "engine": "local",
        "spark_conf": {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": folder.as_uri(),
        },
        "conn_id": "lake",
        "data_docs": "report",
        "web_url": "https://lake.example.com",
    }
    (run,) = backfill(f"{JOB_FILE}:job", [DAY_MS], home=folder / "airflow", dag_id="orders", settings=settings)
    with closing(sqlite3.connect(folder / "airflow" / "airflow.db")) as database:
        asked = "select task_id, value from xcom where key in ('hindstream_run_report', 'hindstream_data_docs')"
        print(json.dumps([[task, json.loads(value)] for task, value in database.execute(asked)]))
    print(run.run_id, os.environ.get("AWS_SECRET_ACCESS_KEY"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
