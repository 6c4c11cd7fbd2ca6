"""Replays whose drivers run on a real standalone cluster: submitters and drivers are killed, the bytes are the same."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from statelib.errors.kinds import RetryableError
from tests.hindstream.spark.submission.world import STEPS, World, expected, made, until
from tests.spark_cluster import spark_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.spark_cluster import SparkCluster

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HOST = "127.0.0.2"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster"), HOST, has_rest=True, cores=3) as made:
        yield made


@pytest.fixture
def world(tmp_path: Path, cluster: SparkCluster) -> World:
    return World(tmp_path, cluster.url, cluster.rest_port)


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
def test_a_driver_is_found_again_and_one_that_was_killed_is_followed_by_another(world: World) -> None:
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
    assert made(world.staged) == expected(world.folder / "alone")


@pytest.mark.parametrize("step", [pytest.param(step, marks=pytest.mark.long) for step in STEPS])
def test_who_submits_is_killed(world: World, step: str) -> None:
    world.wait.touch()
    world.submit(step)
    application = world.submit()
    newest = world.submissions.newest()
    assert newest is not None
    assert newest.number == (1 if step in {"submit.before-claim", "submit.recorded"} else 2)
    assert newest.application == application
    world.wait.unlink()
    assert world.ended(application) == "FINISHED"
    assert made(world.staged) == expected(world.folder / "alone")
