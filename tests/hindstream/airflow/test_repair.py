"""A job that was wrong is repaired by a real Airflow: what a person is asked, and what each answer lets happen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hindstream
from hindstream.report.layout import report_path
from statelib.commits import CommitLog
from statelib.commits.forks import forks_of
from statelib.errors.kinds import ConfigurationError
from tests.conftest import ROOT
from tests.hindstream.cli.mend.test_repair import FILE, WRONG, run_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.task.pipeline import Pipeline

pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.long]

CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "approved": ("right", {"from": "41000"}, "Approve"),
    "rejected": ("right", {"from": 41000}, "Reject"),
    "bound": ("right", {"from": "41000", "keys": ["k0"]}, "Approve"),
    "interval": ("wrong", {"from": "41000", "to": "60000", "keys": ["k0", "k1", "k2"]}, "Approve"),
    "at_once": ("right", {"begins": "41000"}, "nobody is asked"),
}
"""By the name of a DAG: the file that the job has, of its last two runs; what its run is given; what a person says."""

DAGS = """
# an airflow dag
from airflow.sdk import DAG

from hindstream.airflow import repair_dag, repair_task_group

def of(name):
    return {{"warehouse": f"{folder}/{{name}}/warehouse", "state_dir": f"{folder}/{{name}}/local", "engine": "local"}}

for name in ("approved", "rejected", "bound"):
    globals()[name] = repair_dag("{folder}/right.py:job", dag_id=name, **of(name))
interval = repair_dag("{folder}/right.py:job", then="{folder}/wrong.py:job", dag_id="interval", **of("interval"))
with DAG("at_once", schedule=None) as at_once:
    repair_task_group(
        "{folder}/right.py:job", start="{{{{ dag_run.conf['begins'] }}}}", approve=False, **of("at_once")
    )
"""
RUN = """
import json, sys
from airflow.dag_processing.dagbag import DagBag
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.timezone import utcnow

bag = DagBag(sys.argv[1])
assert not bag.import_errors, bag.import_errors
cases, asked = json.loads(sys.argv[2]), {}

def answered(self, context):
    # Everything but the wait for a person, who answers at once.
    self.render_template_fields(context)
    asked[self.dag_id] = {"subject": self.subject, "body": self.body}
    return self.execute_complete(context, {
        "chosen_options": [cases[self.dag_id][2]], "params_input": {}, "responded_at": utcnow(),
        "responded_by_user": None, "timedout": False,
    })

ApprovalOperator.execute = answered
found = {}
for name, (_, conf, _) in cases.items():
    dag = bag.dags[name]
    for one in dag.tasks:
        one.retries = 0
    run = dag.test(run_conf=conf)
    states = {one.task_id.removeprefix("repair."): str(one.state) for one in run.get_task_instances()}
    found[name] = {"run": str(run.state), "states": states, "asked": asked.get(name)}
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Repaired:
    """A run that has ended, and the job."""

    job: Pipeline
    run: str
    states: Mapping[str, str]
    asked: Mapping[str, str] | None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repairs")
    (folder / "right.py").write_text(FILE)
    (folder / "wrong.py").write_text(WRONG)
    return folder


@pytest.fixture(scope="module")
def repaired(folder: Path) -> Mapping[str, Repaired]:
    """All cases, one after the other in one Airflow, each in a warehouse of its own."""
    jobs = {name: run_of(folder, name, 0 if file == "wrong" else 2) for name, (file, _, _) in CASES.items()}
    (folder / "dags").mkdir()
    (folder / "dags" / "repairs.py").write_text(DAGS.format(folder=folder))
    environ = os.environ | {
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "0",
        "PYTHONPATH": str(ROOT),
    }
    for command in (
        [Path(sys.executable).with_name("airflow"), "db", "migrate"],
        [sys.executable, "-c", RUN, str(folder / "dags"), json.dumps(CASES)],
    ):
        ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
        assert ended.returncode == 0, ended.stdout + ended.stderr
    found = json.loads(ended.stdout.splitlines()[-1])
    return {name: Repaired(jobs[name], **found[name]) for name in CASES}


def newest(job: Pipeline) -> dict[str, Any]:
    found = hindstream.read("counts", job="counting", warehouse=job.warehouse.uri(""))
    return {str(row["key"]): row["value"] for row in found.to_arrow(flat=False).to_pylist()}


def test_behind_an_approval_the_job_is_as_if_it_had_never_been_wrong(folder: Path, repaired) -> None:
    found, never = repaired["approved"], run_of(folder, "never", 4)
    assert found.run == "success"
    assert found.states == dict.fromkeys(("fork", "replay", "compare", "approve", "publish", "drop"), "success")
    assert "of counts differ" in found.asked["body"]
    assert "goes on from commit 2 of counting; 1 slice to replay" in found.asked["body"]
    assert newest(found.job) == newest(never)
    assert newest(repaired["at_once"].job) == newest(never)
    assert repaired["at_once"].states == dict.fromkeys(("fork", "replay", "compare", "publish", "drop"), "success")
    for name in ("approved", "at_once"):
        head = CommitLog(repaired[name].job.warehouse, "counting").head()
        assert head is not None
        assert (head.commit, head.repaired_by is not None) == (5, True)
        report = Path(repaired[name].job.warehouse.uri(report_path("counting", head.run_id)))
        assert head.run_id in report.read_text(), "where the task's button leads"


@pytest.mark.parametrize(
    ("name", "run", "states"),
    [
        ("rejected", "success", {"compare": "success", "approve": "success", "publish": "skipped", "drop": "success"}),
        ("bound", "failed", {"compare": "failed", "publish": "upstream_failed", "drop": "success"}),
    ],
)
def test_without_it_nothing_changes(repaired, name: str, run: str, states: dict[str, str]) -> None:
    found = repaired[name]
    assert found.run == run
    assert found.states.items() >= states.items()
    assert CommitLog(found.job.warehouse, "counting").head_number() == 4


def test_an_interval_alone_and_the_job_goes_on_with_its_own_file(repaired) -> None:
    found = repaired["interval"]
    assert found.run == "success"
    assert "Then " in found.asked["body"]
    assert "of 1970-01-01T00:01:00.000Z or later" in found.asked["body"]
    head = CommitLog(found.job.warehouse, "counting").head()
    assert head is not None
    assert head.commit == 5


def test_no_fork_is_left(repaired) -> None:
    assert {name: forks_of(of.job.warehouse, "counting") for name, of in repaired.items()} == dict.fromkeys(CASES, ())


def test_what_a_template_gives_is_never_guessed() -> None:
    from hindstream.airflow.repair import _is_true, _keys  # noqa: PLC0415 - imports Airflow

    assert (_is_true("True"), _is_true(False), _keys(["a", 7])) == (True, False, ["a", "7"])
    with pytest.raises(ConfigurationError, match="keys are a list, not 'k0'.*Next: give a list"):
        _keys("k0")
    with pytest.raises(ConfigurationError, match="late is true or false, not 'soon'"):
        _is_true("soon")
