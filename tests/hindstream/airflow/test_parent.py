"""Where Airflow's provider of OpenLineage tells of tasks, the runs of ours are below them, and told to the same."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests import command
from tests.hindstream.lineage.specified import events_of
from tests.hindstream.spark.orders import DAY_MS, JOB_FILE, archive_orders, make_settings, orders

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.airflow, pytest.mark.slow]

BACKFILL = """
import os, sys
from pathlib import Path
from hindstream.airflow.embedded import backfill

folder, job, until = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
given = {"warehouse": f"{folder}/warehouse", "state_dir": f"{folder}/state", "engine": "local", "openlineage": True}
runs = backfill(job, [until], home=folder / "airflow", dag_id="orders", settings=given, task_per="phase")
print(runs[0].run_id, [name for name in os.environ if name.startswith("OPENLINEAGE_")])
"""


@pytest.mark.long
def test_a_task_is_the_parent_of_its_run(tmp_path: Path) -> None:
    archive_orders(make_settings(tmp_path), orders(300))
    file = tmp_path / "events.jsonl"
    transport = {"type": "file", "log_file_path": str(file), "append": True}
    environ = {
        **command._clean(),
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
        "AIRFLOW__OPENLINEAGE__NAMESPACE": "team",
    }
    arguments = [str(tmp_path), f"{JOB_FILE}:job", str(DAY_MS)]
    done = subprocess.run(
        [sys.executable, "-c", BACKFILL, *arguments], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-1].endswith("[]")
    events = events_of(file)
    ours = [event for event in events if event["job"]["name"] == "orders" and "parent" in event["run"]["facets"]]
    assert [event["eventType"] for event in ours] == ["START", "RUNNING", "RUNNING", "RUNNING", "COMPLETE"]
    assert {event["job"]["namespace"] for event in ours} == {"team"}
    above = [event["run"]["facets"]["parent"] for event in ours]
    tasks = ["orders.plan", "orders.replay", "orders.audit", "orders.commit", "orders.publish"]
    assert [parent["job"]["name"] for parent in above] == tasks
    assert {parent["root"]["job"]["name"] for parent in above} == {"orders"}
    of_tasks = [event for event in events if event["job"]["name"] in tasks]
    told = {event["run"]["runId"] for event in of_tasks}
    assert told >= {parent["run"]["runId"] for parent in above}, "the provider tells of the same runs"
    ended = {event["job"]["name"]: event for event in of_tasks if event["eventType"] == "COMPLETE"}
    named = [dataset["name"] for dataset in ended["orders.replay"]["inputs"]]
    assert named == [f"{tmp_path}/warehouse/topics/orders"], "sources that are found when the task runs"
    named = [dataset["name"] for dataset in ended["orders.publish"]["outputs"]]
    assert named == [f"{tmp_path}/warehouse/topics/orders-by-country"]
