"""Tasks of a real Airflow, their supervisors and its scheduler killed with ``kill -9``: its next try must go on.

A round is one run of a DAG. Each of its tasks is killed once at a step, another one in each round, and by chance once
more where it begins or ends; in a quick campaign only some of them. Whom a kill hits is by chance too: the task's
process, with its supervisor, or the supervisor alone: then the task sleeps, as one whom nobody looks after may, until a
later try has done its work.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tests.faults.campaign import spark
from tests.faults.campaign.airflow_kills import AT_WORK, BEGIN, DONE, Who
from tests.faults.campaign.airflow_server import Airflow, airflow
from tests.faults.campaign.case import Case, Fault, Outcome
from tests.faults.campaign.processes import state
from tests.hindstream.spark.orders import DAY_MS, JOB_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_VERB = "scheduled"
_TASKS = ("plan", "replay", "audit", "commit", "publish", "maintain", "report")
_TASK_OF = {"stage": "replay", "rewrite": "maintain"}
"""Of a step whose name begins otherwise."""

_SCHEDULER = "scheduler"
_FEW = "few"
_FEW_TASKS = 2
_LONGEST_SECONDS = 1500

_DAG_FILE = """from pathlib import Path

from hindstream.airflow import replay_dag  # Airflow
from tests.faults.campaign.airflow_kills import with_kills

for dag_id in {dag_ids!r}:
    place = Path({place!r}) / dag_id
    settings = dict(warehouse=f"{{place}}/warehouse", state_dir=f"{{place}}/state", spark_master="local[2]")
    dag = replay_dag({job!r}, dag_id=dag_id, batch_records=60, **settings)
    globals()[dag_id] = with_kills(dag, place)
"""


@dataclass(frozen=True)
class _Prepared:
    """Airflow with the DAGs ``round-0`` and so on, as many as make each task meet each of its ``steps``."""

    made: Path
    place: Path
    steps: dict[str, list[str]]
    server: Airflow


@contextmanager
def _prepare(folder: Path) -> Iterator[_Prepared]:
    place = folder / "dags"
    place.mkdir()
    with spark.prepare(folder) as made:
        steps = _steps(made)
        dag_ids = [*_rounds(steps), _SCHEDULER, _FEW]
        dag_file = _DAG_FILE.format(dag_ids=dag_ids, place=str(place), job=f"{JOB_FILE}:job")
        with airflow(folder / "airflow", dag_file, {"PYTHONPATH": str(spark.ROOT)}) as server:
            yield _Prepared(made, place, steps, server)


def _steps(made: Path) -> dict[str, list[str]]:
    """What each task comes to when nothing happens."""
    # It forks, which this process may be past: the preparations of other faults leave threads behind.
    first = multiprocessing.get_context("forkserver").Process(target=spark.undisturbed, args=(made, "slice"))
    first.start()
    first.join()
    steps = {task: [AT_WORK] if task == "replay" else [] for task in _TASKS}
    for step in sorted(spark.undisturbed(made, "slice").steps):
        phase = step.partition(".")[0]
        steps[_TASK_OF.get(phase, phase)].append(step)
    return {task: [*named, BEGIN, DONE] for task, named in steps.items()}


def _rounds(steps: dict[str, list[str]]) -> list[str]:
    return [f"round-{number}" for number in range(max(map(len, steps.values())))]


def _cases(prepared: _Prepared, seed: int, quick: bool) -> Sequence[tuple[str, int]]:
    return [(name, seed) for name in ([_FEW] if quick else [*_rounds(prepared.steps), _SCHEDULER])]


def _kills(case: Case, steps: dict[str, list[str]]) -> dict[str, list[tuple[str, str]]]:
    """What happens to which try of which task."""
    if case.what == _SCHEDULER:
        return {"replay": [(AT_WORK, Who.SCHEDULER)], "commit": [("commit.created", Who.EVERYTHING)]}
    chance = random.Random(str(case))
    number = case.seed if case.what == _FEW else int(case.what.rpartition("-")[2])
    tasks = chance.sample(sorted(steps), _FEW_TASKS) if case.what == _FEW else steps
    kills = {}
    for task in tasks:
        named = steps[task]
        at = [named[number % len(named)]] + ([chance.choice((BEGIN, DONE))] if chance.random() < 0.3 else [])
        kills[task] = [(step, chance.choice((Who.TASK, Who.TASK, Who.SUPERVISOR, Who.ZOMBIE))) for step in at]
    return kills


class _Event(NamedTuple):
    """A kill that has happened."""

    task: str
    number: int
    step: str
    who: str
    process: int


def _events(root: Path) -> list[_Event]:
    file = root / "events"
    lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
    return [_Event(task, int(number), step, who, int(process)) for task, number, step, who, process in lines]


def _run(case: Case, _: Path, prepared: _Prepared) -> Outcome:
    planned = _kills(case, prepared.steps)
    root = spark.before(prepared.made, _VERB, prepared.place / case.what)
    (root / "plan.json").write_text(json.dumps(planned))
    since, started, states = time.monotonic(), False, dict[str, str]()
    while _asleep(root, states) or states.get("run") not in {"success", "failed"}:
        assert time.monotonic() - since < _LONGEST_SECONDS, f"not done in {_LONGEST_SECONDS} s: {states}"
        started = started or prepared.server.trigger(case.what, {"until": 2 * DAY_MS})
        time.sleep(0.5)
        states = prepared.server.states(case.what)
    events = _events(root)
    note = ", ".join(f"{event.task} {event.number} at {event.step} ({event.who})" for event in events)
    if set(states.values()) != {"success"}:
        return Outcome(wrong=f"Airflow's run has ended with {states}; {note}")
    if missing := planned.keys() - {event.task for event in events}:
        return Outcome(wrong=f"not killed: {missing}; {note}")
    return spark.compared(root, _VERB, prepared.made, note, len(events))


def _asleep(root: Path, states: dict[str, str]) -> bool:
    """Whether there is a late task; it is woken when a later try has done its work."""
    alive = [event for event in _events(root) if event.who == Who.ZOMBIE and state(event.process) != "Z"]
    for event in alive:
        if states.get(event.task) == "success" or states.get("run") == "failed":
            with suppress(ProcessLookupError):
                os.kill(event.process, signal.SIGCONT)
    return bool(alive)


AIRFLOW = Fault(
    "airflow", "kill -9 of Airflow's tasks, supervisors, scheduler at every step; tasks asleep: its next try goes on",
    _cases, _run, _prepare,
)  # fmt: skip
