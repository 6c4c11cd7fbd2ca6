"""A month of the demo from Kafka and back into it, by Airflow, in a process of its own.

``python -m tests.kafka.demo_in_kafka FOLDER BOOTSTRAP_SERVERS`` prints what was sent, twice, and the run's id. The job
is the stack's, which finds the registry by the variable ``SCHEMA_REGISTRY``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dags.embedded import backfill
from hindstream.demo.in_kafka import send_topics
from hindstream.demo.run import MONTH_ENDS_MS
from statelib.config import load_settings
from tests.conftest import ROOT

JOB_FILE = ROOT / "docker" / "jobs" / "flight_delays.py"


def main(folder: Path, bootstrap_servers: str) -> None:
    settings = {
        "warehouse": str(folder / "warehouse"),
        "state_dir": str(folder / "state"),
        "spark_master": "local[2]",
        "kafka": {"bootstrap.servers": bootstrap_servers},
    }
    for _ in range(2):
        print(send_topics(load_settings(settings)))
    (run,) = backfill(
        f"{JOB_FILE}:job",
        MONTH_ENDS_MS[:1],
        home=folder / "airflow",
        dag_id="flight-delays",
        settings=settings | {"archive": f"{JOB_FILE}:topics"},
    )
    print(run.run_id, run.states["archive"])


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
