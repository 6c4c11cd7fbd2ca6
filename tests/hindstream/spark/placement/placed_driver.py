"""A driver on a cluster of the tests, in a process of its own, that runs a slice when it is told to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hindstream.runs import open_warehouse
from hindstream.spark.session.session import quick_start
from statelib.commits import Runs
from statelib.placement.documents import read_copies, read_placement
from statelib.settings.settings import load_settings
from tests.spark_cluster import DISK

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from statelib.documents.manifests import Staged
    from statelib.placement.documents import Copies, PlacedHost, Placement
    from statelib.settings.settings import Settings
    from tests.spark_cluster import SparkCluster

_CONF = {
    **quick_start("driver"),
    **quick_start("executor"),
    "spark.executor.memory": "512m",
    "spark.python.daemon.module": "hindstream.spark.session.daemon",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


class Driver:
    """Its warehouse is in ``folder``.

    Args:
        folder: For the warehouse and the driver's log and scratch.
        cluster: Where it works; each host has its state on its own disk.
        job: The job's reference, and its name.
        slice_ms: How long a slice is.
        slices: How many there are already.
        settings: Others than those of the tests.
    """

    def __init__(
        self, folder: Path, cluster: SparkCluster, job: tuple[str, str], slice_ms: int, slices: int, **settings: object
    ) -> None:
        reference, self._job = job
        self.settings = load_settings({"warehouse": str(folder / "warehouse")}, environ={})
        given = {
            "warehouse": self.settings.warehouse,
            "state_dir": f"${DISK}/state",
            "spark_master": cluster.url,
            "spark_conf": _CONF,
            "audit_engine": "pandas",
            "num_standby_replicas": 1,
            "acceptable_recovery_lag": 0,
            "wait_for_hosts": "3s",
            **settings,
        }
        command = [sys.executable, "-m", "tests.hindstream.spark.placement.placed_runs", reference, json.dumps(given)]
        environ = os.environ | {DISK: str(folder / "disk-of-driver")}
        with (folder / "driver.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=environ
            )
        self._log = folder / "driver.log"
        self.slices, self._slice_ms = slices, slice_ms

    def ask(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().strip()
        assert answer, self.log()[-3000:]
        return answer

    def run(self, *, unkept: bool = False) -> Run:
        """The next slice; ``unkept``: without its maintenance, so that standbys lack its commit."""
        self.slices += 1
        how = "unkept " if unkept else ""
        return Run(self.settings, self._job, self.ask(f"{how}{self.slices * self._slice_ms}"))

    def log(self) -> str:
        """What it has said until now, and the drivers before it."""
        return self._log.read_text()

    def close(self) -> None:
        try:
            self._process.communicate(timeout=120)
            assert self._process.returncode == 0, self.log()[-3000:]
        finally:
            self._process.kill()
            self._process.wait()


class Run:
    """What is known of a slice."""

    def __init__(self, settings: Settings, job: str, run_id: str) -> None:
        warehouse = open_warehouse(settings)
        placement, staged = read_placement(warehouse, job, run_id), Runs(warehouse, job).staged(run_id)
        assert placement is not None
        assert staged is not None
        self.placement: Placement = placement
        self.staged: Staged = staged
        self.copies: Copies | None = read_copies(warehouse, job, run_id)
        self.hosts: dict[str, PlacedHost] = {host.executors[0].partition("/")[0]: host for host in self.placement.hosts}

    @property
    def fetched_bytes(self) -> int:
        return sum(task.fetched_bytes for task in self.staged.tasks)

    @property
    def why(self) -> dict[str, str]:
        return {move.task_id: move.why for move in self.placement.moves}

    def check_as_placed(self) -> None:
        """Every task has run where it was to run."""
        owners = self.placement.owners()
        assert {task.task_id: task.process_id for task in self.staged.tasks} == {
            task_id: owner.process_id for task_id, owner in owners.items()
        }


@contextmanager
def driven(
    folder: Path, cluster: SparkCluster, job: tuple[str, str], slice_ms: int, slices: int = 0, **settings: object
) -> Iterator[Driver]:
    """A driver that goes on after so many slices; see `Driver`."""
    driver = Driver(folder, cluster, job, slice_ms, slices, **settings)
    try:
        yield driver
    finally:
        driver.close()
