"""From reports to an assignment: who has run what, who lacks how much, and the reasons that are told."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from statelib.assignment.assignment_info import TopicPartition, decode_assignment
from statelib.assignment.model import AssignmentConfig
from statelib.assignment.subscription_info import SubscriptionInfo, decode_subscription
from statelib.documents.manifests import Commit, CommittedTask, StateFile, StateManifest, TaskPosition
from statelib.documents.plans import Plan, PlannedTask
from statelib.placement.documents import PlacedHost, Placement
from statelib.placement.holdings import HostReport
from statelib.placement.round import Former, Host, place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.assignment.model import AssignorName

A, B, C = (UUID(int=n) for n in (1, 2, 3))
TASKS = ("0_0", "0_1", "0_2", "0_3")
PLAN = Plan(
    job="j", run_id="00000002-1", commit=2, fingerprint="f", until_ms=None, sources=(), sink_partitions={},
    created_at_ms=0,
    tasks=tuple(PlannedTask(task_id=f"0_{n}", sub_topology=0, partition=n) for n in range(4)),
)  # fmt: skip
STORES = {0: ("counts", "totals")}


def committed() -> Commit:
    """Each task has two files, of 100 and of 10 bytes."""
    tasks = {}
    for task_id in TASKS:
        files = (
            StateFile(name="1.sst", sha256=f"{task_id}-large", size_bytes=100),
            StateFile(name="2.sst", sha256=f"{task_id}-small", size_bytes=10),
        )
        position = TaskPosition(task_id=task_id, commit=1, fingerprint="f")
        tasks[task_id] = CommittedTask(state=StateManifest(files=files), position=position)
    return Commit(
        job="j", commit=1, run_id="00000001-1", fingerprint="f", until_ms=None, sources=(), tasks=tasks, sinks=(),
        created_at_ms=0,
    )  # fmt: skip


def host(process_id: UUID, *whole: str, lacking: tuple[str, ...] = (), rack: str | None = None) -> Host:
    """One that has the whole state of some tasks, and of others all but the small file."""
    files = {task: {f"{task}-large": 100, f"{task}-small": 10} for task in whole}
    files |= {task: {f"{task}-large": 100} for task in lacking}
    return Host(HostReport(process_id, rack, files), (f"host{process_id.int}/0",), 2)


def placed(
    *hosts: Host,
    ran: Mapping[str, UUID] | None = None,
    before: Placement | None = None,
    assignor: AssignorName = "sticky",
    is_first: bool = False,
    **config: int,
) -> Placement:
    former = Former() if is_first else Former(committed(), ran or {}, before)
    limits = AssignmentConfig(**{"acceptable_recovery_lag": 0} | config)
    return place(PLAN, STORES, hosts, former, limits, assignor, application="app", now_ms=7)


def by_id(placement: Placement) -> dict[UUID, PlacedHost]:
    return {host.process_id: host for host in placement.hosts}


def test_golden_bytes() -> None:
    """What an older Hindstream has written stays readable: these bytes never change for a version."""
    made = placed(host(A, *TASKS), ran=dict.fromkeys(TASKS, A))
    written = made.encode()
    assert b"".join(written.split()).startswith(
        b'{"acceptable_recovery_lag":0,"application":"app","assignor":"sticky","checksum":"'
    )
    assert b'"format_version": 9' in written
    (its,) = made.hosts
    tasks = b"".join(bytes(7) + bytes([n]) for n in range(4))
    assert base64.b64decode(its.subscription) == (
        b"\0\0\0\x04\0\0\0\x04" + A.bytes + b"\0\0\0\x04" + tasks + b"\0\0\0\0\0\0\0\0"
    )
    assert base64.b64decode(its.assignment) == (b"\0\0\0\x04\0\0\0\x04\0\0\0\x04" + tasks + b"\0\0\0\0\0\0\0\0\0\0\0\0")
    assert Placement.decode(written, file="p") == made


def test_the_first_run_is_spread() -> None:
    made = placed(host(A), host(B), is_first=True)
    assert made.commit == 0
    assert sorted(len(its.active) for its in made.hosts) == [2, 2]
    assert {move.why for move in made.moves} == {"nobody is known to have run it"}


def test_tasks_stay_where_they_ran() -> None:
    ran = {"0_0": A, "0_1": A, "0_2": B, "0_3": B}
    made = placed(host(A, "0_0", "0_1"), host(B, "0_2", "0_3"), ran=ran)
    assert {task: its.process_id for task, its in made.owners().items()} == ran
    assert made.moves == ()
    assert made.is_final


def test_who_still_restores_counts_as_a_standby() -> None:
    """It was to run the task last, or did, and has not all of its state: the article's second question."""
    made = placed(host(A, "0_0", lacking=("0_1",)), host(B), ran={"0_0": A, "0_1": A})
    report = decode_subscription(base64.b64decode(by_id(made)[A].subscription))
    assert isinstance(report, SubscriptionInfo)
    assert list(map(str, report.previous_tasks)) == ["0_0"]
    assert list(map(str, report.standby_tasks)) == ["0_1"]
    assert by_id(made)[A].lags == {"0_0": 0, "0_1": 10}
    assert by_id(made)[B].lags == {}


