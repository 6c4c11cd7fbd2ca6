"""A cluster of hosts with disks, run after run: what a run waits for, and what is copied beside it.

A run begins with an assignment. Each host restores what its tasks lack, one after the other, the least first; a task
without its state has no owner so long. After the run each state has grown, and the hosts copy what their standbys and
learners lack, for as long as there is until the next run.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from statelib.assignment.model import RUNNING, AssignmentConfig, HostState, TaskId

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from benchmarks.placement.strategies import Strategy
    from statelib.assignment.model import Assignment


@dataclass(frozen=True)
class Size:
    """Of a cluster.

    Attributes:
        hosts: Of four consumers each.
        racks: Over which they are spread evenly.
        tasks: In 20 sub-topologies.
        mean_state_bytes: Of a task's state; single ones differ, log-normally.
        growth: What a run adds to a state, as a part of it.
        bytes_per_second: What a host can fetch.
        run_seconds: From the beginning of a run to that of the next.
        config: Of the assignors.
        seed: For the sizes of states.
    """

    hosts: int = 1_000
    racks: int = 10
    tasks: int = 20_000
    mean_state_bytes: float = 5e9
    growth: float = 0.01
    bytes_per_second: float = 250e6
    run_seconds: float = 3_600.0
    config: AssignmentConfig = field(
        default_factory=lambda: AssignmentConfig(
            num_standby_replicas=1, max_warmup_replicas=200, acceptable_recovery_lag=int(5e8)
        )
    )
    seed: int = 1


@dataclass
class Host:
    """One that exists.

    Attributes:
        disk: What each copy on it lacks of the newest state, bytes.
        active: What it ran last.
        learning: What it was learning.
        is_up: Whether it takes part in the next run.
    """

    process_id: UUID
    rack: str
    disk: dict[TaskId, float] = field(default_factory=dict)
    active: frozenset[TaskId] = frozenset()
    learning: frozenset[TaskId] = frozenset()
    is_up: bool = True


@dataclass(frozen=True)
class RunCost:
    """What a run cost.

    Attributes:
        waited_for_bytes: Fetched before tasks could begin.
        copied_bytes: Fetched for standbys and learners, beside the work.
        without_owner_seconds: Summed over all tasks: from the run's beginning until they begin.
        last_task_seconds: Until the last one begins.
        moved_tasks: How many run elsewhere than before.
        assignor_seconds: CPU of the assignment.
        is_final: Whether nothing is left to move.
    """

    waited_for_bytes: float
    copied_bytes: float
    without_owner_seconds: float
    last_task_seconds: float
    moved_tasks: int
    assignor_seconds: float
    is_final: bool


class Cluster:
    """A cluster under one strategy; it begins with all tasks placed and all copies made.

    Args:
        size: See there.
        strategy: Who gets what.
    """

    def __init__(self, size: Size, strategy: Strategy) -> None:
        self.size, self._strategy = size, strategy
        chance = random.Random(size.seed)
        per_topology = size.tasks // 20
        tasks = [TaskId(sub, number) for sub in range(20) for number in range(per_topology)]
        self.state_bytes = {task: chance.lognormvariate(0, 1) for task in tasks}
        scale = size.mean_state_bytes * len(tasks) / sum(self.state_bytes.values())
        self.state_bytes = {task: part * scale for task, part in self.state_bytes.items()}
        self._ids = random.Random(size.seed + 1)
        self.hosts: list[Host] = []
        self.join(size.hosts)
        self._owners: dict[TaskId, UUID] = {}
        while not self.run().is_final:
            pass
        self.run()

    def join(self, number: int) -> None:
        """Hosts without anything."""
        for _ in range(number):
            rack = f"rack-{len(self.hosts) % self.size.racks}"
            self.hosts.append(Host(UUID(int=self._ids.getrandbits(128)), rack))

    def lose(self, rack: str) -> None:
        """All hosts of a rack, with their disks."""
        self.hosts = [host for host in self.hosts if host.rack != rack]

    def run(self) -> RunCost:
        """One run of those that are up."""
        up = {host.process_id: host for host in self.hosts if host.is_up}
        reports = [self._report(host) for host in up.values()]
        began = time.process_time()
        assignment = self._strategy.assign(reports, list(self.state_bytes), self.size.config)
        assignor_seconds = time.process_time() - began
        waited, seconds = self._restore(up, assignment)
        owners = assignment.owners()
        moved = sum(self._owners.get(task, owner) != owner for task, owner in owners.items())
        self._owners = owners
        self._grow(up)
        copied = sum(self._copy(host, assignment) for host in up.values())
        return RunCost(waited, copied, sum(seconds), max(seconds), moved, assignor_seconds, assignment.is_final)

    def _report(self, host: Host) -> HostState:
        lags = {task: RUNNING if task in host.active else int(lack) for task, lack in host.disk.items()}
        standby = frozenset(host.disk) - host.active
        return HostState(host.process_id, 4, host.active, standby, host.learning & standby, lags, host.rack)

    def _restore(self, up: Mapping[UUID, Host], assignment: Assignment) -> tuple[float, list[float]]:
        """The bytes that tasks wait for, and for how many seconds each."""
        fetched, seconds = 0.0, []
        for process_id, assigned in assignment.hosts.items():
            host = up[process_id]
            lacks = sorted(self._lack(host, task) for task in assigned.active)
            ready, its = 0.0, []
            for lack in lacks:
                ready += lack / self.size.bytes_per_second
                its.append(ready)
            fetched += sum(lacks)
            seconds += [ready] * len(its) if self._strategy.starts_together else its
            host.disk |= dict.fromkeys(assigned.active, 0.0)
            host.active, host.learning = frozenset(assigned.active), frozenset(assigned.learning)
        return fetched, seconds

    def _lack(self, host: Host, task: TaskId) -> float:
        return min(host.disk.get(task, self.state_bytes[task]), self.state_bytes[task])

    def _grow(self, up: Mapping[UUID, Host]) -> None:
        """States stay as large as they are: as much expires as is written."""
        for host in self.hosts:
            for task in host.disk.keys() - (host.active if host.process_id in up else frozenset()):
                host.disk[task] += self.size.growth * self.state_bytes[task]

    def _copy(self, host: Host, assignment: Assignment) -> float:
        """What a host fetches for its copies; the rest of its disk is given up."""
        assigned = assignment.hosts[host.process_id]
        left = budget = self.size.bytes_per_second * self.size.run_seconds
        for task in sorted(assigned.standby + assigned.learning, key=lambda task: self._lack(host, task)):
            lack = self._lack(host, task)
            host.disk[task] = lack - min(lack, left)
            left -= min(lack, left)
        kept = {*assigned.active, *assigned.standby, *assigned.learning}
        host.disk = {task: lack for task, lack in host.disk.items() if task in kept}
        return budget - left


def scale_out(cluster: Cluster) -> Iterable[RunCost]:
    """A tenth more hosts; until all has moved."""
    cluster.join(cluster.size.hosts // 10)
    yield from _until_final(cluster)


def lost_rack(cluster: Cluster) -> Iterable[RunCost]:
    """A rack with its disks is gone; until all copies are there again."""
    cluster.lose("rack-0")
    yield from _until_final(cluster)


def rolling_restart(cluster: Cluster) -> Iterable[RunCost]:
    """In each run another rack is away, and comes back with its disks; until all is as it was."""
    for rack in range(cluster.size.racks):
        for host in cluster.hosts:
            host.is_up = host.rack != f"rack-{rack}"
            if not host.is_up:
                host.active = host.learning = frozenset()
        yield cluster.run()
    for host in cluster.hosts:
        host.is_up = True
    yield from _until_final(cluster)


def _until_final(cluster: Cluster) -> Iterable[RunCost]:
    while True:
        cost = cluster.run()
        yield cost
        if cost.is_final:
            return


SCENARIOS = {"scale-out by a tenth": scale_out, "a rack lost": lost_rack, "rolling restart": rolling_restart}
