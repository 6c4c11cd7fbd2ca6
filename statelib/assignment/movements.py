"""The way from a target to what can be done now: tasks stay where their state is, and learners get it before they move.

What the wiki page on incremental rebalancing calls a learner is KIP-441's warm-up replica, and the order in which
tasks are moved is that of Kafka's ``TaskMovement``. A task whose target is not caught up goes to a host with a
caught-up copy, or else to the one that lacks least; its target gets a copy in place of the task, as long as learners
are to be had. In the round in which that copy is caught up nothing need be moved any more, and the target becomes the
owner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from statelib.assignment.model import NOTHING_HELD, RUNNING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from statelib.assignment.model import AssignmentConfig, TaskId
    from statelib.assignment.placing import Placing


class _Movement(NamedTuple):
    caught_up: int
    task: TaskId
    target: int


class Movements:
    """Changes a target into the assignment of this round.

    Args:
        placing: The target, which is changed.
        stateful: The tasks that have state.
        config: How many learners there may be, and when a copy is caught up.
        is_sticky: Whether a task stays with its owner rather than to go to a less loaded host that is caught up too,
            and copies that have been begun come before others. It must, where the target depends on what there was.
    """

    def __init__(
        self, placing: Placing, stateful: Collection[TaskId], config: AssignmentConfig, *, is_sticky: bool = False
    ) -> None:
        self._placing = placing
        self._stateful = frozenset(stateful)
        self._acceptable = config.acceptable_recovery_lag
        self._learners_left = config.max_warmup_replicas
        self._by_lag: dict[TaskId, list[tuple[int, int]]] = {task: [] for task in self._stateful}
        for number, host in enumerate(placing.hosts):
            for task, lag in host.lags.items():
                if task in self._stateful:
                    self._by_lag[task].append((lag, number))
        for copies in self._by_lag.values():
            copies.sort()
        owners = {task: number for number, host in enumerate(placing.hosts) for task in host.previous_active}
        self._owners = owners if is_sticky else {}
        self._is_sticky = is_sticky

    def move(self) -> bool:
        """Makes the changes; whether there were any to make, so that a later round has something left to do."""
        if self._acceptable >= NOTHING_HELD:
            return False  # everybody is caught up
        actives = self._wanted(self._placing.active)
        for movement in actives:
            self._move_active(movement)
        moved = [self._move_standby(movement) for movement in self._wanted(self._placing.standby)]
        return bool(actives) or any(moved)

    def _wanted(self, tasks: list[set[TaskId]]) -> list[_Movement]:
        """The tasks, or standbys, that are not caught up at their target while others are further."""
        wanted = [
            _Movement(len(self._caught_up(task)), task, target)
            for target in range(len(self._placing))
            for task in tasks[target] & self._stateful - self._placing.learning[target]
            if self._by_lag[task] and not self._is_caught_up(target, task)
            if self._by_lag[task][0][0] < self._placing.hosts[target].lag(task)
        ]
        return sorted(wanted, key=lambda movement: (self._is_sticky and not self._has_begun(movement), movement))

    def _has_begun(self, movement: _Movement) -> bool:
        return self._placing.hosts[movement.target].lag(movement.task) < NOTHING_HELD

    def _move_active(self, movement: _Movement) -> None:
        _, task, target = movement
        caught_up = self._caught_up(task)
        owners = [host for host in caught_up if host == self._owners.get(task)]
        standbys = [host for host in caught_up if task in self._placing.standby[host]]
        source = self._lightest(owners or standbys or caught_up)
        if source is None:
            source = self._furthest(task, target, lambda _: True)
        if source is None:
            return
        self._placing.unassign_active(target, task)
        if task in self._placing.standby[source]:  # they change places
            self._placing.unassign_standby(source, task)
            self._placing.assign_standby(target, task)
        elif self._may_learn():
            self._placing.assign_standby(target, task)
            self._placing.learning[target].add(task)
        self._placing.assign_active(source, task)

    def _move_standby(self, movement: _Movement) -> bool:
        _, task, target = movement

        def is_free(host: int) -> bool:
            return not self._placing.holds(host, task)

        source = self._lightest(list(filter(is_free, self._caught_up(task))))
        if source is None:
            source = self._furthest(task, target, is_free)
        if source is None:
            return False  # those that are further have the task or a copy already
        self._placing.assign_standby(source, task)
        if not self._may_learn():
            self._placing.unassign_standby(target, task)
        return True

    def _may_learn(self) -> bool:
        self._learners_left -= 1
        return self._learners_left >= 0

    def _is_caught_up(self, host: int, task: TaskId) -> bool:
        return self._is_acceptable(self._placing.hosts[host].lag(task))

    def _is_acceptable(self, lag: int) -> bool:
        return lag == RUNNING or 0 <= lag <= self._acceptable

    def _caught_up(self, task: TaskId) -> list[int]:
        return [host for lag, host in self._by_lag[task] if self._is_acceptable(lag)]

    def _lightest(self, hosts: Collection[int]) -> int | None:
        return min(hosts, key=lambda host: (self._placing.load(host), host), default=None)

    def _furthest(self, task: TaskId, target: int, is_allowed: Callable[[int], bool]) -> int | None:
        """The host whose copy lacks least, if that is less than the target's."""
        best = (self._placing.hosts[target].lag(task), target)
        return next((host for lag, host in self._by_lag[task] if (lag, host) < best and is_allowed(host)), None)
