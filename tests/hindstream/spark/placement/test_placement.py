"""Placement on a real cluster: hosts with disks of their own come, are lost and learn, while a job goes on."""

from __future__ import annotations

import logging
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from hindstream.runs import open_warehouse
from hindstream.spark.phases import plan
from hindstream.spark.phases.pipeline import run_slice
from hindstream.spark.phases.spark_stage import run_stage
from hindstream.spark.phases.task_work import stages_of
from hindstream.spark.placement.round import elsewhere, last_placement, restores
from hindstream.spark.tasks.works import carry_user_code
from statelib.assignment.model import AssignmentConfig
from statelib.commits import JobLayout, NothingToDo
from statelib.documents.document import FORMAT_VERSION
from statelib.errors.kinds import ConfigurationError
from statelib.job.job import load_job
from statelib.placement.documents import read_copies
from statelib.placement.holdings import CopyPosition, HostReport, encode_position, position_file
from statelib.placement.process import process_id
from statelib.placement.round import Former, Host, place
from statelib.storage import Storage
from tests.hindstream.spark.orders import (
    DAY_MS,
    JOB_FILE,
    archive_orders,
    check_published,
    make_settings,
    orders,
    published,
)
from tests.hindstream.spark.placement.placed_driver import driven
from tests.placement import test_round
from tests.spark_cluster import spark_cluster

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from statelib.placement.documents import CopyUpdate
    from statelib.settings.settings import Settings
    from tests.hindstream.spark.placement.placed_driver import Driver, Run


pytestmark = pytest.mark.spark

SLICES = 7
SLICE_MS = 4 * DAY_MS // SLICES

JOB = f"{JOB_FILE}:job", "orders"


def alone(folder: Path) -> list[dict[str, Any]]:
    """What one process publishes of the same orders, in one slice."""
    folder.mkdir()
    settings = make_settings(folder, audit_engine="pandas")
    archive_orders(settings, orders())
    run_slice(load_job(f"{JOB_FILE}:job"), settings, SLICES * SLICE_MS)
    return published(settings)


def delta_bytes(before: Run, now: Run, task_id: str) -> int:
    """Files of a task's state that are new."""
    known = {file.sha256 for task in before.staged.tasks if task.task_id == task_id for file in task.state.files}
    (state,) = (task.state for task in now.staged.tasks if task.task_id == task_id)
    return sum(file.size_bytes for file in state.files if file.sha256 not in known)


@pytest.mark.long
def test_hosts_come_are_lost_and_learn(tmp_path: Path, spark: object) -> None:
    with (
        spark_cluster(tmp_path, "127.0.0.2", "127.0.0.3") as cluster,
        driven(tmp_path, cluster, JOB, SLICE_MS) as driver,
    ):
        archive_orders(driver.settings, orders())
        driver.ask("slots 2")
        first = driver.run()
        assert set(first.hosts) == {"127.0.0.2", "127.0.0.3"}
        assert all(len(host.active) == 3 for host in first.hosts.values())
        assert first.copies is not None
        assert [copy.lag_bytes for copy in first.copies.copies] == [0] * 6

        run = driver.run()  # nothing moves, nothing is fetched
        run.check_as_placed()
        assert (run.fetched_bytes, run.placement.moves) == (0, ())

        ahead = driver.run(unkept=True)  # standbys lack this commit
        lost = ahead.hosts["127.0.0.3"]
        cluster.kill("127.0.0.3", with_disk=True)
        after = driver.run()
        assert set(after.hosts) == {"127.0.0.2"}
        fetched = {task.task_id: task.fetched_bytes for task in after.staged.tasks if task.fetched_bytes}
        assert fetched == {task_id: delta_bytes(run, ahead, task_id) for task_id in lost.active}
        assert after.why == {
            task_id: f"its host is gone; {size} bytes of its state are to be fetched"
            for task_id, size in fetched.items()
        }

        cluster.add("127.0.0.3")  # with an empty disk
        driver.ask("slots 2")
        runs = [driver.run() for _ in range(2)]
        assert runs[0].hosts["127.0.0.3"].process_id != lost.process_id
        assert runs[0].hosts["127.0.0.3"].active == ()
        assert [run.fetched_bytes for run in runs] == [0, 0]
        assert all(len(host.active) == 3 for host in runs[-1].hosts.values())
        for run in runs:
            run.check_as_placed()

        last = driver.run()
        assert (last.fetched_bytes, last.placement.moves) == (0, ())
        check_published(driver.settings, orders())
        together = published(driver.settings)
    assert together == alone(tmp_path / "alone")


