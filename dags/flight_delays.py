"""The demo's Airflow DAG: a month of flights a run."""

from __future__ import annotations

from hindstream.airflow import replay_dag

dag = replay_dag("hindstream.demo.job:job", dag_id="flight-delays", schedule="0 0 1 * *")
