"""A cluster that lives through a history, one round of assignment at a time; each round is checked."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal
from uuid import UUID

from statelib.assignment.model import RUNNING, HostState, TaskId

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.assignment.model import Assignment, AssignmentConfig, Assignor

NEW_RECORDS = 10
"""What a task's state gains in a round, and a standby lacks at the beginning of the next."""


@dataclass(frozen=True)
class Event:
    """What happens before a round.

    Attributes:
        kind: ``lose`` takes a host and its disk away, ``restart`` takes it through a restart, ``wipe`` through one
            without its disk, ``grow`` adds a partition to a sub-topology.
        which: The host or sub-topology, counted around.
        rack: Of a host that joins.
    """

    kind: Literal["join", "lose", "restart", "wipe", "grow", "nothing"]
    which: int = 0
    rack: str | None = None


@dataclass
class Host:
    """One that is up."""

    process_id: UUID
    consumers: int
    rack: str | None
    disk: dict[TaskId, int] = field(default_factory=dict)
    """How far each copy is."""
    active: frozenset[TaskId] = frozenset()
    """What it has run since it was started."""
    learning: frozenset[TaskId] = frozenset()


class Cluster:
    """Hosts with disks, and tasks whose state grows.

    Args:
        assign: The assignor.
        config: For it.
        partitions: Of each sub-topology; every third has no state.
        consumers: Of each host.
        learning: How many rounds a copy takes to be made from nothing.
    """

    def __init__(
        self, assign: Assignor, config: AssignmentConfig, partitions: Sequence[int], consumers: int, learning: int
    ) -> None:
        self._assign, self._config, self._learning = assign, config, learning
        self._consumers = consumers
        self.hosts: list[Host] = []
        self.heads = {TaskId(sub, n): 0 for sub, number in enumerate(partitions) for n in range(number)}
        self._joined = 0

    @property
    def stateful(self) -> set[TaskId]:
        """Those of the tasks that have state."""
        return {task for task in self.heads if task.sub_topology % 3 != 2}

    def happen(self, event: Event) -> None:
        """An event; the last host stays."""
        if event.kind == "join":
            self._joined += 1
            self.hosts.append(Host(UUID(int=self._joined * 7919 % 1009), self._consumers, event.rack))
        elif event.kind == "grow":
            subs = sorted({task.sub_topology for task in self.heads})
            sub = subs[event.which % len(subs)]
            self.heads[TaskId(sub, sum(task.sub_topology == sub for task in self.heads))] = 0
        elif event.kind == "lose" and len(self.hosts) > 1:
            del self.hosts[event.which % len(self.hosts)]
        elif event.kind in {"restart", "wipe"}:
            host = self.hosts[event.which % len(self.hosts)]
            host.active = frozenset()
            if event.kind == "wipe":
                host.disk = {}

    def round(self) -> Assignment:
        """One assignment: what must hold of any is checked, then it is carried out."""
        reports = [self._report(host) for host in self.hosts]
        assignment = self._assign(reports, list(self.heads), self.stateful, self._config)
        assert assignment == self._assign(reports[::-1], list(self.heads)[::-1], self.stateful, self._config)
        self._check(assignment, reports)
        self._carry_out(assignment)
        return assignment

    def _report(self, host: Host) -> HostState:
        lags = {task: RUNNING if task in host.active else self.heads[task] - at for task, at in host.disk.items()}
        standby, learning = frozenset(host.disk) - host.active, host.learning & host.disk.keys()
        return HostState(host.process_id, host.consumers, host.active, standby, learning, lags, host.rack)

    def _check(self, assignment: Assignment, reports: Sequence[HostState]) -> None:
        assert set(assignment.hosts) == {host.process_id for host in self.hosts}
        owners = Counter(task for assigned in assignment.hosts.values() for task in assigned.active)
        assert owners == Counter(self.heads.keys()), "each task has one owner"
        learners = 0
        for assigned in assignment.hosts.values():
            both = [*assigned.active, *assigned.standby, *assigned.learning]
            assert len(set(both)) == len(both), "no copy beside its task, and none twice"
            assert set(assigned.standby + assigned.learning) <= self.stateful
            learners += len(assigned.learning)
        copies = Counter(task for assigned in assignment.hosts.values() for task in assigned.standby)
        wanted = min(self._config.num_standby_replicas, len(self.hosts) - 1)
        moving = sum(max(copies[task] - wanted, 0) for task in self.stateful)
        assert learners + moving <= self._config.max_warmup_replicas
        by_id = {report.process_id: report for report in reports}
        for task, owner in assignment.owners().items():
            if task in self.stateful and not self._is_caught_up(by_id[owner], task):
                holders = [str(one.process_id) for one in reports if self._is_caught_up(one, task)]
                assert not holders, f"{task} is caught up at {holders}, and runs elsewhere"
        if assignment.is_final:
            assert all(copies[task] == wanted for task in self.stateful)
            self._check_racks(assignment)
            assert learners == 0

    def _check_racks(self, assignment: Assignment) -> None:
        """As many racks as there can be; hosts without one are in one together."""
        racks = {host.process_id: host.rack for host in self.hosts}
        of_task: dict[TaskId, list[str | None]] = {task: [] for task in self.stateful}
        for process_id, assigned in assignment.hosts.items():
            for task in self.stateful.intersection(assigned.active + assigned.standby):
                of_task[task].append(racks[process_id])
        for its in of_task.values():
            assert len(set(its)) == min(len(set(racks.values())), len(its))

    def _is_caught_up(self, host: HostState, task: TaskId) -> bool:
        lag = host.lag(task)
        return lag == RUNNING or lag <= self._config.acceptable_recovery_lag

    def _carry_out(self, assignment: Assignment) -> None:
        for host in self.hosts:
            assigned = assignment.hosts[host.process_id]
            for task in self.stateful.intersection(assigned.active):
                host.disk[task] = self.heads[task] + NEW_RECORDS
            for task in assigned.standby + assigned.learning:
                step = -(-self.heads[task] // self._learning)
                host.disk[task] = min(self.heads[task], host.disk.get(task, 0) + step)
            host.active, host.learning = frozenset(assigned.active), frozenset(assigned.learning)
            kept = {*assigned.active, *assigned.standby, *assigned.learning}
            host.disk = {task: at for task, at in host.disk.items() if task in kept}
        for task in self.stateful:
            self.heads[task] += NEW_RECORDS
