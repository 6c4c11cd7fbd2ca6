"""Makes the Airflow DAG that maintains a job whose slices are run elsewhere, by another scheduler or a person.

::

    from hindstream.airflow import maintenance_dag

    dag = maintenance_dag("/srv/jobs/flights.py:job", schedule="@daily", warehouse="s3://lake/warehouse")

A DAG of `replay_dag` maintains its job after each slice and needs no such DAG.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG

from hindstream.airflow.arguments import Given, id_of
from hindstream.airflow.phases import HindstreamMaintainOperator
from statelib.calls import function_checked

if TYPE_CHECKING:
    from collections.abc import Sequence


@function_checked
def maintenance_dag(
    job: str,
    *,
    dag_id: str | None = None,
    schedule: Any = "@daily",
    tags: Sequence[str] = ("hindstream",),
    conn_id: str | None = None,
    config: str | None = None,
    **given: object,
) -> DAG:
    """The DAG that expires old state, removes leftovers of dead runs and merges small files: ``hindstream maintain``.

    Args:
        job: As for `hindstream.airflow.replay_dag`.
        dag_id: The DAG's id; None: made from ``job``.
        schedule: Any schedule of Airflow.
        tags: Tags of the DAG in Airflow.
        conn_id: As for `hindstream.airflow.replay_dag`.
        config: As for `hindstream.airflow.replay_dag`.
        given: Settings, and arguments of Airflow's DAG and tasks, as for `hindstream.airflow.replay.replay_dag`.

    Raises:
        ConfigurationError: There is no setting of that name, a setting cannot have that value, or an argument is of
            another type.
    """
    arguments = Given.to(maintenance_dag, job, given)
    with arguments.dag(
        dag_id or id_of(job, "maintain"),
        tags=tags,
        schedule=schedule,
        doc_md=f"Maintains `{job}`: expires old state, removes what dead runs have left, merges small files.",
    ) as dag:
        HindstreamMaintainOperator(task_id="maintain", **arguments.of_operators(job, conn_id, config))
    return dag
