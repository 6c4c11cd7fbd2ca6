"""Copies of state on hosts that do not run the task, so that a lost host is replaced by one that has nearly all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.assignment.placing import LeastLoaded

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from statelib.assignment.model import TaskId
    from statelib.assignment.placing import Placing


def assign_standbys(placing: Placing, tasks: Iterable[TaskId], number: int) -> None:
    """Gives each task ``number`` copies on the least loaded hosts without it (KIP-441), or as many as there are such.

    Where racks are known, hosts in racks that have nothing of the task come first (KIP-708, with one tag).
    """
    if number:
        spread, owners = Spread(placing, placing.load), placing.owners()
        spread.fill({task: [owners[task]] for task in tasks}, number)


class Spread:
    """The least loaded hosts, those first whose rack has nothing of a task. Without racks all hosts are in one.

    Args:
        placing: What hosts have so far.
        load: By which they are compared; one whose load has changed must be offered anew.
    """

    def __init__(self, placing: Placing, load: Callable[[int], float]) -> None:
        self._placing = placing
        self._load = load
        hosts: dict[str | None, list[int]] = {}
        for number, host in enumerate(placing.hosts):
            hosts.setdefault(host.rack, []).append(number)
        self._racks = {rack: LeastLoaded(members, load) for rack, members in hosts.items()}

    def take(self, task: TaskId, holders: Iterable[int]) -> int | None:
        """Takes out the best host that has nothing of the task; None: there is none.

        Args:
            task: The task.
            holders: The hosts that have it.
        """
        used = {self._placing.hosts[holder].rack for holder in holders}
        found = self._least(task, [rack for rack in self._racks if rack not in used])
        return self._least(task, self._racks) if found is None else found

    def is_apart(self, host: int, holders: Iterable[int]) -> bool:
        """Whether its rack has none of a task that ``holders`` have, or each rack has some."""
        used = {self._placing.hosts[holder].rack for holder in holders}
        return self._placing.hosts[host].rack not in used or used >= self._racks.keys()

    def offer(self, host: int) -> None:
        """Puts a host in, or where it belongs by now."""
        self._racks[self._placing.hosts[host].rack].offer(host)

    def give(self, host: int, task: TaskId, holders: list[int]) -> None:
        """Gives a host a copy of a task that ``holders`` have, and it from now on."""
        self._placing.assign_standby(host, task)
        self.offer(host)
        holders.append(host)

    def fill(self, holders: Mapping[TaskId, list[int]], number: int) -> None:
        """Gives each task, which ``holders`` have, as many copies as it lacks, or as there are hosts for.

        Args:
            holders: By task, its owner and those with a copy; brought up to date.
            number: Of copies.
        """
        for task, having in holders.items():
            while len(having) <= number and (host := self.take(task, having)) is not None:
                self.give(host, task, having)

    def _least(self, task: TaskId, racks: Collection[str | None]) -> int | None:
        taken = [self._racks[rack].poll(lambda host: not self._placing.holds(host, task)) for rack in racks]
        found = sorted((self._load(host), host) for host in taken if host is not None)
        for _, host in found[1:]:
            self.offer(host)
        return found[0][1] if found else None
