"""An Airflow home with DAGs of jobs and their history, in a process of its own.

``python -m tests.hindstream.airflow.page.scenario FOLDER`` makes it in ``FOLDER/airflow``. The warehouse of the DAG
``orders`` is behind the connection ``lake``, that of ``lone`` in a template.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hindstream.airflow import embedded
from hindstream.airflow.connections import connected
from statelib.errors.kinds import InputError
from statelib.settings.settings import load_settings
from tests.hindstream.airflow.page import HIDDEN
from tests.hindstream.airflow.scenario import with_defect
from tests.hindstream.spark.orders import DAY_MS, JOB_FILE, archive_orders, make_settings, orders

DAGS = """
from airflow.sdk import DAG
from airflow.providers.standard.operators.empty import EmptyOperator
from hindstream.airflow import HindstreamRunOperator, replay_dag, replay_task_group

others = {{"state_dir": "{folder}/state", "engine": "local"}}
replay_dag("{job}:job", dag_id="{hidden}", conn_id="lake", task_per="run")

with DAG("two-jobs", schedule=None):
    replay_task_group("jobs/orders.py:job", group_id="orders", conn_id="lake")
    replay_task_group("jobs/returns.py:job", group_id="returns", conn_id="lake", task_per="run")

with DAG("lone", schedule=None):
    HindstreamRunOperator.partial(
        task_id="run", settings={{"warehouse": "{{{{ var.value.warehouse }}}}", "data_docs": "failed", **others}},
        until="{day_ms}", end_of_input="hold", before_interval="refuse",
    ).expand(job=["{job}:job"])

with DAG("other", schedule=None):
    EmptyOperator(task_id="nothing")
"""


def main(folder: Path) -> None:
    home = folder / "airflow"
    (home / "dags").mkdir(parents=True)
    os.environ["AIRFLOW_VAR_WAREHOUSE"] = str(folder / "warehouse")
    written = DAGS.format(folder=folder, job=JOB_FILE, hidden=HIDDEN, day_ms=DAY_MS)
    (home / "dags" / "others.py").write_text(written)
    archive_orders(make_settings(folder), orders())
    with embedded._started(home).taken(), connected("lake", {}) as found:
        archive_orders(load_settings(found, environ={}), with_defect(orders()))
    of_lake = {"conn_id": "lake", "state_dir": str(folder / "state-2"), "engine": "local", "data_docs": "report"}
    try:
        embedded.backfill(
            f"{JOB_FILE}:job", [DAY_MS, 2 * DAY_MS], home=home, dag_id="orders", settings=of_lake, task_per="run"
        )
    except InputError:  # the audit of the second day
        pass
    else:
        raise AssertionError("the defect was not found")
    with embedded._started(home).taken():
        from airflow.dag_processing.dagbag import DagBag  # noqa: PLC0415

        run = DagBag(dag_folder=home / "dags" / "others.py").dags["lone"].test()
    assert run.state == "success", (home / "backfill.log").read_text()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
