"""Cases of KIP-441; the golden trace ``sticky-assignor`` has the whole of it."""

from __future__ import annotations

from uuid import UUID

from statelib.assignment.high_availability import assign_highly_available
from statelib.assignment.model import NOTHING_HELD, AssignmentConfig, HostState
from tests.assignment.hosts import host, seen, tasks

FOUR = tasks("0_0 0_1 1_0 1_1")
CONFIG = AssignmentConfig(max_warmup_replicas=2, acceptable_recovery_lag=10)


def test_at_the_first_round_nobody_has_anything_to_wait_for():
    assignment = assign_highly_available([host(1), host(2)], FOUR, FOUR, CONFIG)
    assert (seen(assignment), assignment.is_final) == ({1: "0_0 1_0 |  | ", 2: "0_1 1_1 |  | "}, True)


def test_a_host_that_joins_learns_first():
    hosts = [host(1, "0_0 0_1 1_0 1_1"), host(2)]
    assignment = assign_highly_available(hosts, FOUR, FOUR, CONFIG)
    assert (seen(assignment), assignment.is_final) == ({1: "0_0 0_1 1_0 1_1 |  | ", 2: " |  | 0_1 1_1"}, False)
    hosts = [host(1, "0_0 0_1 1_0 1_1"), host(2, "", {"0_1": 10, "1_1": 11})]
    assignment = assign_highly_available(hosts, FOUR, FOUR, CONFIG)
    assert (seen(assignment), assignment.is_final) == ({1: "0_0 1_0 1_1 |  | ", 2: "0_1 |  | 1_1"}, False)


def test_who_is_caught_up_enough_does_not_learn():
    anyone = AssignmentConfig(acceptable_recovery_lag=NOTHING_HELD)
    assignment = assign_highly_available([host(1, "0_0 0_1 1_0 1_1"), host(2)], FOUR, FOUR, anyone)
    assert (seen(assignment), assignment.is_final) == ({1: "0_0 1_0 |  | ", 2: "0_1 1_1 |  | "}, True)


def test_a_lost_host_is_replaced_by_its_standby():
    one = AssignmentConfig(num_standby_replicas=1, acceptable_recovery_lag=10)
    hosts = [host(2, "0_1", {"0_0": 10}), host(3, "", {"0_1": 10})]
    assignment = assign_highly_available(hosts, tasks("0_0 0_1"), tasks("0_0 0_1"), one)
    owners = {str(task): process_id.int for task, process_id in assignment.owners().items()}
    assert owners == {"0_0": 2, "0_1": 3}


def test_where_none_is_caught_up_the_task_runs_where_least_is_missing():
    hosts = [host(1), host(2, "", {"0_0": 500}), host(3, "", {"0_0": 400})]
    assignment = assign_highly_available(hosts, tasks("0_0"), tasks("0_0"), CONFIG)
    assert seen(assignment) == {1: " |  | 0_0", 2: " |  | ", 3: "0_0 |  | "}


def test_tasks_without_state_fill_up():
    hosts = [host(1, "0_0"), host(2)]
    assignment = assign_highly_available(hosts, FOUR[:3], FOUR[:1], CONFIG)
    assert seen(assignment) == {1: "0_0 1_0 |  | ", 2: "0_1 |  | "}


def test_hosts_are_in_java_s_order_which_takes_the_first_bit_for_a_sign():
    negative = UUID(int=1 << 127)
    assignment = assign_highly_available([host(1), HostState(negative, 1)], FOUR[:1], FOUR[:1], CONFIG)
    assert assignment.owners() == {FOUR[0]: negative}
    assert list(assignment.hosts) == [negative, UUID(int=1)]


def test_standbys_go_to_other_racks_first():
    one = AssignmentConfig(num_standby_replicas=1)
    hosts = [host(1, rack="a"), host(2, rack="a"), host(3, rack="b")]
    assert seen(assign_highly_available(hosts, tasks("0_0"), tasks("0_0"), one)) == {
        1: "0_0 |  | ",
        2: " |  | ",
        3: " | 0_0 | ",
    }
