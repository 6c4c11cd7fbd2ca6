"""A month of the demo from Kafka and back into it, by Airflow, in a process of its own.

``python -m tests.kafka.demo_in_kafka FOLDER BOOTSTRAP_SERVERS`` prints what was sent, twice, and the run's id. The job
is the stack's, which finds the registry by the variable ``SCHEMA_REGISTRY``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from hindstream.airflow.embedded import backfill
from hindstream.demo.in_kafka import published_job, send_topics
from hindstream.demo.run import MONTH_ENDS_MS
from hindstream.kafka.registry import SchemaRegistry
from statelib.settings.settings import load_settings
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.kafka.cluster import Cluster

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


def differences(cluster: Cluster, registry: str, wanted: Mapping[int, pa.Table]) -> list[str]:
    """What in Kafka is not as in the sink's archive; Kafka may have more."""
    (sink,) = published_job(SchemaRegistry(registry)).kafka_sinks
    records = cluster.read(sink.name)
    wrong = []
    for partition, table in wanted.items():
        found = [record for record in records if record.partition == partition][: table.num_rows]
        for serde, name in ((sink.key, "key"), (sink.value, "value")):
            read = serde.deserialize(pa.array([getattr(record, name) for record in found], pa.binary()))
            if read.to_pylist() != table[name].to_pylist():
                wrong.append(f"{sink.name} in Kafka, {name}s of partition {partition}")
    return wrong


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
