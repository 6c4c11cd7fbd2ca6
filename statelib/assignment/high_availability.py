"""KIP-441's assignor: balance first, reached step by step without leaving a task without a caught-up owner.

The target depends on which hosts there are, not on what they hold: tasks with state by turns, evened out over
consumers, then their standbys. `Movements` says how far it can be had now. Tasks without state, which run anywhere,
fill up. As Kafka's ``HighAvailabilityTaskAssignor``, without its optimisation of traffic between racks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.assignment.balance import balance_active, balance_standbys
from statelib.assignment.movements import Movements
from statelib.assignment.placing import LeastLoaded, Placing
from statelib.assignment.standbys import assign_standbys

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from statelib.assignment.model import Assignment, AssignmentConfig, HostState, TaskId


def assign_highly_available(
    hosts: Sequence[HostState], tasks: Collection[TaskId], stateful: Collection[TaskId], config: AssignmentConfig
) -> Assignment:
    """See `statelib.assignment.model.Assignor`."""
    placing = Placing(hosts)
    with_state = sorted(stateful)
    for number, task in enumerate(with_state):
        placing.assign_active(number % len(placing), task)
    balance_active(placing)
    assign_standbys(placing, with_state, config.num_standby_replicas)
    balance_standbys(placing)
    has_moved = Movements(placing, stateful, config).move()
    least_loaded = LeastLoaded(range(len(placing)), placing.active_load)
    for task in sorted(set(tasks) - set(stateful)):
        host = least_loaded.first()
        placing.assign_active(host, task)
        least_loaded.offer(host)
    return placing.done(is_final=not has_moved)
