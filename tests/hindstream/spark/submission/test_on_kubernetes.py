"""Replays whose driver and executors are pods: Kubernetes' API server, Spark's own scheduler for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.hindstream.spark.submission.kubernetes import has_program
from tests.hindstream.spark.submission.kubernetes_replays import Replays, replays
from tests.hindstream.spark.submission.world import (
    STEPS,
    World,
    begun,
    check_followed,
    check_killed_submitter,
    check_stopped,
)

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
    first = begun(world)
    cluster.node.kill(first.partition(":")[2])
    assert world.ended(first) == "FAILED"
    check_followed(world, first, "FAILED", succeeded="SUCCEEDED")


def test_a_driver_is_stopped(world: World) -> None:
    check_stopped(world, succeeded="SUCCEEDED")


@pytest.mark.parametrize("step", STEPS)
def test_who_submits_is_killed(world: World, step: str) -> None:
    check_killed_submitter(world, step, succeeded="SUCCEEDED")


def test_a_pod_that_was_deleted_and_a_server_that_does_not_answer(world: World) -> None:
    cluster = world.here.cluster
    assert cluster.status("replays:gone-driver").state == "unknown"
    with pytest.raises(OSError, match='--status ended with code 1: .*pods "a" is forbidden'):
        cluster.status("others:a")
