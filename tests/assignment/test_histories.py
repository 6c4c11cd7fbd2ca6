"""Both assignors through random histories of clusters."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from statelib.assignment.high_availability import assign_highly_available
from statelib.assignment.model import AssignmentConfig
from statelib.assignment.sticky import assign_sticky
from tests.assignment.cluster import NEW_RECORDS, Cluster, Event
from tests.effort import examples

if TYPE_CHECKING:
    from statelib.assignment.model import Assignment, Assignor

KINDS = ("join", "join", "lose", "restart", "wipe", "grow", "nothing")
CONFIGS = st.builds(AssignmentConfig, st.integers(0, 2), st.integers(1, 4), st.integers(NEW_RECORDS, 3 * NEW_RECORDS))
RACKS = st.sampled_from([None, "a", "b", "c"])
JOINS = [Event("join")] * 4
"""Then one in a rack of its own: histories in which a sticky assignor never came to rest."""

EVENTS = st.builds(Event, st.sampled_from(KINDS), st.integers(0, 9), RACKS)


@pytest.mark.parametrize("assign", [assign_highly_available, assign_sticky])
@example(AssignmentConfig(2, 1, 25), [1, 1, 1], 1, 2, [Event("join", 0, "a"), Event("join"), Event("join")])
@example(AssignmentConfig(2, 1, 10), [1, 4], 1, 2, [*JOINS, Event("join", 0, "a")])
@example(AssignmentConfig(2, 1, 10), [2, 3], 1, 2, [*JOINS, Event("join", 0, "a")])
@example(
    AssignmentConfig(1, 1, 30),
    [5, 7, 3],
    1,
    3,
    [Event("grow"), Event("join"), *(Event("join", 0, rack) for rack in "baa"), Event("lose"), Event("join", 0, "a")],
)
@given(
    config=CONFIGS,
    partitions=st.lists(st.integers(1, 7), min_size=1, max_size=4),
    consumers=st.integers(1, 3),
    learning=st.integers(1, 3),
    events=st.lists(EVENTS, max_size=12),
)
@examples(100, 10_000, deadline=None)
def test_histories(
    assign: Assignor,
    config: AssignmentConfig,
    partitions: list[int],
    consumers: int,
    learning: int,
    events: list[Event],
) -> None:
    cluster = Cluster(assign, config, partitions, consumers, learning)
    cluster.happen(Event("join"))
    cluster.round()
    for event in events:
        cluster.happen(event)
        cluster.round()
    assignment = settled(cluster, config, learning)
    assert cluster.round() == assignment, "what is final stays as it is"
    balanced(cluster, assignment, with_sub_topologies=assign is assign_highly_available)


def settled(cluster: Cluster, config: AssignmentConfig, learning: int) -> Assignment:
    """The final assignment, within as many rounds as it takes to learn all copies one after another."""
    copies = len(cluster.heads) * (1 + config.num_standby_replicas)
    for _ in range(copies * (learning + 2) + 3):
        assignment = cluster.round()
        if assignment.is_final:
            return assignment
    raise AssertionError("it does not come to rest")


def balanced(cluster: Cluster, assignment: Assignment, *, with_sub_topologies: bool) -> None:
    """All hosts have as many consumers."""
    stateful = cluster.stateful
    loads = [len(assigned.active) for assigned in assignment.hosts.values()]
    assert max(loads) - min(loads) <= 1
    if with_sub_topologies:
        for sub in {task.sub_topology for task in stateful}:
            shares = Counter(dict.fromkeys(assignment.hosts, 0))
            shares.update(owner for task, owner in assignment.owners().items() if task.sub_topology == sub)
            assert max(shares.values()) - min(shares.values()) <= 1
