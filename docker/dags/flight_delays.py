"""An Airflow DAG: the demo on all parts of the stack, a month of flights a run, from Kafka and back into it."""

from __future__ import annotations

from datetime import UTC, datetime

from hindstream.airflow import replay_dag

dag = replay_dag(
    "/opt/hindstream/docker/jobs/flight_delays.py:job",
    dag_id="flight-delays",
    schedule="0 5 1 * *",  # midnight in New York, in winter
    end_date=datetime(2014, 1, 1, tzinfo=UTC),  # there are no flights after that
    archive="/opt/hindstream/docker/jobs/flight_delays.py:topics",
)
