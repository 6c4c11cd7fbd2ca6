"""Replays whose driver and executors are pods: Kubernetes' API server, Spark's own scheduler for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from statelib.errors.kinds import RetryableError
from tests.hindstream.spark.submission.kubernetes import has_program
from tests.hindstream.spark.submission.kubernetes_replays import Replays, replays
from tests.hindstream.spark.submission.world import STEPS, World, expected, made, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long, has_program]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replays]:
    with replays(tmp_path_factory.mktemp("kubernetes")) as cluster, pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", cluster.kubeconfig)
        yield cluster


@pytest.fixture
def world(tmp_path: Path, cluster: Replays) -> World:
    return World(tmp_path, cluster.server.master)


def test_a_driver_is_found_again_and_one_that_was_killed_is_followed_by_another(world: World, cluster: Replays) -> None:
    world.wait.touch()
    first = world.submit()
    assert world.submit() == first  # a retry of the task
    until(lambda: world.kept() == 2)
    cluster.node.kill(first.partition(":")[2])
    assert world.ended(first) == "FAILED"
    with pytest.raises(RetryableError, match="driver of the phase replay has ended before it was through: FAILED"):
        world.here.check("FAILED")
    world.wait.unlink()
    second = world.submit()
    assert second != first
    assert world.ended(second) == "SUCCEEDED"
    world.here.check("SUCCEEDED")
    assert world.staged is not None
    assert world.staged.done_before == 2
    assert world.here.attach_or_submit() is None
    assert made(world.staged) == expected(world.folder / "alone")


@pytest.mark.parametrize("step", STEPS)
def test_who_submits_is_killed(world: World, step: str) -> None:
    world.wait.touch()
    world.submit(step)
    application = world.submit()
    newest = world.submissions.newest()
    assert newest is not None
    assert newest.number == (1 if step in {"submit.before-claim", "submit.recorded"} else 2)
    assert newest.application == application
    world.wait.unlink()
    assert world.ended(application) == "SUCCEEDED"
    assert made(world.staged) == expected(world.folder / "alone")


def test_a_pod_that_was_deleted_and_a_server_that_does_not_answer(world: World) -> None:
    cluster = world.here.cluster
    assert cluster.status("replays:gone-driver").state == "unknown"
    with pytest.raises(OSError, match='--status ended with code 1: .*pods "a" is forbidden'):
        cluster.status("others:a")
