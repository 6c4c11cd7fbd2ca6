"""An Airflow DAG: the runbook that migrates stores of the demo's job, with a person who approves what it plans."""

from __future__ import annotations

from hindstream.airflow import migration_dag

dag = migration_dag("hindstream.demo.job:job", dag_id="migrate-flight-delays", stores=["weather-by-origin"])