def test_a_host_with_files_of_an_earlier_application_is_a_standby() -> None:
    """Nobody knows who ran the tasks: what lies on the disks decides."""
    made = placed(host(A, "0_0", "0_1"), host(B, "0_2", "0_3"))
    assert by_id(made)[A].active == ("0_0", "0_1")
    assert {move.why for move in made.moves} == {"nobody is known to have run it; its state is there"}


def test_a_lost_host_is_replaced_by_its_standby() -> None:
    ran = {"0_0": C, "0_1": C, "0_2": B, "0_3": B}
    made = placed(host(A, "0_0", lacking=("0_1",)), host(B, "0_2", "0_3"), ran=ran)
    assert by_id(made)[A].active == ("0_0", "0_1")
    assert [(move.task_id, move.before, move.now, move.why) for move in made.moves] == [
        ("0_0", C, A, "its host is gone; its state is there"),
        ("0_1", C, A, "its host is gone; 10 bytes of its state are to be fetched"),
    ]


def test_a_new_host_learns_and_then_takes_over() -> None:
    ran = dict.fromkeys(TASKS, A)
    first = placed(host(A, *TASKS), host(B), ran=ran)
    assert not first.is_final
    assert by_id(first)[A].active == TASKS
    learning = by_id(first)[B].learning
    assert len(learning) == 2
    assert by_id(first)[B].standby == ()
    copies = decode_assignment(base64.b64decode(by_id(first)[B].assignment)).standby_tasks
    assert set(copies.values()) == {
        tuple(TopicPartition(f"j-{store}-changelog", int(task[2:])) for store in STORES[0]) for task in learning
    }

    half = placed(host(A, *TASKS), host(B, lacking=learning), ran=ran, before=first)
    assert by_id(half)[A].active == TASKS
    assert by_id(half)[B].learning == learning

    second = placed(host(A, *TASKS), host(B, *learning), ran=ran, before=half)
    assert by_id(second)[B].active == learning
    assert {move.why for move in second.moves} == {"learned by its new owner; its state is there"}
    assert second.is_final


def test_a_host_that_has_lost_its_disk_is_another() -> None:
    made = placed(host(C), host(B, *TASKS), ran=dict.fromkeys(TASKS, A))
    assert by_id(made)[B].active == TASKS
    assert {move.why for move in made.moves} == {"its host is gone; its state is there"}


def test_state_that_is_gone_is_told() -> None:
    made = placed(host(A), host(B, *TASKS), ran=dict.fromkeys(TASKS, A))
    assert {move.why for move in made.moves} == {"its host has lost the state; its state is there"}


def test_standbys_are_not_beside_their_task_and_in_another_rack() -> None:
    made = placed(host(A, rack="r1"), host(B, rack="r1"), host(C, rack="r2"), is_first=True, num_standby_replicas=1)
    rack = {its.process_id: its.rack for its in made.hosts}
    for task_id, owner in made.owners().items():
        (holder,) = (its for its in made.hosts if task_id in its.standby)
        assert holder.process_id != owner.process_id
        assert "r2" in {rack[holder.process_id], rack[owner.process_id]}


@pytest.mark.parametrize("assignor", ["sticky", "high-availability"])
def test_no_task_goes_where_its_state_is_not(assignor: AssignorName) -> None:
    made = placed(host(A, *TASKS), host(B), ran=dict.fromkeys(TASKS, A), assignor=assignor)
    assert made.assignor == assignor
    assert by_id(made)[A].active == TASKS
    assert len(by_id(made)[B].learning) == 2


def test_tasks_without_state_stay_too() -> None:
    former = Former(committed(), {"0_0": A, "0_1": A, "0_2": B, "0_3": B}, None)
    made = place(PLAN, {}, [host(B), host(A)], former, AssignmentConfig(), "sticky", application="app", now_ms=7)
    assert made.moves == ()
    assert all(not its.lags for its in made.hosts)
