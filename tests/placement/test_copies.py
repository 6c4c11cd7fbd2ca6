"""Copies on other hosts: from nothing, from an earlier commit, cut short, killed, and of a commit that has vanished."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from statelib.errors.fault_points import observed
from statelib.errors.kinds import CorruptedDataError
from statelib.placement.holdings import CopyPosition, cache_folder, encode_position, position_file, read_position
from tests.commits import toy
from tests.placement.hosts import JOB, Warehouse, report

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.placement.copies import CopyOrder


STEPS = ["checkpoint.file-copied", "copies.before-position", "copies.position", "copies.removed"]


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    made = Warehouse.made(tmp_path)
    made.run(1, tmp_path / "owner")
    return made


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    return tmp_path / "standby"


def names(disk: Path) -> set[str]:
    return {file.name for file in cache_folder(disk, JOB, "0_0").iterdir()}


def wanted(order: CopyOrder) -> set[str]:
    assert order.state is not None
    return {file.sha256 for file in order.state.files}


def test_a_copy_has_all_of_the_commit(warehouse: Warehouse, disk: Path) -> None:
    order = warehouse.order()
    assert order.state is not None
    result = warehouse.fetch(disk, order)
    assert (result.fetched_files, result.fetched_bytes, result.lag_bytes) == (
        len(order.state.files),
        order.state.size_bytes,
        0,
    )
    assert read_position(disk, JOB, "0_0") == order.position
    assert report(disk).lacks("0_0", order.state) == 0
    assert warehouse.restored_bytes(disk, warehouse.log.read(1)) == 0


def test_it_goes_on_from_what_it_has(warehouse: Warehouse, disk: Path, tmp_path: Path) -> None:
    first = warehouse.order()
    warehouse.fetch(disk, first)
    warehouse.run(2, tmp_path / "owner")
    second = warehouse.order()
    assert second.state is not None
    missing = [file.size_bytes for file in second.state.files if file.sha256 not in wanted(first)]
    result = warehouse.fetch(disk, second)
    assert result.fetched_bytes == sum(missing) < second.state.size_bytes
    assert names(disk) == wanted(second)
    assert read_position(disk, JOB, "0_0") == CopyPosition(2, second.position.run_id)
    again = warehouse.fetch(disk, second)
    assert again.fetched_bytes == again.lag_bytes == 0


def test_it_takes_nothing_that_is_not_committed(warehouse: Warehouse, disk: Path, tmp_path: Path) -> None:
    """A run has stored its state and is not committed yet: the copy stays with the commit before."""
    warehouse.fetch(disk, warehouse.order())
    planned = warehouse.planned(2)
    staged = toy.replay(warehouse.storage, planned, tmp_path / "owner", "day2")
    result = warehouse.fetch(disk, warehouse.order())
    assert result.fetched_bytes == 0
    uncommitted = {file.sha256 for file in staged.tasks[0].state.files} - wanted(warehouse.order())
    assert uncommitted
    assert not names(disk) & uncommitted


def test_a_copy_that_is_cut_short_goes_on_later(warehouse: Warehouse, disk: Path) -> None:
    order = warehouse.order()
    assert order.state is not None
    lag = order.state.size_bytes
    for _ in range(len(order.state.files) - 1):
        result = warehouse.fetch(disk, order, files=1)
        assert result.fetched_files == 1
        assert result.lag_bytes == lag - result.fetched_bytes
        assert read_position(disk, JOB, "0_0") is None
        lag = result.lag_bytes
    assert warehouse.fetch(disk, order, files=1).lag_bytes == 0
    assert read_position(disk, JOB, "0_0") == order.position


@pytest.mark.parametrize("position", [CopyPosition(7, "00000007-1"), CopyPosition(1, "00000001-9")])
def test_a_copy_whose_base_has_vanished_is_made_anew(warehouse: Warehouse, disk: Path, position: CopyPosition) -> None:
    """Another warehouse was put in the place of the one that the copy was of."""
    order = warehouse.order()
    warehouse.fetch(disk, replace(order, position=position))
    stray = cache_folder(disk, JOB, "0_0") / ("0" * 64)
    stray.write_bytes(b"of the other one")
    result = warehouse.fetch(disk, order)
    assert result.rebuilt == f"commit {position.commit} of run {position.run_id} is none of the job's"
    assert order.state is not None
    assert result.fetched_bytes == order.state.size_bytes
    assert names(disk) == wanted(order)
    assert warehouse.fetch(disk, order).rebuilt is None


def test_a_copy_that_nobody_wants_is_removed(warehouse: Warehouse, disk: Path) -> None:
    order = warehouse.order()
    warehouse.fetch(disk, order)
    for _ in range(2):
        warehouse.fetch(disk, replace(order, state=None))
        assert not cache_folder(disk, JOB, "0_0").exists()
        assert not position_file(disk, JOB, "0_0").exists()
    assert report(disk).files == {}


def test_files_of_an_attempt_at_work_stay(warehouse: Warehouse, disk: Path, tmp_path: Path) -> None:
    """Spark runs the task on the host of its standby: what the attempt has saved is in the same cache."""
    warehouse.fetch(disk, warehouse.order())
    warehouse.run(2, tmp_path / "owner")
    saved = cache_folder(disk, JOB, "0_0") / ("f" * 64)
    saved.write_bytes(b"of the next commit")
    warehouse.fetch(disk, warehouse.order())
    assert saved.exists()


def test_a_damaged_file_on_the_disk_is_fetched_anew(warehouse: Warehouse, disk: Path) -> None:
    order = warehouse.order()
    assert order.state is not None
    warehouse.fetch(disk, order)
    largest = max(order.state.files, key=lambda file: file.size_bytes)
    (cache_folder(disk, JOB, "0_0") / largest.sha256).write_bytes(b"cut off")
    assert report(disk).lacks("0_0", order.state) == largest.size_bytes
    assert warehouse.fetch(disk, order).fetched_bytes == largest.size_bytes


def test_a_file_that_is_missing_in_the_warehouse_is_named(warehouse: Warehouse, disk: Path, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "warehouse" / "jobs" / JOB / "state" / "0_0")
    with pytest.raises(CorruptedDataError, match="is missing") as error:
        warehouse.fetch(disk, warehouse.order())
    assert "state/0_0/" in str(error.value)
    assert read_position(disk, JOB, "0_0") is None


def _killed(root: Path, disk: Path, nth: int) -> None:
    passed = 0

    def observer(name: str) -> None:
        nonlocal passed
        with (disk / "steps").open("a") as steps:
            steps.write(f"{name}\n")
        passed += 1
        if passed == nth:
            os.kill(os.getpid(), signal.SIGKILL)

    warehouse = Warehouse.opened(root)
    with observed(observer):
        warehouse.fetch(disk, warehouse.order())


@pytest.mark.parametrize("base", ["the commit before", "of another warehouse"])
def test_killed_at_any_step_it_leaves_a_copy_that_goes_on(
    warehouse: Warehouse, disk: Path, tmp_path: Path, base: str
) -> None:
    context = multiprocessing.get_context("forkserver")
    warehouse.fetch(disk, warehouse.order())
    if base == "of another warehouse":
        position_file(disk, JOB, "0_0").write_bytes(encode_position(CopyPosition(7, "00000007-1")))
    warehouse.run(2, tmp_path / "owner")
    order, kills, passed = warehouse.order(), 0, set()
    while True:
        host = tmp_path / f"killed-{kills}"
        shutil.copytree(disk, host)
        process = context.Process(target=_killed, args=(tmp_path, host, kills + 1))
        process.start()
        process.join()
        passed |= {*(host / "steps").read_text().split()}
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
        kills += 1
        if read_position(host, JOB, "0_0") == order.position:
            assert warehouse.restored_bytes(host, warehouse.log.read(2)) == 0
        assert warehouse.fetch(host, order).lag_bytes == 0
        assert read_position(host, JOB, "0_0") == order.position
        assert warehouse.restored_bytes(host, warehouse.log.read(2)) == 0
        assert list((host / "copies" / JOB).iterdir()) == []
    assert kills >= len(passed)
    assert passed == {*STEPS} - ({"copies.removed"} if base == "the commit before" else set())
