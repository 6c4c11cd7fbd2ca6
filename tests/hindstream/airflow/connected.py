"""One slice through Airflow with the credentials in a connection, in a process of its own.

``python -m tests.hindstream.airflow.connected FOLDER ENDPOINT`` prints the run's id, and what is left of the
credentials after it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hindstream.airflow.embedded import backfill
from tests.hindstream.spark.orders import DAY_MS, JOB_FILE


def main(folder: Path, endpoint: str) -> None:
    options = {"aws_endpoint_url": endpoint, "aws_region": "us-east-1", "allow_http": "true"}
    settings = {
        "warehouse": "s3://warehouse/connected",
        "storage_options": options,
        "state_dir": str(folder / "state"),
        "engine": "local",
        "spark_conf": {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": folder.as_uri(),
        },
        "storage_conn_id": "lake",
    }
    (run,) = backfill(f"{JOB_FILE}:job", [DAY_MS], home=folder / "airflow", dag_id="orders", settings=settings)
    print(run.run_id, os.environ.get("AWS_SECRET_ACCESS_KEY"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
