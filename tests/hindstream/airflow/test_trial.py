"""The group of `try_task_group`, run by a real Airflow: what a person is asked, and what each answer lets happen."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from statelib import load_job
from statelib.storage import Storage
from tests.conftest import ROOT
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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

with DAG({name!r}, schedule=None) as dag:

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
answers = json.loads(sys.argv[2])
asked = {}

def answered(self, context):
    # Everything but the wait for a person, who answers at once.
    self.render_template_fields(context)
    asked[self.dag_id] = {"subject": self.subject, "body": self.body}
    return self.execute_complete(context, {
        "chosen_options": [answers[self.dag_id]], "params_input": {}, "responded_at": utcnow(),
        "responded_by_user": None, "timedout": False,
    })

ApprovalOperator.execute = answered
found = {}
for name in answers:
    run = bag.dags[name].test()
    states = {one.task_id: str(one.state) for one in run.get_task_instances()}
    found[name] = {"run": str(run.state), "states": states, "asked": asked.get(name)}
print(json.dumps(found))
"""


TRIALS: dict[str, tuple[str, str | None, str | None]] = {
    "approved": ("Approve", None, None),
    "rejected": ("Reject", None, "27%"),
    "does-not-fit": ("Approve", "40000", None),
}
"""By the name of a DAG what a person answers, where the trial starts, and the sample of the keys."""


@dataclass(frozen=True)
class Done:
    """A run that has ended, and its warehouse."""

    warehouse: Storage
    before: Sequence[str]
    run: str
    states: Mapping[str, str]
    asked: Mapping[str, str] | None


def paths(warehouse: Storage) -> list[str]:
    return sorted(entry.path for entry in warehouse.list() if entry.path != "jobs/counting/maintenance.json")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Done]:
    """All trials, one after the other in one Airflow, each in a warehouse of its own."""
    folder = tmp_path_factory.mktemp("trials")
    (folder / "old.py").write_text(FILE)
    (folder / "new.py").write_text(FILE.replace("seconds=0", "seconds=5"))
    made = Pipeline(folder, load_job(f"{folder}/old.py:job").topology, "counting")
    records = [(f"k{n % 3}", n, n * 1000) for n in range(100)]
    records[62:62] = [("k0", 0, 59_000)]
    made.archive("views", records, (pa.string(), pa.int64()), 1)
    for end in (20_000, 40_000, 60_000, 80_000):
        made.run(end)
    (folder / "dags").mkdir()
    warehouses = {}
    for name, (_, start, sample) in TRIALS.items():
        shutil.copytree(folder / "warehouse", folder / name / "warehouse")
        warehouses[name] = Storage(f"{folder}/{name}/warehouse")
        (folder / "dags" / f"{name}.py").write_text(
            DAG_FILE.format(
                name=name,
                new=f"{folder}/new.py:job",
                old=f"{folder}/old.py:job",
                start=start,
                sample=sample,
                warehouse=f"{folder}/{name}/warehouse",
                state_dir=f"{folder}/{name}/state-dir",
            )
        )
    before = {name: paths(warehouse) for name, warehouse in warehouses.items()}
    environ = os.environ | {
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "0",
        "PYTHONPATH": str(ROOT),
    }
    answers = json.dumps({name: answer for name, (answer, _, _) in TRIALS.items()})
    for command in (
        [Path(sys.executable).with_name("airflow"), "db", "migrate"],
        [sys.executable, "-c", RUN, str(folder / "dags"), answers],
    ):
        ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
        assert ended.returncode == 0, ended.stdout + ended.stderr
    found = json.loads(ended.stdout.splitlines()[-1])
    return {name: Done(warehouses[name], before[name], **found[name]) for name in TRIALS}


@pytest.mark.long
@pytest.mark.airflow
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "deployed", "told"),
    [
        (
            "approved",
            "success",
            ("4.8 % of counts differ (1 of 21).", "value: changed in 1, B - A from +1 to +1"),
        ),
        (
            "rejected",
            "skipped",
            ("counts is equal (14 compared).", "a sample of 27.0 % of the keys: 2 keys."),
        ),
    ],
)
def test_what_differs_is_shown_and_the_answer_counts(
    done: Mapping[str, Done], name: str, deployed: str, told: tuple[str, str]
) -> None:
    found = done[name]
    assert found.run == "success"
    steps = dict.fromkeys(("fork", "replay", "compare", "approve", "drop"), "success")
    assert found.states == {f"try.{name}": state for name, state in steps.items()} | {"deploy": deployed}
    assert found.asked is not None
    assert found.asked["subject"] == told[0]
    assert told[1] in found.asked["body"]
    assert paths(found.warehouse) == found.before


@pytest.mark.long
@pytest.mark.airflow
@pytest.mark.slow
def test_where_a_store_does_not_fit_the_run_fails_and_the_fork_is_dropped(done: Mapping[str, Done]) -> None:
    found = done["does-not-fit"]
    assert found.run == "failed"
    states = found.states
    assert (states["try.replay"], states["try.drop"], states["deploy"]) == ("failed", "success", "upstream_failed")
    assert paths(found.warehouse) == found.before
