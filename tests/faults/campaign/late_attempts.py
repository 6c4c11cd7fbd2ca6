"""Attempts at tasks that are late: a Python worker stops at a step, another attempt does its task, then it wakes up.

Two ways to be overtaken, both on a cluster of two hosts of one core:

``speculation``
    The task takes longer than others, so Spark starts a second attempt on the other host. When one of the two has done
    the task, Spark ends the other.
``zombie-attempt``
    The whole host stands still. Spark hears no heartbeat, believes the executor lost, and does its tasks elsewhere. The
    worker wakes up, alone or with its host.

What a late worker came to after it was woken it has noted itself (`tests.faults.campaign.spark_daemon`). Where it came
to nothing, because Spark had killed it or did at once, no fault is counted.
"""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from tests.faults.campaign import spark
from tests.faults.campaign.case import Case, Fault, Outcome
from tests.faults.campaign.processes import parent, state
from tests.faults.campaign.spark_daemon import ENDED, FAILED, STOPPED, WOKEN
from tests.spark_cluster import spark_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_VERB = "two-days"
_TASKS = 6
_STEPS = (
    "checkpoint.restored", "task.restored", "task.batch-processed", "task.files-staged",
    "checkpoint.before-upload", "checkpoint.uploaded", "task.state-saved",
)  # fmt: skip
_BESIDE, _COMMITTED, _FURTHER = "beside the other", "after the commit", "after a further slice"
_MOMENTS = (_BESIDE, _COMMITTED, _FURTHER)

_ENDS = {ENDED: "came to its end", FAILED: "failed"}

_LONGEST_SECONDS = 600
_LATE_SECONDS = 60

_HOSTS = ("127.0.0.2", "127.0.0.3")
_CLUSTER_CONF = {
    "spark.cores.max": str(len(_HOSTS)),
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executorEnv.PYTHONPATH": str(spark.ROOT),
    "spark.python.daemon.module": "tests.faults.campaign.spark_daemon",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # both hosts are there when the first task begins
    "spark.task.maxFailures": "50",
    "spark.ui.enabled": "false",
}
_SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.3",
}
_LOST_SOON = {
    "spark.executor.heartbeatInterval": "500ms",
    "spark.network.timeout": "6s",
    "spark.network.timeoutInterval": "1s",
}


@dataclass(frozen=True)
class _Prepared:
    made: Path
    master: str


@contextmanager
def _prepare(folder: Path) -> Iterator[_Prepared]:
    with spark.prepare(folder) as made, spark_cluster(folder, *_HOSTS) as cluster:
        yield _Prepared(made, cluster.url)


def _cases(_: _Prepared, seed: int, quick: bool) -> Sequence[tuple[str, int]]:
    """``STEP/MOMENT``; the seed decides which of the steps of the name."""
    every = [(f"{step}/{moment}", seed) for step in _STEPS for moment in _MOMENTS]
    return [every[seed % len(every)]] if quick else every[seed % 2 :: 2]


class _Note(NamedTuple):
    """What a worker says of itself."""

    process: int
    task: str
    what: str


