"""What a cluster's Python workers are forked from in the campaign: Hindstream's daemon, but a step can stop a worker.

``LATE_FOLDER`` in the environment is where workers note what they come to, a line each in ``notes``: process, task,
step. ``LATE_STOP``, ``STEP:N``, stops the worker that comes to the n-th step of that name, of all workers together. It
notes ``stopped`` before and ``woken`` after. At the end of each task it notes ``ended`` or, with an error, ``failed``.
"""

from __future__ import annotations

import fcntl
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import daemon

import hindstream.spark.session.daemon  # noqa: F401 - its imports
from statelib.errors.fault_points import observed

if TYPE_CHECKING:
    from collections.abc import Callable

STOPPED, WOKEN, ENDED, FAILED = "stopped", "woken", "ended", "failed"


def _observer(folder: Path, step: str, number: int) -> Callable[[str], None]:
    notes, attempts = folder / "notes", folder / "state" / "attempts"

    def observe(name: str) -> None:
        process = os.getpid()
        # JOB.RUN.TASK.NONCE-ATTEMPT-PROCESS
        (task,) = {path.name.split(".")[-2] for path in attempts.glob(f"*/*-{process}")} or {"none"}
        with notes.open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            seen = sum(line.split()[2] == name for line in file)
            stops = name == step and seen + 1 == number
            file.write(f"{process} {task} {name}\n" + (f"{process} {task} {STOPPED}\n" if stops else ""))
        if stops:
            os.kill(process, signal.SIGSTOP)
            with notes.open("a") as file:
                file.write(f"{process} {task} {WOKEN}\n")

    return observe


def _noting_ends(notes: Path, run_task: Callable[..., None]) -> Callable[..., None]:
    def run(*streams: object) -> None:
        what = FAILED
        try:
            run_task(*streams)
            what = ENDED
        finally:
            with notes.open("a") as file:
                file.write(f"{os.getpid()} none {what}\n")

    return run


if __name__ == "__main__":
    wanted, _, count = os.environ.get("LATE_STOP", "none:0").partition(":")
    place = Path(os.environ["LATE_FOLDER"])
    daemon.worker_main = _noting_ends(place / "notes", daemon.worker_main)
    with observed(_observer(place, wanted, int(count))):
        daemon.manager()  # type: ignore[no-untyped-call]
