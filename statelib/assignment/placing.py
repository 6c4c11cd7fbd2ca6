"""An assignment while it is being made: who has what so far, and who has least."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from statelib.assignment.model import Assignment, HostAssignment
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from uuid import UUID

    from statelib.assignment.model import HostState, TaskId


class Placing:
    """Hosts are known by their place in the order of their process ids.

    Args:
        hosts: Those that reported.

    Attributes:
        hosts: In order.
        active: By host, the tasks that it shall run.
        standby: Those of which it shall keep a copy.
        learning: Those among the standbys that it only gets to take them over.
        copies: By host, int64: how many it has of both.
        consumers: By host, int64.

    Raises:
        ConfigurationError: There is no host, or two have the same process id.
    """

    def __init__(self, hosts: Sequence[HostState]) -> None:
        self.hosts = sorted(hosts, key=lambda host: _java_order(host.process_id))
        if not hosts or len({host.process_id for host in hosts}) < len(hosts):
            step = "give each host a state directory of its own"
            raise ConfigurationError("there is no host, or two have one process id", next_step=step)
        self.active: list[set[TaskId]] = [set() for _ in hosts]
        self.standby: list[set[TaskId]] = [set() for _ in hosts]
        self.learning: list[set[TaskId]] = [set() for _ in hosts]
        self.copies = np.zeros(len(hosts), np.int64)
        self.consumers = np.array([host.consumers for host in self.hosts], np.int64)

    def __len__(self) -> int:
        return len(self.hosts)

    def holds(self, host: int, task: TaskId) -> bool:
        """Whether it has the task or a copy."""
        return task in self.active[host] or task in self.standby[host]

    def owners(self) -> dict[TaskId, int]:
        """By task that a host shall run, the host."""
        return {task: host for host in range(len(self)) for task in self.active[host]}

    def assign_active(self, host: int, task: TaskId) -> None:
        """Gives it the task."""
        self.active[host].add(task)
        self.copies[host] += 1

    def unassign_active(self, host: int, task: TaskId) -> None:
        """Takes it away."""
        self.active[host].remove(task)
        self.copies[host] -= 1

    def assign_standby(self, host: int, task: TaskId) -> None:
        """Gives it a copy."""
        self.standby[host].add(task)
        self.copies[host] += 1

    def unassign_standby(self, host: int, task: TaskId) -> None:
        """Takes it away."""
        self.standby[host].remove(task)
        self.copies[host] -= 1

    def load(self, host: int) -> float:
        """Tasks and copies to a consumer."""
        return float(self.copies[host] / self.consumers[host])

    def active_load(self, host: int) -> float:
        """Tasks to a consumer."""
        return len(self.active[host]) / self.hosts[host].consumers

    def done(self, *, is_final: bool) -> Assignment:
        """What has come out."""
        hosts = {
            host.process_id: HostAssignment(
                tuple(sorted(self.active[n])),
                tuple(sorted(self.standby[n] - self.learning[n])),
                tuple(sorted(self.learning[n])),
            )
            for n, host in enumerate(self.hosts)
        }
        return Assignment(hosts, is_final)


class LeastLoaded:
    """Hosts, least loaded first, and in order among equals. One whose load has changed must be offered anew.

    Args:
        hosts: Those that are there at first.
        load: By which they are compared, asked when they are offered.
    """

    def __init__(self, hosts: Iterable[int], load: Callable[[int], float]) -> None:
        self._load = load
        self._offered = {host: load(host) for host in hosts}
        self._heap = [(weight, host) for host, weight in self._offered.items()]
        heapify(self._heap)

    def offer(self, host: int) -> None:
        """Puts a host in, or where it belongs by now."""
        weight = self._load(host)
        self._offered[host] = weight
        heappush(self._heap, (weight, host))

    def first(self) -> int:
        """The least loaded of all; it stays in.

        Raises:
            IndexError: There is none.
        """
        while self._offered.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][1]

    def poll(self, is_allowed: Callable[[int], bool]) -> int | None:
        """Takes out the first that is allowed; None: there is none."""
        refused = []
        found = None
        while self._heap and found is None:
            weight, host = heappop(self._heap)
            if self._offered.get(host) != weight:
                continue  # offered anew since, or taken
            if is_allowed(host):
                found = host
                del self._offered[host]
            else:
                refused.append((weight, host))
        for entry in refused:
            heappush(self._heap, entry)
        return found


def _java_order(process_id: UUID) -> tuple[int, int]:
    """As Java compares UUIDs: two signed numbers."""
    high, low = process_id.int >> 64, process_id.int & ((1 << 64) - 1)
    return _signed(high), _signed(low)


def _signed(bits: int) -> int:
    return bits - (1 << 64) if bits >> 63 else bits
