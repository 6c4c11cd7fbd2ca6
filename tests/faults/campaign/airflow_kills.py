"""What a DAG file of the campaign has in it: a DAG whose tasks kill themselves, or whom they depend on, at named steps.

Below the DAG's folder, ``plan.json`` says what is to happen: by task a list with an entry for each try, ``[STEP, WHO]``
or null. Besides the steps of the phases there are ``begin`` and ``done``, before and after all that the task does, and
of a replay ``at-work``: a task of Spark has its state open. What has happened is in ``events``, a line each: task, try,
step, who, process.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from contextlib import ExitStack
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from statelib.errors.fault_points import observed
from tests.faults.campaign.processes import parent

if TYPE_CHECKING:
    from pathlib import Path

    from airflow.sdk import DAG

BEGIN, DONE, AT_WORK = "begin", "done", "at-work"


class Who(StrEnum):
    """Whom a task kills: each of them runs the next one below it."""

    SCHEDULER = "scheduler"
    EVERYTHING = "scheduler,supervisor,task"
    SUPERVISOR = "supervisor,task"
    TASK = "task"
    ZOMBIE = "supervisor,sleeps"
    """Its supervisor dies, and it sleeps until somebody wakes it up."""


def with_kills(dag: DAG, folder: Path) -> DAG:
    """The same DAG; a try follows soon on one that has failed, and there are some more for a machine that is busy."""
    for task in dag.tasks:
        task.retries = 6
        task.retry_delay = timedelta(seconds=1)
        task._pre_execute_hook = lambda context: _begin(context["ti"], folder)
        task._post_execute_hook = lambda *_: _done()
    return dag


_installed = ExitStack()
_tell: Any = None


def _begin(instance: Any, folder: Path) -> None:
    global _tell  # noqa: PLW0603 - a process is one try at one task
    tries = json.loads((folder / "plan.json").read_text()).get(instance.task_id, [])
    planned = tries[instance.try_number - 1] if instance.try_number <= len(tries) else None
    kills = _Kills(folder, instance.task_id, instance.try_number, planned)
    _tell = kills.observe
    _installed.enter_context(observed(kills.observe))
    if planned and planned[0] == AT_WORK:
        threading.Thread(target=kills.wait_for_work, daemon=True).start()
    kills.observe(BEGIN)


def _done() -> None:
    _tell(DONE)


class _Kills:
    """What one try at a task does to itself."""

    def __init__(self, folder: Path, task: str, number: int, planned: tuple[str, str] | None) -> None:
        self._folder, self._task, self._number = folder, task, number
        self._step, self._who = planned or ("", "")

    def observe(self, step: str) -> None:
        if step != self._step:
            return
        self._step = ""
        me = os.getpid()
        supervisor = parent(me) or 0
        processes = {"task": me, "supervisor": supervisor, "scheduler": parent(supervisor) or 0, "sleeps": me}
        with (self._folder / "events").open("a") as events:
            events.write(f"{self._task} {self._number} {step} {self._who} {me}\n")
        for name in self._who.split(","):
            if name != "sleeps":
                os.kill(processes[name], signal.SIGKILL)
            else:
                os.kill(me, signal.SIGSTOP)

    def wait_for_work(self) -> None:
        while not list((self._folder / "state" / "attempts").glob("*/*/db/CURRENT")):
            time.sleep(0.002)
        self.observe(AT_WORK)
