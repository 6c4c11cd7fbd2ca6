"""An Airflow DAG: the history of a job between two dates, a month a run.

Ask for all of it with one command, and Airflow runs it, the oldest month first:

airflow backfill create --dag-id backfill-flight-delays --from-date 2013-01-01 --to-date 2013-12-31 --max-active-runs 1
"""

from __future__ import annotations

from datetime import UTC, datetime

from hindstream.airflow import replay_dag

dag = replay_dag(
    "hindstream.demo.job:job",
    dag_id="backfill-flight-delays",
    schedule="0 5 1 * *",  # midnight in New York, in winter
    start_date=datetime(2013, 1, 1, tzinfo=UTC),
    end_date=datetime(2014, 1, 1, tzinfo=UTC),
)
