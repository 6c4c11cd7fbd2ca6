"""Replays whose drivers run on a real standalone cluster: submitters and drivers are killed, the bytes are the same."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from statelib.errors.kinds import RetryableError
from tests.hindstream.spark.submission.world import (
    STEPS,
    World,
    begun,
    check_followed,
    check_killed_submitter,
    check_stopped,
    expected,
    made,
    until,
)
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


def only_driver() -> int:
    """The Java process of the only driver of this test's processes."""
    found = [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdecimal() and b"DriverWrapper" in _command(entry) and HOST.encode() in _command(entry)
    ]
    (driver,) = found
    return driver


def _command(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.long
def test_a_driver_is_found_again_and_one_that_was_killed_is_followed_by_another(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the credentials of the task's connection, and none of Airflow's own."""
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "postgresql://of-airflow")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-the-lake")
    first = begun(world)
    environ = Path(f"/proc/{only_driver()}/environ").read_bytes()
    assert b"of-airflow" not in environ
    assert b"AWS_SECRET_ACCESS_KEY=of-the-lake" in environ
    os.kill(only_driver(), signal.SIGKILL)
    check_followed(world, first, world.ended(first), succeeded="FINISHED")


@pytest.mark.long
def test_a_driver_is_stopped(world: World) -> None:
    check_stopped(world, succeeded="FINISHED")


@pytest.mark.parametrize("step", [pytest.param(step, marks=pytest.mark.long) for step in STEPS])
def test_who_submits_is_killed(world: World, step: str) -> None:
    check_killed_submitter(world, step, succeeded="FINISHED")


@pytest.mark.long
def test_the_master_is_killed_and_recovers_while_a_driver_is_at_work(world: World, cluster: SparkCluster) -> None:
    """Until its worker has told of itself, the new master says of no driver what becomes of it."""
    first = begun(world)
    os.kill(cluster.pid(HOST), signal.SIGSTOP)
    try:
        cluster.restart_master()
        with pytest.raises(OSError, match="Current state is not alive: RECOVERING"):
            world.here.cluster.status(first)
        with pytest.raises(RetryableError, match="the cluster does not answer: .* not alive: RECOVERING"):
            world.here.attach_or_submit()
    finally:
        os.kill(cluster.pid(HOST), signal.SIGCONT)
    until(lambda: world.said(first) == "RUNNING")
    assert world.submit() == first
    world.wait.unlink()
    assert world.ended(first) == "FINISHED"
    assert made(world.staged) == expected(world.folder / "alone")
