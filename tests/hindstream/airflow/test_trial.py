"""The group of `try_task_group`, run by a real Airflow: what a person is asked, and what each answer lets happen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from statelib import load_job
from statelib.storage import Storage
from tests.conftest import ROOT
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE = """
from datetime import timedelta

from hindstream import Job, StreamsBuilder, TimeWindows

windows = TimeWindows.of_size_and_grace(timedelta(seconds=10), timedelta(seconds=0))
builder = StreamsBuilder("counting")
builder.stream("views").group_by_key().windowed_by(windows).count().to_stream().to("counts")
job = Job("counting", builder.build())
"""
DAG_FILE = """
# an airflow dag
from airflow.sdk import DAG, task

from hindstream.airflow import try_task_group

with DAG("trial", schedule=None) as dag:

    @task
    def deploy():
        pass

    try_task_group({new!r}, against={old!r}, start={start!r}, end="70000", warehouse={warehouse!r},
                   state_dir={state_dir!r}, sample_keys={sample!r}, engine="local") >> deploy()
"""
RUN = """
import json, sys
from airflow.dag_processing.dagbag import DagBag
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.timezone import utcnow

bag = DagBag(sys.argv[1])
assert not bag.import_errors, bag.import_errors
dag = bag.dags["trial"]
asked = {}

def answered(self, context):
    # Everything but the wait for a person, who answers at once.
    self.render_template_fields(context)
    asked.update(subject=self.subject, body=self.body)
    return self.execute_complete(context, {
        "chosen_options": [sys.argv[2]], "params_input": {}, "responded_at": utcnow(), "responded_by_user": None,
        "timedout": False,
    })

ApprovalOperator.execute = answered
run = dag.test()
states = {one.task_id: str(one.state) for one in run.get_task_instances()}
print(json.dumps({"run": str(run.state), "states": states, "asked": asked}))
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    (tmp_path / "old.py").write_text(FILE)
    (tmp_path / "new.py").write_text(FILE.replace("seconds=0", "seconds=5"))
    made = Pipeline(tmp_path, load_job(f"{tmp_path}/old.py:job").topology, "counting")
    records = [(f"k{n % 3}", n, n * 1000) for n in range(100)]
    records[62:62] = [("k0", 0, 59_000)]
    made.archive("views", records, (pa.string(), pa.int64()), 1)
    for end in (20_000, 40_000, 60_000, 80_000):
        made.run(end)
    return made


def paths(warehouse: Storage) -> list[str]:
    return sorted(entry.path for entry in warehouse.list() if entry.path != "jobs/counting/maintenance.json")


def run(folder: Path, answer: str, start: str | None = None, sample: str | None = None) -> Mapping[str, object]:
    (folder / "dags").mkdir()
    (folder / "dags" / "trial.py").write_text(
        DAG_FILE.format(
            new=f"{folder}/new.py:job",
            old=f"{folder}/old.py:job",
            start=start,
            sample=sample,
            warehouse=f"{folder}/warehouse",
            state_dir=f"{folder}/state-dir",
        )
    )
    environ = os.environ | {
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "0",
        "PYTHONPATH": str(ROOT),
    }
    for command in ([Path(sys.executable).with_name("airflow"), "db", "migrate"], [sys.executable, "-c", RUN]):
        more = [] if "db" in command else [str(folder / "dags"), answer]
        done = subprocess.run([*command, *more], capture_output=True, text=True, check=False, env=environ)
        assert done.returncode == 0, done.stdout + done.stderr
    found: Mapping[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.airflow
@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "deployed", "sample", "told"),
    [
        ("Approve", "success", None, ("4.8 % of counts differ (1 of 21).", "value: changed in 1, B - A from +1 to +1")),
        ("Reject", "skipped", "27%", ("counts is equal (14 compared).", "is a sample of 0.27 of the keys, 2 keys.")),
    ],
)
def test_what_differs_is_shown_and_the_answer_counts(
    pipeline: Pipeline, tmp_path: Path, answer: str, deployed: str, sample: str | None, told: tuple[str, str]
) -> None:
    before = paths(pipeline.warehouse)
    found = run(tmp_path, answer, sample=sample)
    assert found["run"] == "success"
    steps = dict.fromkeys(("fork", "replay", "compare", "approve", "drop"), "success")
    assert found["states"] == {f"try.{name}": state for name, state in steps.items()} | {"deploy": deployed}
    asked = found["asked"]
    assert isinstance(asked, dict)
    assert asked["subject"] == told[0]
    assert told[1] in asked["body"]
    assert paths(pipeline.warehouse) == before


@pytest.mark.airflow
@pytest.mark.slow
def test_where_a_store_does_not_fit_the_run_fails_and_the_fork_is_dropped(pipeline: Pipeline, tmp_path: Path) -> None:
    before = paths(pipeline.warehouse)
    found = run(tmp_path, "Approve", start="40000")
    assert found["run"] == "failed"
    states = found["states"]
    assert isinstance(states, dict)
    assert (states["try.replay"], states["try.drop"], states["deploy"]) == ("failed", "success", "upstream_failed")
    assert paths(pipeline.warehouse) == before
