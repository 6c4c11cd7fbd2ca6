"""Replays whose drivers run on Hadoop's YARN, which starts a driver again itself before it gives up."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.hindstream.spark.submission.world import World, begun, check_followed, check_stopped, until
from tests.hindstream.spark.submission.yarn import Yarn, yarn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Yarn]:
    (tmp_path / "yarn").mkdir()
    with yarn(tmp_path / "yarn") as found, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HADOOP_CONF_DIR", str(found.conf))
        yield found


def drivers(application: str) -> list[int]:
    """The Java processes of an application's driver."""
    command = ["ps", "-ww", "-eo", "pid=,args="]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found = [line.split() for line in lines if application in line and "yarn.ApplicationMaster" in line]
    return [int(pid) for pid, program, *_ in found if program.endswith("/java")]


def test_a_driver_is_found_again_and_one_that_was_killed_is_followed_by_another(tmp_path: Path, server: Yarn) -> None:
    world = World(tmp_path, "yarn", server.port)
    first = begun(world)
    (driver,) = drivers(first)
    os.kill(driver, signal.SIGKILL)
    until(lambda: drivers(first) not in ([], [driver]))  # YARN starts another
    assert world.submit() == first
    (another,) = drivers(first)
    os.kill(another, signal.SIGKILL)
    said = world.ended(first)
    assert said.startswith("FAILED")
    check_followed(world, first, said, succeeded="SUCCEEDED")


def test_a_driver_is_stopped(tmp_path: Path, server: Yarn) -> None:
    check_stopped(World(tmp_path, "yarn", server.port), succeeded="SUCCEEDED")
