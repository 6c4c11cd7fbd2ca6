"""The DAG of `switch_over_dag`, run by a real Airflow with real applications on a real broker, while input flows.

Each task dies once when its work is done, before Airflow knows: the next attempt has to find that out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest

from hindstream.airflow.switch_over import BESIDE, SWITCH
from tests.conftest import ROOT
from tests.hindstream.airflow.airflow_environ import AIRFLOW
from tests.hindstream.airflow.standalone import standalone
from tests.kafka.delays import FACTOR, PARTITIONS, Delays, write_jobs
from tests.kafka.maven import build
from tests.kafka.test_switch_over import settings_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.kafka.broker import Broker

pytestmark = [pytest.mark.slow, pytest.mark.airflow]

DAG_FILE = """
# an airflow dag
import functools
import os
import signal
from datetime import timedelta
from pathlib import Path
{header}
from hindstream.airflow import switch_over_dag

FOLDER = Path({folder!r})
COMMON = {{
    "max_lag": 300, "poke_interval": timedelta(seconds=1), "config": str(FOLDER / "hindstream.toml"), "engine": "local",
}}


def ask(name):
    return f"touch {{FOLDER}}/asked/{{name}} && while [ -e {{FOLDER}}/asked/{{name}} ]; do sleep 0.1; done"


def die(*given):
    if {killed!r}:
        os.kill(os.getpid(), signal.SIGKILL)
    raise RuntimeError("dies once")


def one_of(name, *tasks):
    return name.partition("-")[2] in tasks


def dies_once(name, do):
    @functools.wraps(do)
    def dying(*given, **named):
        mark, early = FOLDER / f"died-{{name}}", FOLDER / f"died-early-{{name}}"
        if {killed!r} and one_of(name, "hand_over", "switch") and not early.exists():
            from hindstream.kafka.cluster import Cluster

            early.touch()
            Cluster.set_group_offsets = die
        done = do(*given, **named)
        if done is False or mark.exists() or ({dying!r} and name not in {dying!r}):
            return done
        mark.touch()
        die()

    return dying


switch = switch_over_dag(
    f"{{FOLDER}}/jobs/delays_2.py:job",
    dag_id="switch",
    archive=f"{{FOLDER}}/jobs/delays_2.py:topics",
    start_shadow=ask("start-shadow"),
    stop_shadow=ask("stop-shadow"),
    stop_old=ask("stop-old"),
    start_old=ask("start-old"),
    start_new=f"ls -d {{FOLDER}}/delays-2-state/*/*/* > {{FOLDER}}/given && " + ask("start-new"),
    observe=timedelta(minutes=1),
    new_state_dir=f"{{FOLDER}}/{{{{{{{{ 'delays-2-state' }}}}}}}}",
    **COMMON,
)
back = switch_over_dag(
    f"{{FOLDER}}/jobs/delays_1.py:job",
    dag_id="back",
    switch=f"{{FOLDER}}/jobs/delays_1.py:back",
    take_over=f"{{FOLDER}}/jobs/delays_1.py:handover",
    archive=f"{{FOLDER}}/jobs/delays_1.py:topics",
    stop_old=ask("stop-new"),
    start_old=ask("start-new"),
    start_new=ask("start-again"),
    **COMMON,
)
for dag in (switch, back):
    for one in dag.tasks:
        one.retry_delay = timedelta(seconds=0)
        for does in ("python_callable", "step"):  # of Airflow's operators and sensors, and of ours
            if hasattr(one, does):
                setattr(one, does, dies_once(f"{{dag.dag_id}}-{{one.task_id}}", getattr(one, does)))
"""
ANSWERED = """
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.timezone import utcnow

asked = {}

def answered(self, context):
    # Everything but the wait for a person, who answers at once.
    self.render_template_fields(context)
    asked.update(subject=self.subject, body=self.body)
    return self.execute_complete(context, {
        "chosen_options": ["Approve"], "params_input": {}, "responded_at": utcnow(), "responded_by_user": None,
        "timedout": False,
    })

ApprovalOperator.execute = answered
"""
RUN = """
import json, sys
from airflow.dag_processing.dagbag import DagBag

bag = DagBag(sys.argv[1])
assert not bag.import_errors, bag.import_errors
states = {}
for name in sys.argv[2:]:
    run = bag.dags[name].test()
    states[name] = {one.task_id: str(one.state) for one in run.get_task_instances()} | {"dag_run": str(run.state)}
