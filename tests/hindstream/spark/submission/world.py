"""A job with a planned run, which another process submits to a cluster."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from hindstream.runs import open_warehouse
from hindstream.spark.phases import plan, replay
from hindstream.spark.submission.record import Submissions
from statelib.commits import NothingToDo, Runs
from statelib.errors.kinds import RetryableError
from statelib.job.job import load_job
from tests.hindstream.spark.orders import archive_orders, make_settings, orders
from tests.hindstream.spark.submission.submitter import JOB, submitted

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hindstream.spark.submission.follow import Submitted
    from statelib.documents.manifests import Staged
    from statelib.settings.settings import Settings

STEPS = ["submit.before-claim", "submit.claimed", "submit.accepted", "submit.recorded"]
"""Where who submits is killed."""


class World:
    """A job with a planned run.

    Args:
        folder: For all that it has.
        master: The cluster's.
        rest_port: Of the server that tells what becomes of applications, if there is one.
    """

    def __init__(self, folder: Path, master: str, rest_port: int = 0) -> None:
        self.folder = folder
        self.master = master
        self.rest_port = rest_port
        self.wait = folder / "wait"
        (folder / "job.py").write_text(JOB.format(wait=str(self.wait)))
        self.settings = make_settings(folder)
        self.job = load_job(f"{folder / 'job.py'}:job")
        archive_orders(self.settings, orders())
        planned = plan.run(self.job, self.settings)
        assert not isinstance(planned, NothingToDo)
        self.run_id = planned.run_id
        self.submissions = Submissions(open_warehouse(self.settings), "orders", self.run_id, "replay")

    def submit(self, kill_at: str = "") -> str:
        """In a process of its own; the application that it is to wait for."""
        module = "tests.hindstream.spark.submission.submitter"
        command = [sys.executable, "-m", module, str(self.folder), self.master, str(self.rest_port), kill_at]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == (-signal.SIGKILL if kill_at else 0), done.stderr
        return done.stdout.strip()

    @property
    def here(self) -> Submitted:
        """The same, in this process."""
        return submitted(self.folder, self.master, self.rest_port)

    def said(self, application: str) -> str:
        """What the cluster says of it now; nothing, if it does not answer."""
        try:
            return self.here.cluster.status(application).said
        except OSError:
            return ""

    def ended(self, application: str) -> str:
        """What the cluster says of it in the end."""
        until(lambda: self.here.cluster.status(application).state != "active")
        return self.here.cluster.status(application).said

    @property
    def staged(self) -> Staged | None:
        """What the replay has given."""
        return Runs(open_warehouse(self.settings), "orders").staged(self.run_id)

    def kept(self) -> int:
        """How many tasks of Spark are done."""
        return kept(self.settings)


def begun(world: World) -> str:
    """A driver that has done two tasks, and waits in the third; who submits it a second time finds it."""
    world.wait.touch()
    first = world.submit()
    assert world.submit() == first  # a retry of the task
    until(lambda: world.kept() == 2)
    return first


def check_followed(world: World, first: str, said: str, *, succeeded: str) -> None:
    """A driver that was killed, of which the cluster has ``said`` something, is followed by one that does the rest."""
    killed = f"before it was through: {re.escape(said)}"
    with pytest.raises(RetryableError, match=f"{killed}|SparkContext was shut down"):
        world.here.check(said)
    world.wait.unlink()
    second = world.submit()
    assert second != first
    assert world.ended(second) == succeeded
    world.here.check(succeeded)
    assert world.staged is not None
    assert world.staged.done_before == 2
    assert world.here.attach_or_submit() is None
    assert made(world.staged) == expected(world.folder / "alone")


def check_stopped(world: World, *, succeeded: str) -> None:
    """A driver is stopped through its cluster, and another one does the rest; what has ended is stopped in vain."""
    first = begun(world)
    world.here.stop()
    check_followed(world, first, world.ended(first), succeeded=succeeded)
    world.here.stop()


def check_killed_submitter(world: World, step: str, *, succeeded: str) -> None:
    """Who submits is killed at a step; the next one finds the application, or submits another."""
    world.wait.touch()
    world.submit(step)
    application = world.submit()
    newest = world.submissions.newest()
    assert newest is not None
    assert newest.number == (1 if step in {"submit.before-claim", "submit.recorded"} else 2)
    assert newest.application == application
    world.wait.unlink()
    assert world.ended(application) == succeeded
    assert made(world.staged) == expected(world.folder / "alone")


def kept(settings: Settings) -> int:
    """How many tasks of Spark are done in a warehouse."""
    return len([entry for entry in open_warehouse(settings).list("jobs") if "_outcomes/" in entry.path])


def until(condition: Callable[[], object]) -> None:
    """The time-out of the whole test is the only limit."""
    while not condition():
        time.sleep(0.2)


def made(staged: Staged | None) -> list[Any]:
    """What makes two replays the same."""
    assert staged is not None
    return [(t.task_id, t.position, [(s.topic, s.file.rows, s.file.sha256) for s in t.sinks]) for t in staged.tasks]


def expected(folder: Path) -> list[Any]:
    """What the replay gives if it is done in this process."""
    folder.mkdir()
    alone = World(folder, "local")
    return made(replay.run(alone.job, alone.settings.model_copy(update={"engine": "local"})))
