"""The DAG of `maintenance_dag`: Airflow gives it a run by its schedule, and the run expires state."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from statelib.commits import commit, oldest_restorable, plan, publish, record_audit, stage
from statelib.storage import Storage
from tests.commits import toy
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

DAG_FILE = """
# an airflow dag
from hindstream.airflow import maintenance_dag

dag = maintenance_dag("tests.commits.toy:job", dag_id="upkeep", schedule="0 3 * * *", warehouse={warehouse!r},
                      state_dir={state_dir!r}, keep_commits=1, keep_state_for=None)
"""
RUN = """
import sys
from airflow.dag_processing.dagbag import DagBag
from airflow.models import DagModel
from airflow.utils.session import create_session

run = DagBag(sys.argv[1]).dags["upkeep"].test()
with create_session() as session:
    print(run.state.value, session.get(DagModel, "upkeep").next_dagrun_create_after.strftime("%H:%M"))
"""


@pytest.mark.airflow
@pytest.mark.slow
def test_a_run_expires_the_state_of_all_but_the_newest_commits(tmp_path: Path) -> None:
    store = Storage(str(tmp_path / "warehouse"))
    toy.archive_events(store, 0, days=2)
    for day in (1, 2):
        planned = plan(toy.job(), store, now_ms=1, until_ms=day * toy.DAY)
        stage(store, planned, toy.replay(store, planned, tmp_path / "scratch"))
        record_audit(store, planned, toy.passed(planned))
        commit(store, planned, now_ms=day)
        publish(store, planned.job)
    assert oldest_restorable(store, "counting") == 1
    dags = tmp_path / "dags"
    dags.mkdir()
    places = {"warehouse": str(tmp_path / "warehouse"), "state_dir": str(tmp_path / "state")}
    (dags / "upkeep.py").write_text(DAG_FILE.format(**places))
    environ = os.environ | {
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "0",
        "PYTHONPATH": str(ROOT),
    }
    for command in (["-m", "airflow", "db", "migrate"], ["-c", RUN, str(dags)]):
        done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False, env=environ)
        assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "success 03:00"
    assert oldest_restorable(store, "counting") == 2
