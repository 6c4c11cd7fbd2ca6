"""What becomes of the tasks of `switch_over_dag`, by a real Airflow, where a person says no or a task fails.

The steps themselves do nothing here; `tests/kafka/test_switch_over_dag.py` has the real ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hindstream.airflow.switch_over import BESIDE, SWITCH
from statelib.errors.kinds import ConfigurationError
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

CASES = {
    "rejected": ("", "Reject"),
    "switch-fails": ("switch", "Approve"),
    "comparison-fails": ("compare", "Approve"),
    "start-fails": ("start_new", "Approve"),
}
"""By the name of a DAG which step fails, and what a person answers."""

FILE = """# an airflow dag
from pathlib import Path
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowFailException
from airflow.sdk.timezone import utcnow
from hindstream.airflow import switch_over, switch_over_dag

folder, cases = Path({folder!r}), {cases!r}
result = {{"compare": {{"subject": "s", "text": "t"}}}}


def stub(name):
    def do(self, *given, **named):
        if name == cases[get_current_context()["dag"].dag_id][0]:
            raise AirflowFailException(name)
        return result.get(name, True)
    return do


for name in ("archive", "replay", "hand_over", "catch_up", "compare", "wait_for_stop", "switch", "wait_for_start"):
    setattr(switch_over._Steps, name, stub(name))


def answered(self, context):
    return self.execute_complete(context, {{
        "chosen_options": [cases[self.dag_id][1]], "params_input": {{}}, "responded_at": utcnow(),
        "responded_by_user": None, "timedout": False,
    }})


ApprovalOperator.execute = answered
for case, (failing, _) in cases.items():
    commands = {{}}
    for name in ("start_shadow", "stop_shadow", "stop_old", "start_old", "start_new"):
        commands[name] = f"exit 7" if name == failing else f"echo {{name}} >> {{folder}}/said-{{case}}"
    dag = globals()[case] = switch_over_dag("jobs/x.py:job", archive="jobs/x.py:topics", dag_id=case, **commands)
    for one in dag.tasks:
        one.retries = 0
"""
TEST = """
import json, sys
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(sys.argv[1])
assert not bag.import_errors, bag.import_errors
states = {}
for name in sys.argv[2:]:
    run = bag.dags[name].test()
    states[name] = {one.task_id: str(one.state) for one in run.get_task_instances()} | {"dag_run": str(run.state)}
print(json.dumps(states))
"""


@dataclass(frozen=True)
class Ended:
    """The states of the tasks and the run of each case, and what its commands have said."""

    states: Mapping[str, Mapping[str, str]]
    said: Mapping[str, str]


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """All cases, one after the other in one Airflow."""
    folder = tmp_path_factory.mktemp("switch-over")
    (folder / "dags").mkdir()
    (folder / "dags" / "switch.py").write_text(FILE.format(folder=str(folder), cases=CASES))
    environ = os.environ | {
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "0",
        "PYTHONPATH": str(ROOT),
    }
    airflow = Path(sys.executable).with_name("airflow")
    for command in ([airflow, "db", "migrate"], [sys.executable, "-c", TEST, str(folder / "dags"), *CASES]):
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
        assert done.returncode == 0, done.stdout + done.stderr
    said = {case: (folder / f"said-{case}").read_text() for case in CASES}
    return Ended(json.loads(done.stdout.splitlines()[-1]), said)


@pytest.mark.long
@pytest.mark.airflow
@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "said", "failed", "not_run"),
    [
        ("rejected", "start_shadow stop_shadow", (), SWITCH),
        ("switch-fails", "start_shadow stop_shadow stop_old start_old", ("switch",), SWITCH[4:]),
        ("comparison-fails", "start_shadow stop_shadow", ("compare",), (*BESIDE[6:], *SWITCH)),
        ("start-fails", "start_shadow stop_shadow stop_old", ("start_new",), SWITCH[5:]),
    ],
)
def test_what_is_started_and_stopped(ended: Ended, case, said, failed, not_run) -> None:
    assert sorted(ended.said[case].split()) == sorted(said.split())
    left = "upstream_failed" if failed else "skipped"
    expected = dict.fromkeys((*BESIDE, *SWITCH, "stop_shadow"), "success")
    expected |= dict.fromkeys(failed, "failed") | dict.fromkeys(not_run, left)
    expected |= {"start_old": "success" if case == "switch-fails" else "skipped"}
    assert ended.states[case] == expected | {"dag_run": "failed" if failed else "success"}


def test_a_shadow_that_nobody_stops() -> None:
    from hindstream.airflow import switch_over_dag  # noqa: PLC0415

    with pytest.raises(ConfigurationError, match="one command of the shadow is missing"):
        switch_over_dag("j.py:job", archive="j.py:t", stop_old="a", start_old="b", start_new="c", start_shadow="d")