class _Run:
    """A driver under way on the cluster, whose worker stops at the case's step."""

    def __init__(self, case: Case, folder: Path, prepared: _Prepared, conf: Mapping[str, str]) -> None:
        step, self.moment = case.what.split("/")
        self.root = spark.before(prepared.made, _VERB, folder / "root")
        (self.root / "slices").unlink()
        given = {
            "spark.executorEnv.LATE_FOLDER": str(self.root),
            "spark.executorEnv.LATE_STOP": f"{step}:{random.Random(str(case)).randint(1, _TASKS)}",
        }
        self._after(1).touch()
        self._after(2).touch()
        self.driver = spark.started(_VERB, self.root, conf=_CLUSTER_CONF | given | conf, master=prepared.master)

    def __enter__(self) -> Self:
        self.late: _Note = self.wait("a worker stops", lambda: self._noted(STOPPED))
        self.wait("it has stopped", lambda: state(self.late.process) == "T")
        return self

    def __exit__(self, *_: object) -> None:
        self.driver.kill()
        self.driver.wait()

    def _after(self, slice_number: int) -> Path:
        """As long as it is there the driver does not go on after the slice."""
        return self.root / f"wait{slice_number}"

    def notes(self) -> list[_Note]:
        file = self.root / "notes"
        lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
        return [_Note(int(process), task, what) for process, task, what in lines]

    def _noted(self, what: str) -> _Note | None:
        return next((note for note in self.notes() if note.what == what), None)

    def wait(self, what: str, condition: Callable[[], Any]) -> Any:
        since = time.monotonic()
        while not (found := condition()):
            in_time = time.monotonic() - since < _LONGEST_SECONDS and self.driver.poll() is None
            assert in_time, f"waits until {what}: {(self.root / 'output').read_text()[-3000:]}"
            time.sleep(0.02)
        return found

    def slices(self) -> int:
        """How many have been committed, published and maintained."""
        file = self.root / "slices"
        return len(file.read_text().splitlines()) if file.exists() else 0

    def until_overtaken(self) -> None:
        """Until another attempt is at work at the task, or the run goes by."""
        if self.moment == _BESIDE:
            self.wait("another attempt begins", self._other_begins)
            return
        self.wait("the slice is done without it", lambda: self.slices() == 1)
        if self.moment == _FURTHER:
            self._after(1).unlink()
            self.wait("the next slice is done without it", lambda: self.slices() == 2)

    def _other_begins(self) -> bool:
        notes = self.notes()
        at = notes.index(self.late._replace(what=STOPPED))
        return any(note.task == self.late.task and note.process != self.late.process for note in notes[at:])

    def fate(self) -> tuple[bool, str]:
        """What has become of the late one since it was woken, which is waited for; and whether it came to anything."""
        since = time.monotonic()
        while self._end() is None and time.monotonic() - since < _LATE_SECONDS:
            time.sleep(0.05)
        if not self._since_woken():
            return False, "it had been killed before"
        steps = list(takewhile(lambda what: what not in _ENDS, (note.what for note in self._since_woken()[1:])))
        last = f"{len(steps)} steps, the last one {steps[-1]}" if steps else "no further step"
        return bool(steps) or self._end() in _ENDS.values(), f"it {self._end() or 'hangs'}: {last}"

    def _end(self) -> str | None:
        """How the late one has ended; None: not yet."""
        found = next((_ENDS[note.what] for note in self._since_woken() if note.what in _ENDS), None)
        return found or ("was killed" if state(self.late.process) == "Z" else None)

    def _since_woken(self) -> list[_Note]:
        notes = [note for note in self.notes() if note.process == self.late.process]
        woken = self.late._replace(what=WOKEN)
        return notes[notes.index(woken) :] if woken in notes else []

    def end(self) -> None:
        """Ends the driver, and all workers with it."""
        self._after(1).unlink(missing_ok=True)
        self._after(2).unlink()
        spark.must(self.driver.wait(), self.root)
        workers = {note.process for note in self.notes()}
        since = time.monotonic()
        while alive := [worker for worker in workers if state(worker) != "Z"]:
            assert time.monotonic() - since < _LATE_SECONDS, f"workers {alive} outlive the driver"
            time.sleep(0.05)


def _send(number: signal.Signals, *processes: int) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def _speculation(case: Case, folder: Path, prepared: _Prepared) -> Outcome:
    """Spark ends the loser within some four seconds, or in three cases of four it may take as long as it wants."""
    patient = random.Random(f"patient {case}").random() < 0.75
    conf = {"spark.python.task.killTimeout": "1h"} if patient else {}
    with _Run(case, folder, prepared, _SPECULATION | conf) as run:
        run.until_overtaken()
        _send(signal.SIGCONT, run.late.process)
        return _outcome(run, prepared, "patient Spark" if patient else "Spark")


def _zombie(case: Case, folder: Path, prepared: _Prepared) -> Outcome:
    """The host's Spark worker and executor stand still with it: neither hears or says anything."""
    alone = random.Random(f"alone {case}").random() < 0.75
    with _Run(case, folder, prepared, _LOST_SOON) as run:
        daemon = parent(run.late.process) or 0
        executor = parent(daemon) or 0
        host = [parent(executor) or 0, executor, daemon]
        assert min(host) > 1, f"worker, executor and daemon are {host}"
        _send(signal.SIGSTOP, *host)
        try:
            run.until_overtaken()
            _send(signal.SIGCONT, run.late.process)
            if alone:
                run.fate()
        finally:
            _send(signal.SIGCONT, *host)
        return _outcome(run, prepared, "woken before its host" if alone else "woken with its host")


def _outcome(run: _Run, prepared: _Prepared, how: str) -> Outcome:
    met, fate = run.fate()
    run.end()
    note = f"{how}: {fate}{'' if met else ': not met'}"
    outcome = spark.compared(run.root, _VERB, prepared.made, note, int(met))
    left = list((run.root / "state" / "attempts").glob("*/*"))  # the attempts of a slice remove those of former ones
    return replace(outcome, wrong=f"left on the host: {left}") if left else outcome


SPECULATION = Fault(
    "speculation", "a worker stopped, its task done by a speculative attempt, woken: it changes nothing",
    _cases, _speculation, _prepare, at_once=0,
)  # fmt: skip
ZOMBIE_ATTEMPTS = Fault(
    "zombie-attempt", "a host stopped, its executor believed lost, its task done elsewhere, woken: it changes nothing",
    _cases, _zombie, _prepare, at_once=0,
)  # fmt: skip
