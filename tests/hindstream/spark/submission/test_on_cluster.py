"""Replays whose drivers run on a real standalone cluster: submitters and drivers are killed, the bytes are the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
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
from tests.spark_cluster import spark_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from statelib.documents.manifests import Staged
    from tests.spark_cluster import SparkCluster

pytestmark = [pytest.mark.spark, pytest.mark.slow]

STEPS = ["submit.before-claim", "submit.claimed", "submit.accepted", "submit.recorded"]
HOST = "127.0.0.2"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster"), HOST, has_rest=True, cores=3) as made:
        yield made


class World:
    """A job with a planned run."""

    def __init__(self, folder: Path, cluster: SparkCluster) -> None:
        self.folder = folder
        self.cluster = cluster
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
        command = [sys.executable, "-m", module, str(self.folder), self.cluster.url, str(self.cluster.rest_port)]
        done = subprocess.run([*command, kill_at], capture_output=True, text=True, check=False)
        assert done.returncode == (-signal.SIGKILL if kill_at else 0), done.stderr
        return done.stdout.strip()

    @property
    def here(self) -> Any:
        return submitted(self.folder, self.cluster.url, self.cluster.rest_port)

    def ended(self, application: str) -> str:
        """What the cluster says of it in the end."""
        until(lambda: self.here.cluster.status(application).state != "active")
        return str(self.here.cluster.status(application).said)

    @property
    def staged(self) -> Staged | None:
        return Runs(open_warehouse(self.settings), "orders").staged(self.run_id)

    def kept(self) -> int:
        return len([entry for entry in open_warehouse(self.settings).list("jobs") if "_outcomes/" in entry.path])


def until(condition: Callable[[], object]) -> None:
    """The time-out of the whole test is the only limit."""
    while not condition():
        time.sleep(0.2)


def made(staged: Staged | None) -> list[Any]:
    assert staged is not None
    return [(t.task_id, t.position, [(s.topic, s.file.rows, s.file.sha256) for s in t.sinks]) for t in staged.tasks]


def expected(folder: Path, cluster: SparkCluster) -> list[Any]:
    folder.mkdir()
    alone = World(folder, cluster)
    return made(replay.run(alone.job, alone.settings.model_copy(update={"engine": "local"})))


def kill_driver() -> None:
    """Kills the Java process of the only driver of this test's processes."""
    found = [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdecimal() and b"DriverWrapper" in _command(entry) and HOST.encode() in _command(entry)
    ]
    (driver,) = found
    os.kill(driver, signal.SIGKILL)


def _command(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.long
def test_a_driver_is_found_again_and_one_that_was_killed_is_followed_by_another(
    tmp_path: Path, cluster: SparkCluster
) -> None:
    world = World(tmp_path, cluster)
    world.wait.touch()
    first = world.submit()
    assert world.submit() == first  # a retry of the task
    until(lambda: world.kept() == 2)
    kill_driver()
    said = world.ended(first)
    with pytest.raises(RetryableError, match=rf"driver of the phase replay has ended before it was through: {said}"):
        world.here.check(said)
    world.wait.unlink()
    second = world.submit()
    assert second != first
    assert world.ended(second) == "FINISHED"
    world.here.check("FINISHED")
    assert world.staged is not None
    assert world.staged.done_before == 2
    assert world.here.attach_or_submit() is None
    assert made(world.staged) == expected(tmp_path / "alone", cluster)


@pytest.mark.parametrize(
    "step", [pytest.param(step, marks=[] if step == "submit.accepted" else [pytest.mark.long]) for step in STEPS]
)
def test_who_submits_is_killed(tmp_path: Path, cluster: SparkCluster, step: str) -> None:
    world = World(tmp_path, cluster)
    world.wait.touch()
    world.submit(step)
    application = world.submit()
    newest = world.submissions.newest()
    assert newest is not None
    assert newest.number == (1 if step in {"submit.before-claim", "submit.recorded"} else 2)
    assert newest.application == application
    world.wait.unlink()
    assert world.ended(application) == "FINISHED"
    assert made(world.staged) == expected(tmp_path / "alone", cluster)
