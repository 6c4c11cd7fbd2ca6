"""An Airflow DAG: nightly maintenance of a job whose slices are not run by a DAG of `replay_dag`."""

from __future__ import annotations

from hindstream.airflow import maintenance_dag

dag = maintenance_dag("hindstream.demo.job:job", dag_id="maintain-flight-delays", schedule="0 3 * * *")