print(json.dumps({"states": states, "asked": asked}))
"""


class Operations:
    """Whoever starts and stops the applications, as commands ask for by files."""

    def __init__(self, delays: Delays, folder: Path) -> None:
        self._apps = {
            "old": delays.app("delays-1"),
            "shadow": delays.app("shadow-delays-2", factor=FACTOR, outputs="shadow-"),
            "new": delays.app("delays-2", factor=FACTOR),
            "again": delays.app("delays-3"),
        }
        self._running: dict[str, ExitStack] = {}
        self._files = folder / "asked"
        self._files.mkdir()
        self._end = threading.Event()
        self.asked: list[str] = []

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        for name in [*self._running]:
            self.do("stop", name)

    def _serve(self) -> None:
        while not self._end.wait(0.05):
            for file in self._files.iterdir():
                self.asked.append(file.name)
                self.do(*file.name.split("-"))
                file.unlink()

    def do(self, what: str, name: str) -> None:
        """Starts or stops an application, if it is not so already."""
        if what == "start" and name not in self._running:
            self._running[name] = ExitStack()
            self._running[name].enter_context(self._apps[name])
        elif what == "stop" and name in self._running:
            self._running.pop(name).close()

    def catch_up(self, name: str) -> None:
        """Waits until an application has read everything."""
        self._apps[name].catch_up()


class Bed:
    """Applications, jobs and an Airflow that has not been started."""

    def __init__(
        self, broker: Broker, prefix: str, folder: Path, dying: tuple[str, ...] | None, *, killed: bool = False
    ) -> None:
        self.folder = folder
        self.delays = Delays(broker, folder, prefix)
        self.delays.create_topics()
        settings_in(folder, broker)
        jars = ",".join(str(jar) for jar in sorted((build() / "spark-jars").iterdir()))
        with (folder / "hindstream.toml").open("a") as file:
            file.write(f'[spark_conf]\n"spark.jars" = "{jars}"\n')
        write_jobs(folder / "jobs", prefix)
        (folder / "airflow" / "dags").mkdir(parents=True)
        (folder / "airflow" / "dags" / "switch.py").write_text(
            DAG_FILE.format(folder=str(folder), dying=dying, killed=killed, header=ANSWERED if killed else "")
        )

    def run(self, *dags: str) -> Mapping[str, Mapping[str, Mapping[str, str]]]:
        """The DAGs, one after the other, in one process."""
        environ = os.environ | {
            "AIRFLOW_HOME": str(self.folder / "airflow"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.folder / "airflow" / "dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "0",
            "PYTHONPATH": str(ROOT),
        }
        airflow = Path(sys.executable).with_name("airflow")
        for command in (
            [airflow, "db", "migrate"],
            [sys.executable, "-c", ANSWERED + RUN, environ["AIRFLOW__CORE__DAGS_FOLDER"], *dags],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
            (self.folder / "airflow.log").write_text(done.stdout + done.stderr)
            assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout.splitlines()[-1])


def check_state_of_new(folder: Path) -> None:
    """What the new application was started on, however often ``switch`` had died: databases of each task."""
    given = [Path(path).relative_to(folder / "delays-2-state") for path in (folder / "given").read_text().split()]
    assert {path.parts[0].rpartition("delays-")[2] for path in given} == {"2"}
    assert {path.parts[1] for path in given} >= {f"0_{partition}" for partition in range(PARTITIONS)}


@pytest.mark.parametrize(
    ("dags", "dying"),
    [
        pytest.param(("switch",), ("switch-switch",), id="over", marks=pytest.mark.long),
        pytest.param(("switch", "back"), None, id="over-and-back-and-every-task-dies", marks=pytest.mark.long),
    ],
)
def test_tasks_that_die_and_are_retried(
    broker: Broker, tmp_path: Path, dags: tuple[str, ...], dying: tuple[str, ...] | None
) -> None:
    bed = Bed(broker, f"dag-{len(dags)}-", tmp_path, dying)
    with bed.delays.feed() as feed, Operations(bed.delays, tmp_path) as operations:
        operations.do("start", "old")
        feed.wait(300)
        found = bed.run(*dags)
        expected = {"switch": (*BESIDE, *SWITCH, "stop_shadow"), "back": ("archive", "take_over", *SWITCH)}
        for name in dags:
            all_done = dict.fromkeys((*expected[name], "dag_run"), "success")
            assert found["states"][name] == all_done | {"start_old": "skipped"}
        feed.wait(300)
        feed.end()
        operations.catch_up("new" if len(dags) == 1 else "again")
    assert found["asked"]["subject"].startswith("100.0 % of ")
    commands = [
        "start-shadow",
        "stop-shadow",
        "stop-old",
        "start-new",
        *(["stop-new", "start-again"] * (len(dags) - 1)),
    ]
    assert sorted(operations.asked) == sorted(commands), "each once"
    bed.delays.check_readers(1 + len(dags))
    check_state_of_new(tmp_path)


@pytest.mark.long
def test_tasks_whose_processes_are_killed(broker: Broker, tmp_path: Path) -> None:
    """Each when its work is done; a hand-over also before the group's offsets are set."""
    bed = Bed(broker, "killed-", tmp_path, None, killed=True)
    with bed.delays.feed() as feed, Operations(bed.delays, tmp_path) as operations, standalone(tmp_path) as airflow:
        operations.do("start", "old")
        airflow.wait(lambda: "known" in airflow.states("switch"))
        subprocess.run([AIRFLOW, "dags", "trigger", "switch"], env=airflow.environ, check=True, capture_output=True)
        states = airflow.ended("switch")
        assert states.pop("start_old") == "skipped", states
        assert {*states.values()} == {"success"}, states
        feed.wait(300)
        feed.end()
        operations.catch_up("new")
    died = {file.name for file in tmp_path.glob("died-*")}
    own = [name for name in (*BESIDE, *SWITCH) if name not in {"start_shadow", "approve", "stop_old", "start_new"}]
    early = {f"died-early-switch-{name}" for name in ("hand_over", "switch")}
    assert died == {f"died-switch-{name}" for name in own} | early
    bed.delays.check_readers(2)
    check_state_of_new(tmp_path)
