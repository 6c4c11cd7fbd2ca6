"""Real Spark: drivers, migrations and Airflow's tasks killed at every step; executors lost."""

from __future__ import annotations

import fcntl
import json
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from statelib.commits import Retention, maintain
from statelib.job.job import load_job
from tests.faults import subject
from tests.faults.campaign.case import Case, Fault, Outcome
from tests.faults.campaign.processes import children, descendants
from tests.faults.campaign.spark_driver import SLOW_JOB_FILE
from tests.faults.children import Child
from tests.hindstream.spark.migration.test_migrate import rates
from tests.hindstream.spark.orders import JOB_FILE
from tests.hindstream.spark.orders_job import SINK
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.faults.subject import Result

ROOT = Path(__file__).parents[3]
_CLUSTER = "local-cluster[2,1,1024]"
_KILLS_OF_A_RUN = 5
_CLUSTER_CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.task.maxFailures": "50",
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.executor.memory": "512m",
    "spark.executorEnv.PYTHONPATH": str(ROOT),
}
_THEN_THE_REST = ("two-days", "scheduled", "migrate")
"""Verbs of which it is seen, by one slice more and its maintenance, whether anything is left behind."""

_VERBS = ("slice", "migrate", "take-back", "airflow")


@dataclass(frozen=True)
class Undisturbed:
    """A verb's outcome when nothing happens, and how often it comes to each step."""

    expected: Result
    steps: Counter[str]


@contextmanager
def prepare(folder: Path) -> Iterator[Path]:
    """Gives where `undisturbed` makes and finds what it needs; it is for all faults of Spark."""
    made = folder.parent / "spark"
    if not made.exists():
        (made / "base").mkdir(parents=True)
        must(started("prepare", made / "base").wait(), made / "base")
    yield made


