"""``hindstream placement``: who holds what, what it lacks, what moves and why."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from hindstream.cli.look.placement import print_placement
from hindstream.report.documents import load_run
from hindstream.report.placement import host_rows, task_rows, waiting
from statelib.assignment.model import AssignmentConfig
from statelib.commits import JobLayout, Runs, commit, publish, record_audit, stage
from statelib.errors.kinds import ConfigurationError
from statelib.placement.documents import Copies, CopyUpdate, read_placement
from statelib.placement.round import Former, Host, place
from statelib.settings.settings import load_settings
from tests.commits import toy
from tests.placement.hosts import JOB, Warehouse, report

if TYPE_CHECKING:
    from pathlib import Path

    from statelib.settings.settings import Settings

A, B, GONE = (UUID(int=n << 96) for n in (0xA, 0xB, 0xC))


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """A second run whose tasks ran on a host that is lost; A has the state, and one task runs on B all the same."""
    made = Warehouse.made(tmp_path)
    first = made.run(1, tmp_path / "a")
    hosts = [
        Host(report(tmp_path / "a", A.int, rack="r1"), ("10.0.0.1/0", "10.0.0.1/3"), 4),
        Host(report(tmp_path / "b", B.int, rack="r2"), ("10.0.0.2/1",), 1),
    ]
    planned = made.planned(2)
    former = Former(first, dict.fromkeys(("0_0", "0_1"), GONE), None)
    limits = AssignmentConfig(num_standby_replicas=1, acceptable_recovery_lag=0)
    placement = place(planned, {0: ["counts"]}, hosts, former, limits, "sticky", application="app", now_ms=3)
    made.storage.put(JobLayout(JOB).placement(planned.run_id), placement.encode())
    staged = toy.replay(made.storage, planned, tmp_path / "a", "day2")
    ran_on = {"0_0": A, "0_1": B}
    tasks = tuple(
        task.model_copy(
            update={
                "process_id": ran_on[task.task_id],
                "fetched_bytes": 2048 if task.task_id == "0_1" else 0,
                "began_at_ms": 1_500 + 1_000 * (task.task_id == "0_1"),
                "seconds": {"restore": 0.25, "process": 9.0},
            }
        )
        for task in staged.tasks
    )
    stage(made.storage, planned, staged.model_copy(update={"tasks": tasks, "began_at_ms": 1_000}))
    return made


def finish(warehouse: Warehouse) -> str:
    """Commits the second run, and says what came of its copies."""
    planned = warehouse.planned(2)
    record_audit(warehouse.storage, planned, toy.passed(planned))
    run_id = commit(warehouse.storage, planned, now_ms=4).run_id
    publish(warehouse.storage, JOB)
    copies = (
        CopyUpdate(task_id="0_0", process_id=B, is_learning=False, fetched_bytes=4096, lag_bytes=0, rebuilt="of old"),
        CopyUpdate(task_id="0_1", process_id=B, is_learning=False, lag_bytes=7, error="the disk is full"),
    )
    done = Copies(job=JOB, run_id=run_id, commit=2, copies=copies, seconds=1.0)
    warehouse.storage.put(JobLayout(JOB).copies(run_id), done.encode())
    assert Copies.decode(done.encode(), file="c") == done
    return run_id


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings({"warehouse": str(tmp_path / "warehouse")}, environ={})


def test_rows(warehouse: Warehouse) -> None:
    run = load_run(warehouse.storage, JOB, finish(warehouse))
    assert [(row.name, row.rack, row.consumers, row.active, row.standby) for row in host_rows(run)] == [
        ("0000000a (10.0.0.1)", "r1", 4, ("0_0", "0_1"), ()),
        ("0000000b (10.0.0.2)", "r2", 1, (), ("0_0", "0_1")),
    ]
    first, second = task_rows(run)
    assert (first.owner, first.lag_bytes, first.fetched_bytes, first.is_elsewhere) == (
        "0000000a (10.0.0.1)",
        0,
        0,
        False,
    )
    assert (first.before, first.why) == ("0000000c", "its host is gone; its state is there")
    assert (second.ran_on, second.fetched_bytes, second.is_elsewhere) == ("0000000b (10.0.0.2)", 2048, True)
    assert [(copy.lag_bytes, copy.copied_bytes, copy.remark) for copy in (*first.copies, *second.copies)] == [
        (0, 4096, "made again: of old"),
        (7, 0, "the disk is full"),
    ]
    found = waiting(run)
    assert found is not None
    assert (found.first_seconds, found.last_seconds) == (0.75, 1.75)
    assert (found.fetched_bytes, found.copied_bytes) == (2048, 4096)


def test_a_run_under_way_is_shown(warehouse: Warehouse, settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    """Copies come after its commit; until then what they lacked is what was reported."""
    print_placement(JOB, None, settings, "table")
    shown = capsys.readouterr().out
    assert "Run 00000002-1, sticky over the state of commit 1: not the target yet, which waits for copies." in shown
    assert "0000000b (10.0.0.2): lag all" in shown
    assert "0_0 moves from 0000000c to 0000000a (10.0.0.1): its host is gone; its state is there" in shown
    assert "0_1 was run by 0000000b (10.0.0.2) instead: Spark has waited too long for 0000000a (10.0.0.1)" in shown
    assert "Fetched 2.0 KiB of state on the critical path, copies are not done." in shown
    assert "The first task processed 0.75 s after the run's start, the last 1.75 s." in shown


def test_what_came_of_copies_is_shown(
    warehouse: Warehouse, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    finish(warehouse)
    print_placement(JOB, "00000002-1", settings, "table")
    shown = capsys.readouterr().out
    assert "0_0: its copy on 0000000b (10.0.0.2): made again: of old" in shown
    assert "0_1: its copy on 0000000b (10.0.0.2): the disk is full" in shown
    assert "2.0 KiB of state on the critical path, 4.0 KiB off it." in shown


def test_as_json(warehouse: Warehouse, settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    print_placement(JOB, None, settings, "json")
    shown = json.loads(capsys.readouterr().out)
    assert shown["run"] == "00000002-1"
    assert [task["owner"] for task in shown["tasks"]] == ["0000000a (10.0.0.1)"] * 2
    assert shown["hosts"][0]["executors"] == "10.0.0.1/0, 10.0.0.1/3"


def test_a_local_run_has_no_round(warehouse: Warehouse, settings: Settings) -> None:
    assert read_placement(warehouse.storage, JOB, "00000001-1") is None
    assert Runs(warehouse.storage, JOB).staged("00000001-1") is not None
    with pytest.raises(ConfigurationError, match="had no round of placement: Spark was local"):
        print_placement(JOB, "00000001-1", settings, "table")


def test_without_a_run_plan_is_named(tmp_path: Path, settings: Settings) -> None:
    with pytest.raises(ConfigurationError, match="there is no such run"):
        print_placement("nobody", None, settings, "table")
