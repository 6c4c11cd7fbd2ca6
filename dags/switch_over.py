"""An Airflow DAG: a new version of a live application takes the place of the old one, when a person has approved it.

Write in the commands how your applications are started and stopped. A second DAG of this kind, with the job of the old
version and no shadow, is the way back.
"""

from __future__ import annotations

from hindstream.airflow import switch_over_dag

dag = switch_over_dag(
    "/srv/jobs/delays_2.py:job",
    dag_id="switch-delays",
    archive="/srv/jobs/delays_2.py:topics",
    start_shadow="kubectl scale deployment/shadow-delays-2 --replicas=2",
    stop_shadow="kubectl scale deployment/shadow-delays-2 --replicas=0",
    stop_old="kubectl scale deployment/delays-1 --replicas=0",
    start_old="kubectl scale deployment/delays-1 --replicas=2",
    start_new="kubectl scale deployment/delays-2 --replicas=2",
)