@pytest.mark.long
def test_another_application_finds_tasks_where_they_were(tmp_path: Path) -> None:
    """Executors have other names; disks and process ids are the same. What one was to learn, another learns.

    The disk of one is meanwhile as if its standby were of another warehouse.
    """
    with spark_cluster(tmp_path, "127.0.0.2", "127.0.0.3") as cluster:
        with driven(tmp_path, cluster, JOB, SLICE_MS, standby_updates="background") as driver:
            archive_orders(driver.settings, orders())
            driver.ask("slots 2")
            first = driver.run()
            driver.ask("wait")
            assert {copy.task_id for copy in copies_of(driver, first)} == {*first.placement.owners()}
            cluster.add("127.0.0.4")
            driver.ask("slots 3")
            before = driver.run(unkept=True)
            learned = before.hosts["127.0.0.4"].learning
            assert learned
            standby = before.hosts["127.0.0.2"].standby[0]
            position = position_file(cluster.disk("127.0.0.2") / "state", "orders", standby)
            position.write_bytes(encode_position(CopyPosition(9, "00000009-1")))
        with driven(tmp_path, cluster, JOB, SLICE_MS, slices=2, num_standby_replicas=0) as driver:
            driver.ask("slots 3")
            driver.ask("maintain")
            copies = copies_of(driver, before)
            assert {*learned} <= {copy.task_id for copy in copies}
            assert [copy.task_id for copy in copies if copy.rebuilt] == [standby]
            assert f"task {standby}: its copy was deleted and is made again: commit 9 of run 00000009-1" in driver.log()
            after = driver.run()
            assert after.placement.application != before.placement.application
            assert after.fetched_bytes == 0
            assert set(learned) <= set(after.hosts["127.0.0.4"].active)
            assert {after.why[task] for task in learned} == {"learned by its new owner; its state is there"}
            assert all(why.endswith("its state is there") for why in after.why.values())
            assert after.placement.is_final
            for name, host in after.hosts.items():  # standbys are not wanted any more
                cache = cluster.disk(name) / "state" / "cache" / "orders"
                assert {folder.name for folder in cache.iterdir() if folder.is_dir()} == set(host.active)


def copies_of(driver: Driver, run: Run) -> tuple[CopyUpdate, ...]:
    """The copies after a run, all of which are up to date."""
    copies = read_copies(open_warehouse(driver.settings), "orders", run.staged.run_id)
    assert copies is not None
    assert all(copy.lag_bytes == 0 and copy.error is None for copy in copies.copies)
    return copies.copies


def test_a_damaged_round_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing rests on it: the run goes on, and tasks may move."""
    warehouse = Storage(str(tmp_path))
    path = JobLayout("j").placement("00000001-1")
    made = test_round.placed(test_round.host(test_round.A, *test_round.TASKS))
    warehouse.put(path, made.encode())
    assert last_placement(warehouse, "j", "00000001-1") == made
    warehouse.put(path, made.encode().replace(b'"is_final": true', b'"is_final": false'))
    with caplog.at_level(logging.WARNING):
        assert last_placement(warehouse, "j", "00000001-1") is None
    assert "tasks may move: the placement is damaged: its checksum is not that of its content" in caplog.text
    warehouse.put(path, made.model_copy(update={"format_version": FORMAT_VERSION + 1}).encode())
    with pytest.raises(ConfigurationError, match="install the newer Hindstream"):
        last_placement(warehouse, "j", "00000001-1")


def test_while_a_task_fetches_state_no_copies_are_made() -> None:
    a, b = test_round.A, test_round.B
    made = test_round.placed(
        test_round.host(a, "0_0", lacking=("0_1",)), test_round.host(b, "0_2"), ran={"0_0": a, "0_2": b}
    )
    lags = {task_id: owner.lags.get(task_id) for task_id, owner in made.owners().items()}
    assert lags["0_0"] == lags["0_2"] == 0
    assert lags["0_1"] == 10
    assert lags["0_3"] is None  # nobody has any of it
    assert not restores(made, ["0_0", "0_2"])
    assert restores(made, ["0_0", "0_1"])
    assert restores(made, ["0_3"])
    assert not restores(made, [])
    assert not restores(None, ["0_3"])


def test_a_task_that_runs_elsewhere_is_right_and_counted(settings: Settings, spark: SparkSession) -> None:
    """Its host was lost since it was asked: its executor is not there any more."""
    job = load_job(JOB[0])
    planned = plan.run(job, settings)
    assert not isinstance(planned, NothingToDo)
    gone = Host(HostReport(uuid.UUID(int=9), None), ("nowhere/7",), 2)
    limits = AssignmentConfig()
    placement = place(planned, {0: ["s"]}, [gone], Former(), limits, "sticky", application="app", now_ms=7)
    stages = stages_of(job, planned, open_warehouse(settings), settings)
    works = stages.works(stages.sub_topologies[0], [])
    carry_user_code()
    placed = run_stage(spark.sparkContext, works, name="elsewhere", placement=placement)
    kept = open_warehouse(settings).list(f"jobs/{job.name}/staging")
    open_warehouse(settings).delete([entry.path for entry in kept if "/_outcomes/" in entry.path])  # else these count
    anywhere = run_stage(spark.sparkContext, works, name="anywhere")
    assert elsewhere(placement, placed) == [work.planned.task_id for work in works]
    assert elsewhere(None, placed) == []
    assert {task.process_id for task in placed} == {process_id(settings.local_state_dir, uuid.uuid4)}
    assert {task.process_id for task in anywhere} == {None}
    assert [task.position for task in placed] == [task.position for task in anywhere]
    assert [[file.sha256 for file in task.repartitions] for task in placed] == [
        [file.sha256 for file in task.repartitions] for task in anywhere
    ]
