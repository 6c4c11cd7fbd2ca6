"""What the wiki page on incremental rebalancing says of the sticky assignor, rule by rule."""

from __future__ import annotations

from statelib.assignment.model import AssignmentConfig
from statelib.assignment.sticky import assign_sticky, sticky_target
from tests.assignment.hosts import host, seen, tasks

FOUR = tasks("0_0 0_1 1_0 1_1")


def target(hosts, of=FOUR, standbys=0):
    return seen(sticky_target(hosts, of, of, AssignmentConfig(standbys)).done(is_final=True))


def test_tasks_stay():
    hosts = [host(1, "0_1 1_0"), host(2, "0_0 1_1")]
    assert target(hosts) == {1: "0_1 1_0 |  | ", 2: "0_0 1_1 |  | "}


def test_a_host_has_room_for_its_share_by_consumers():
    hosts = [host(1, "0_0 0_1 1_0 1_1", consumers=1), host(2, consumers=3)]
    assert target(hosts) == {1: "0_0 |  | ", 2: "0_1 1_0 1_1 |  | "}


def test_what_is_kept_has_some_of_each_sub_topology():
    hosts = [host(1, "0_0 0_1 1_0 1_1"), host(2)]
    assert target(hosts) == {1: "0_0 1_0 |  | ", 2: "0_1 1_1 |  | "}


def test_a_copy_comes_second_and_the_one_that_lacks_least_first():
    hosts = [host(1, "0_0"), host(2, "1_0", {"0_1": 7}), host(3, "1_1", {"0_1": 3}), host(4)]
    assert target(hosts) == {1: "0_0 |  | ", 2: "1_0 |  | ", 3: "1_1 |  | ", 4: "0_1 |  | "}
    hosts = [host(1, "0_0"), host(2, "", {"0_1": 7}), host(3, "", {"0_1": 3}), host(4, "1_0")]
    assert target(hosts) == {1: "0_0 |  | ", 2: "1_1 |  | ", 3: "0_1 |  | ", 4: "1_0 |  | "}


def test_the_rest_goes_to_the_least_loaded_and_among_these_to_who_ran_it():
    five = tasks("0_0 0_1 0_2 1_0 1_1")
    hosts = [host(1, "0_0 0_1"), host(2, "1_0 1_1 0_2")]
    assert target(hosts, five) == {1: "0_0 0_1 |  | ", 2: "0_2 1_0 1_1 |  | "}
    three = tasks("0_0 0_1 0_2")
    hosts = [host(1, "0_0"), host(2, "0_1", {"0_2": 5})]
    assert target(hosts, three) == {1: "0_0 |  | ", 2: "0_1 0_2 |  | "}


def test_standbys_stay_and_are_on_other_hosts_and_racks():
    two = tasks("0_0 0_1")
    hosts = [host(1, "0_0", rack="a"), host(2, "0_1", {"0_0": 0}, rack="a"), host(3, "", {"0_0": 9}, rack="b")]
    assert target(hosts, two, standbys=1) == {1: "0_0 |  | ", 2: "0_1 |  | ", 3: " | 0_0 0_1 | "}
    hosts = [host(1, "0_0"), host(2, "0_1", {"0_0": 0}), host(3, "", {"0_1": 9})]
    assert target(hosts, two, standbys=1) == {1: "0_0 |  | ", 2: "0_1 | 0_0 | ", 3: " | 0_1 | "}


def test_standbys_leave_a_host_that_has_too_many():
    hosts = [host(1, "0_0 0_1"), host(2, "1_0 1_1", {"0_0": 0, "0_1": 0}), host(3), host(4)]
    four = target(hosts, standbys=1)
    assert four[2] == "1_0 | 0_0 | ", "eight for four hosts"
    assert sum(len(its.split("|")[1].split()) for its in four.values()) == 4


def test_there_are_no_more_standbys_than_hosts():
    assert target([host(1, "0_0"), host(2)], tasks("0_0"), standbys=5) == {1: "0_0 |  | ", 2: " | 0_0 | "}


def test_a_task_waits_with_its_owner_though_another_copy_is_less_loaded():
    config = AssignmentConfig(max_warmup_replicas=1, acceptable_recovery_lag=10)
    hosts = [host(1, "0_0 0_1"), host(2, "1_0", {"0_1": 5}, consumers=2), host(3, "", {"0_1": 90}, learns="0_1")]
    assignment = assign_sticky(hosts, tasks("0_0 0_1 1_0"), tasks("0_0 0_1 1_0"), config)
    assert seen(assignment) == {1: "0_0 0_1 |  | ", 2: "1_0 |  | ", 3: " |  | 0_1"}


def test_a_task_moves_once_its_learner_has_caught_up():
    config = AssignmentConfig(max_warmup_replicas=1, acceptable_recovery_lag=10)
    everything = host(1, "0_0 0_1 1_0 1_1")
    first = assign_sticky([everything, host(2)], FOUR, FOUR, config)
    assert (seen(first), first.is_final) == ({1: "0_0 0_1 1_0 1_1 |  | ", 2: " |  | 0_1"}, False)
    half = assign_sticky([everything, host(2, "", {"0_1": 50}, learns="0_1")], FOUR, FOUR, config)
    assert half == first
    taken = assign_sticky([everything, host(2, "", {"0_1": 10}, learns="0_1")], FOUR, FOUR, config)
    assert (seen(taken), taken.is_final) == ({1: "0_0 1_0 1_1 |  | ", 2: "0_1 |  | 1_1"}, False)
    last = assign_sticky([host(1, "0_0 1_0 1_1"), host(2, "0_1", {"1_1": 10}, learns="1_1")], FOUR, FOUR, config)
    assert (seen(last), last.is_final) == ({1: "0_0 1_0 |  | ", 2: "0_1 1_1 |  | "}, True)