def undisturbed(made: Path, verb: str) -> Undisturbed:
    """A verb when nothing happens, which is tried if nobody has."""
    file = made / f"{verb}.pickle"
    with (made / f"{verb}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            root = before(made, verb, made / verb)
            (root / "steps").unlink(missing_ok=True)
            must(started(verb, root).wait(), root)
            steps = Counter((root / "steps").read_text().split()) if (root / "steps").exists() else Counter()
            file.write_bytes(pickle.dumps(Undisturbed(_look(root, verb), steps)))
    found = pickle.loads(file.read_bytes())
    assert isinstance(found, Undisturbed)
    return found


def before(made: Path, verb: str, to: Path) -> Path:
    """A copy of what there is before a verb: a migration is taken back once there is one."""
    first = {"take-back": "migrate", "two-days": "first-day"}.get(verb)
    if first is not None:
        undisturbed(made, first)
        return Path(shutil.copytree(made / first, to))
    return Path(shutil.copytree(made / "base", to))


def started(
    verb: str, folder: Path, step: str = "", *, conf: Mapping[str, str] | None = None, master: str = "local[2]"
) -> subprocess.Popen[bytes]:
    environ = os.environ | {"SPARK_MASTER": master, "SPARK_CONF": json.dumps(conf or {}), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.faults.campaign.spark_driver", verb, str(folder), *([step] if step else [])]
    with (folder / "output").open("ab") as output:
        return subprocess.Popen(command, cwd=ROOT, env=environ, stdout=output, stderr=output)


def must(code: int, folder: Path) -> None:
    assert code == 0, f"exit code {code}: {(folder / 'output').read_text()[-3000:]}"


def _look(root: Path, verb: str) -> Result:
    """In a child: reading leaves threads behind."""
    job, sinks = {
        "migrate": (rates(5), ("out",)),
        "take-back": (rates(None), ("out",)),
        "slow-slice": (load_job(f"{SLOW_JOB_FILE}:job"), (SINK,)),
    }.get(verb, (load_job(f"{JOB_FILE}:job"), (SINK,)))

    def look() -> Result:
        if verb in _THEN_THE_REST:
            rest = Pipeline(root, job.topology, job.name, "rest")
            rest.run()
            maintain(rest.warehouse, job.name, Retention(), now_ms=0)
        made = Pipeline(root / "look", job.topology, job.name, warehouse=str(root / "warehouse"))
        return subject.result_of(made, sinks)

    ended = Child(root, look).run()
    assert ended.code == 0, ended
    result: Result = ended.value
    return result


def compared(root: Path, verb: str, made: Path, note: str, injected: int = 1) -> Outcome:
    found = subject.difference(undisturbed(made, verb).expected, _look(root, verb))
    return Outcome(injected, recovered=0 if found else injected, difference=found, note=note)


def _kill_cases(made: Path, seed: int, quick: bool) -> Sequence[tuple[str, int]]:
    if quick:
        return [(("migrate/commit.created", "airflow/stage.created")[seed % 2], 1)]
    return [(f"{verb}/{step}", 1) for verb in _VERBS for step in sorted(undisturbed(made, verb).steps)]


def _kill(case: Case, folder: Path, made: Path) -> Outcome:
    verb, step = case.what.split("/")
    undisturbed(made, verb)
    root = before(made, verb, folder / "root")
    code = started(verb, root, step).wait()
    if code != -signal.SIGKILL:
        return Outcome(wrong=f"not killed, exit code {code}: {(root / 'output').read_text()[-2000:]}")
    must(started(verb, root).wait(), root)
    return compared(root, verb, made, f"{verb} at {step}")


def _executor_cases(_: Path, seed: int, quick: bool) -> Sequence[tuple[str, int]]:
    return [(f"{_KILLS_OF_A_RUN} kills", seed + number) for number in range(1 if quick else 4)]


def _executors(case: Case, folder: Path, made: Path) -> Outcome:
    """Executors and their Python workers, one of two each time, are killed while tasks are at work."""
    undisturbed(made, "slow-slice")
    chance = random.Random(case.seed)
    root = before(made, "slow-slice", folder / "root")
    driver = started("slow-slice", root, conf=_CLUSTER_CONF, master=_CLUSTER)
    killed: Counter[str] = Counter()
    while driver.poll() is None:
        time.sleep(chance.uniform(0.2, 1.0))
        if killed.total() < int(case.what.split()[0]) and _at_work(root):
            kind = chance.choice(["executor", "worker"])
            found = _executor_processes(driver.pid) if kind == "executor" else _workers(driver.pid)
            if found:
                with suppress(ProcessLookupError):
                    os.kill(chance.choice(found), signal.SIGKILL)
                    killed[kind] += 1
    tries = 1
    if driver.returncode == 75:  # Spark has given up, which says: again
        tries = 2
        must(started("slow-slice", root).wait(), root)
    else:
        must(driver.returncode, root)
    if not killed:
        return Outcome(wrong="nothing was killed")
    return compared(root, "slow-slice", made, f"{dict(killed)} killed, {tries} tries", killed.total())


def _at_work(root: Path) -> list[Path]:
    """The states that attempts have open."""
    return list((root / "state" / "attempts").glob("*/*/db/CURRENT"))


def _executor_processes(driver: int) -> list[int]:
    return descendants(driver, lambda command: b"CoarseGrainedExecutorBackend" in command)


def _workers(driver: int) -> list[int]:
    """Python processes below executors that have no children: the daemon that they are forked from has some."""
    python = [
        pid
        for executor in _executor_processes(driver)
        for pid in descendants(executor, lambda command: b"daemon" in command)
    ]
    return [pid for pid in python if not children(pid)]


SPARK_KILLS = Fault(
    "kill-spark",
    "kill -9 of a Spark driver, a migration, its way back, an Airflow task, at every step",
    _kill_cases,
    _kill,
    prepare,
    at_once=0,
)
EXECUTORS = Fault(
    "executors", "executors and workers of a cluster killed mid-task: equal output", _executor_cases, _executors,
    prepare, at_once=0,
)  # fmt: skip
