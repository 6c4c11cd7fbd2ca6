"""Real Spark: drivers, migrations and Airflow's tasks killed at every step; executors lost."""

from __future__ import annotations

import itertools
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

from statelib.job import load_job
from tests.faults import subject
from tests.faults.campaign.case import Case, Fault, Outcome
from tests.faults.campaign.spark_driver import SLOW_JOB_FILE
from tests.faults.children import Child
from tests.spark_jobs.orders import JOB_FILE
from tests.spark_jobs.orders_job import SINK
from tests.spark_jobs.test_migrate import rates
from tests.task.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tests.faults.subject import Result

_ROOT = Path(__file__).parents[3]
_CLUSTER = "local-cluster[2,1,1024]"
_KILLS_OF_A_RUN = 5
_CLUSTER_CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.task.maxFailures": "50",
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.executor.memory": "512m",
    "spark.executorEnv.PYTHONPATH": str(_ROOT),
}
_VERBS = ("slice", "migrate", "take-back", "airflow")


@dataclass(frozen=True)
class _Undisturbed:
    """A verb's outcome when nothing happens, and how often it comes to each step."""

    expected: Result
    steps: Counter[str]


@contextmanager
def _prepare(folder: Path) -> Iterator[Path]:
    """Gives where `_undisturbed` makes and finds what it needs; it is for all faults of Spark."""
    made = folder.parent / "spark"
    if not made.exists():
        (made / "base").mkdir(parents=True)
        _must(_started("prepare", made / "base").wait(), made / "base")
    yield made


def _undisturbed(made: Path, verb: str) -> _Undisturbed:
    file = made / f"{verb}.pickle"
    if not file.exists():
        root = _before(made, verb, made / verb)
        (root / "steps").unlink(missing_ok=True)
        _must(_started(verb, root).wait(), root)
        steps = Counter((root / "steps").read_text().split()) if (root / "steps").exists() else Counter()
        file.write_bytes(pickle.dumps(_Undisturbed(_look(root, verb), steps)))
    found = pickle.loads(file.read_bytes())
    assert isinstance(found, _Undisturbed)
    return found


def _before(made: Path, verb: str, to: Path) -> Path:
    """What there is before a verb: a migration is taken back once there is one."""
    if verb == "take-back":
        _undisturbed(made, "migrate")
        return Path(shutil.copytree(made / "migrate", to))
    return Path(shutil.copytree(made / "base", to))


def _started(
    verb: str, folder: Path, step: str = "", *, conf: Mapping[str, str] | None = None, master: str = "local[2]"
) -> subprocess.Popen[bytes]:
    environ = os.environ | {"SPARK_MASTER": master, "SPARK_CONF": json.dumps(conf or {}), "PYTHONPATH": str(_ROOT)}
    command = [sys.executable, "-m", "tests.faults.campaign.spark_driver", verb, str(folder), *([step] if step else [])]
    with (folder / "output").open("ab") as output:
        return subprocess.Popen(command, cwd=_ROOT, env=environ, stdout=output, stderr=output)


def _must(code: int, folder: Path) -> None:
    assert code == 0, f"exit code {code}: {(folder / 'output').read_text()[-3000:]}"


def _look(root: Path, verb: str) -> Result:
    """In a child: reading leaves threads behind."""
    job, sinks = {
        "migrate": (rates(5), ("out",)),
        "take-back": (rates(None), ("out",)),
        "slow-slice": (load_job(f"{SLOW_JOB_FILE}:job"), (SINK,)),
    }.get(verb, (load_job(f"{JOB_FILE}:job"), (SINK,)))

    def look() -> Result:
        made = Pipeline(root / "look", job.topology, job.name, warehouse=str(root / "warehouse"))
        return subject.result_of(made, sinks)

    ended = Child(root, look).run()
    assert ended.code == 0, ended
    result: Result = ended.value
    return result


def _compared(root: Path, verb: str, made: Path, note: str, injected: int = 1) -> Outcome:
    found = subject.difference(_undisturbed(made, verb).expected, _look(root, verb))
    return Outcome(injected, recovered=0 if found else injected, difference=found, note=note)


def _kill_cases(made: Path, seed: int, quick: bool) -> Sequence[tuple[str, int]]:
    if quick:
        return [("migrate/commit.created", 1), ("airflow/stage.created", 1)]
    return [(f"{verb}/{step}", 1) for verb in _VERBS for step in sorted(_undisturbed(made, verb).steps)]


def _kill(case: Case, folder: Path, made: Path) -> Outcome:
    verb, step = case.what.split("/")
    _undisturbed(made, verb)
    root = _before(made, verb, folder / "root")
    code = _started(verb, root, step).wait()
    if code != -signal.SIGKILL:
        return Outcome(wrong=f"not killed, exit code {code}: {(root / 'output').read_text()[-2000:]}")
    _must(_started(verb, root).wait(), root)
    return _compared(root, verb, made, f"{verb} at {step}")


def _executor_cases(_: Path, seed: int, quick: bool) -> Sequence[tuple[str, int]]:
    return [(f"{_KILLS_OF_A_RUN} kills", seed + number) for number in range(1 if quick else 4)]


def _executors(case: Case, folder: Path, made: Path) -> Outcome:
    """Executors and their Python workers, one of two each time, are killed while tasks are at work."""
    _undisturbed(made, "slow-slice")
    chance = random.Random(case.seed)
    root = _before(made, "slow-slice", folder / "root")
    driver = _started("slow-slice", root, conf=_CLUSTER_CONF, master=_CLUSTER)
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
        _must(_started("slow-slice", root).wait(), root)
    else:
        _must(driver.returncode, root)
    if not killed:
        return Outcome(wrong="nothing was killed")
    return _compared(root, "slow-slice", made, f"{dict(killed)} killed, {tries} tries", killed.total())


def _at_work(root: Path) -> list[Path]:
    """The states that attempts have open."""
    return list((root / "state" / "attempts").glob("*/*/db/CURRENT"))


def _executor_processes(driver: int) -> list[int]:
    return _descendants(driver, lambda command: b"CoarseGrainedExecutorBackend" in command)


def _workers(driver: int) -> list[int]:
    """Python processes below executors that have no children: the daemon that they are forked from has some."""
    python = [
        pid
        for executor in _executor_processes(driver)
        for pid in _descendants(executor, lambda command: b"daemon" in command)
    ]
    return [pid for pid in python if not _children(pid)]


def _descendants(of: int, wanted: Callable[[bytes], bool]) -> list[int]:
    found, waiting = [], _children(of)
    while waiting:
        pid = waiting.pop()
        waiting += _children(pid)
        with suppress(OSError):
            if wanted(Path(f"/proc/{pid}/cmdline").read_bytes()):
                found.append(pid)
    return sorted(found)


def _children(of: int) -> list[int]:
    with suppress(OSError):
        tasks = Path(f"/proc/{of}/task").glob("*/children")
        return [int(pid) for pid in itertools.chain.from_iterable(task.read_text().split() for task in tasks)]
    return []


SPARK_KILLS = Fault(
    "kill-spark",
    "kill -9 of a Spark driver, a migration, its way back, an Airflow task, at every step",
    _kill_cases,
    _kill,
    _prepare,
    at_once=False,
)
EXECUTORS = Fault(
    "executors", "executors and workers of a cluster killed mid-task: equal output", _executor_cases, _executors,
    _prepare, at_once=False,
)  # fmt: skip
