"""What becomes of the tasks of `switch_over_dag`, by a real Airflow, where a person says no or a task fails.

The steps themselves do nothing here; `tests/kafka/test_switch_over_dag.py` has the real ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hindstream.airflow.switch_over import BESIDE, SWITCH
from statelib.errors.kinds import ConfigurationError
from tests.conftest import ROOT

RUN = """
import json, sys
from pathlib import Path
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowFailException
from airflow.sdk.timezone import utcnow
from hindstream.airflow import switch_over, switch_over_dag

folder, failing, answer = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
result = {"compare": {"subject": "s", "text": "t"}}


def stub(name):
    def do(self, *given, **named):
        if name == failing:
            raise AirflowFailException(name)
        return result.get(name, True)
    return do


for name in ("archive", "replay", "hand_over", "catch_up", "compare", "wait_for_stop", "switch", "wait_for_start"):
    setattr(switch_over._Steps, name, stub(name))


def answered(self, context):
    return self.execute_complete(context, {
        "chosen_options": [answer], "params_input": {}, "responded_at": utcnow(), "responded_by_user": None,
        "timedout": False,
    })


ApprovalOperator.execute = answered
commands = {}
for name in ("start_shadow", "stop_shadow", "stop_old", "start_old", "start_new"):
    commands[name] = f"exit 7" if name == failing else f"echo {name} >> {folder}/said"
dag = switch_over_dag("jobs/x.py:job", archive="jobs/x.py:topics", dag_id="switch", **commands)
for one in dag.tasks:
    one.retries = 0
"""
FILE = """# an airflow dag
import sys
sys.argv = {arguments!r}
exec({code!r})
"""
TEST = """
import json, sys
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(sys.argv[1])
assert not bag.import_errors, bag.import_errors
run = bag.dags["switch"].test()
print(json.dumps({one.task_id: str(one.state) for one in run.get_task_instances()} | {"dag_run": str(run.state)}))
"""


def states(folder: Path, failing: str, answer: str) -> dict[str, str]:
    """Of the tasks, and of the run."""
    (folder / "dags").mkdir()
    text = FILE.format(arguments=["", str(folder), failing, answer], code=RUN)
    (folder / "dags" / "switch.py").write_text(text)
    environ = os.environ | {
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "0",
        "PYTHONPATH": str(ROOT),
    }
    airflow = Path(sys.executable).with_name("airflow")
    for command in ([airflow, "db", "migrate"], [sys.executable, "-c", TEST, str(folder / "dags")]):
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
        assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.airflow
@pytest.mark.slow
@pytest.mark.parametrize(
    ("failing", "answer", "said", "failed", "not_run"),
    [
        pytest.param("", "Reject", "start_shadow stop_shadow", (), SWITCH, id="rejected"),
        pytest.param(
            "switch", "Approve", "start_shadow stop_shadow stop_old start_old", ("switch",), SWITCH[4:],
            id="switch fails",
        ),
        pytest.param(
            "compare", "Approve", "start_shadow stop_shadow", ("compare",), (*BESIDE[6:], *SWITCH),
            id="comparison fails", marks=pytest.mark.long,
        ),
        pytest.param(
            "start_new", "Approve", "start_shadow stop_shadow stop_old", ("start_new",), SWITCH[5:],
            id="start fails", marks=pytest.mark.long,
        ),
    ],
)  # fmt: skip
def test_what_is_started_and_stopped(tmp_path: Path, failing, answer, said, failed, not_run) -> None:
    found = states(tmp_path, failing, answer)
    assert sorted((tmp_path / "said").read_text().split()) == sorted(said.split())
    left = "upstream_failed" if failed else "skipped"
    expected = dict.fromkeys((*BESIDE, *SWITCH, "stop_shadow"), "success")
    expected |= dict.fromkeys(failed, "failed") | dict.fromkeys(not_run, left)
    expected |= {"start_old": "success" if failing == "switch" else "skipped"}
    assert found == expected | {"dag_run": "failed" if failed else "success"}


def test_a_shadow_that_nobody_stops() -> None:
    from hindstream.airflow import switch_over_dag  # noqa: PLC0415

    with pytest.raises(ConfigurationError, match="one command of the shadow is missing"):
        switch_over_dag("j.py:job", archive="j.py:t", stop_old="a", start_old="b", start_new="c", start_shadow="d")
