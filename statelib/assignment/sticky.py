"""The sticky assignor of the wiki page on incremental rebalancing: tasks stay where they were, then balance.

A host has room for its share of all tasks by consumers, in whole tasks. A task that is being learned goes to its
learner: its owner gives it up. Each other goes to the host that ran it, while that has room; else to one that holds a
copy, while that has room. The rest goes, sub-topology by sub-topology, to the least loaded host; among equals to the
one that ran the task, then to one that holds a copy. Standbys stay where there are copies, by a similar rule. The
outcome is a target; `Movements` says how far it can be had now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.assignment.movements import Movements
from statelib.assignment.placing import LeastLoaded, Placing
from statelib.assignment.standbys import Spread

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from statelib.assignment.model import Assignment, AssignmentConfig, HostState, TaskId


def assign_sticky(
    hosts: Sequence[HostState], tasks: Collection[TaskId], stateful: Collection[TaskId], config: AssignmentConfig
) -> Assignment:
    """See `statelib.assignment.model.Assignor`."""
    placing = sticky_target(hosts, tasks, stateful, config)
    return placing.done(is_final=not Movements(placing, stateful, config, is_sticky=True).move())


def sticky_target(
    hosts: Sequence[HostState], tasks: Collection[TaskId], stateful: Collection[TaskId], config: AssignmentConfig
) -> Placing:
    """What would be, were all caught up; arguments as for `assign_sticky`."""
    placing = Placing(hosts)
    before = _Before(placing)
    _assign_active(placing, sorted(tasks), before)
    _assign_standbys(placing, sorted(stateful), config.num_standby_replicas, before)
    return placing


class _Before:
    """Who had what, by task."""

    def __init__(self, placing: Placing) -> None:
        self._owners: dict[TaskId, int] = {}
        copies: dict[TaskId, list[tuple[int, int]]] = {}
        for number, host in enumerate(placing.hosts):
            for task in host.previous_active:
                self._owners.setdefault(task, number)
            for task in host.previous_active | host.previous_standby:
                copies.setdefault(task, []).append((host.lag(task), number))
        self._copies = {task: [number for _, number in sorted(held)] for task, held in copies.items()}

    def owner(self, task: TaskId) -> list[int]:
        """The host that ran it, if there is one."""
        return [self._owners[task]] if task in self._owners else []

    def copies(self, task: TaskId) -> list[int]:
        """The hosts with a copy, the owner among them; what lacks least comes first."""
        return self._copies.get(task, [])


def _assign_active(placing: Placing, tasks: Sequence[TaskId], before: _Before) -> None:
    room = len(tasks) * placing.consumers // placing.consumers.sum()
    left = set(tasks)
    for learner, its_state in enumerate(placing.hosts):
        for task in sorted(left & its_state.previous_learning)[: room[learner]]:
            placing.assign_active(learner, task)
            left.remove(task)
    owned: dict[int, list[TaskId]] = {}
    for task in left:
        for owner in before.owner(task):
            owned.setdefault(owner, []).append(task)
    for owner, its in owned.items():
        for task in _interleaved(its)[: max(room[owner] - len(placing.active[owner]), 0)]:
            placing.assign_active(owner, task)
            left.remove(task)
    for task in sorted(left):
        with_room = (host for host in before.copies(task) if len(placing.active[host]) < room[host])
        if (found := next(with_room, None)) is not None:
            placing.assign_active(found, task)
            left.remove(task)
    least_loaded = LeastLoaded(range(len(placing)), placing.active_load)
    for task in sorted(left):
        first = least_loaded.first()
        known = (*before.owner(task), *before.copies(task))
        host = next((host for host in known if placing.active_load(host) == placing.active_load(first)), first)
        placing.assign_active(host, task)
        least_loaded.offer(host)


def _interleaved(tasks: Collection[TaskId]) -> list[TaskId]:
    """So that any number of the first ones has about the same share of each sub-topology."""
    of_each: dict[int, list[TaskId]] = {}
    for task in sorted(tasks):
        of_each.setdefault(task.sub_topology, []).append(task)
    return [
        task
        for _, task in sorted(((n + 0.5) / len(its), task) for its in of_each.values() for n, task in enumerate(its))
    ]


def _assign_standbys(placing: Placing, tasks: Sequence[TaskId], number: int, before: _Before) -> None:
    if not number:
        return
    both = int(placing.copies.sum()) + len(tasks) * number
    room = -(-both * placing.consumers // placing.consumers.sum())
    spread = Spread(placing, placing.load)
    owners = placing.owners()
    holders = {task: [owners[task]] for task in tasks}
    for task in tasks:
        for _ in range(number):
            free = (host for host in before.copies(task) if not placing.holds(host, task))
            fitting = (host for host in free if placing.copies[host] < room[host])
            kept = next((host for host in fitting if spread.is_apart(host, holders[task])), None)
            if kept is None:
                break
            spread.give(kept, task, holders[task])
    spread.fill(holders, number)
