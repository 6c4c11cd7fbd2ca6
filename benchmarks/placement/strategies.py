"""Ways to give tasks to hosts: Hindstream's two, and what one might do instead."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Protocol

from statelib.assignment.high_availability import assign_highly_available
from statelib.assignment.model import Assignment, HostAssignment
from statelib.assignment.sticky import assign_sticky

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from uuid import UUID

    from statelib.assignment.model import AssignmentConfig, Assignor, HostState, TaskId

_POINTS_OF_A_HOST = 64


class Strategy(Protocol):
    """An assignor, and whether a host waits for all of its state before it runs any task."""

    @property
    def title(self) -> str:
        """For tables and plots."""

    @property
    def starts_together(self) -> bool:
        """Whether all tasks of a host start when the last one's state is there."""

    def assign(self, hosts: Sequence[HostState], tasks: Collection[TaskId], config: AssignmentConfig) -> Assignment:
        """See `statelib.assignment.model.Assignor`; all tasks have state."""


@dataclass(frozen=True)
class WithLearners:
    """One of Hindstream's assignors."""

    title: str
    assignor: Assignor
    starts_together: bool = False

    def assign(self, hosts: Sequence[HostState], tasks: Collection[TaskId], config: AssignmentConfig) -> Assignment:
        """As it is."""
        return self.assignor(hosts, tasks, tasks, config)


@dataclass(frozen=True)
class RevokeAll:
    """Every round begins anew: tasks by turns, all stop, and a host runs once it has restored all of its own.

    Kafka Streams before KIP-429 and KIP-441, as the wiki page describes it, without its stickiness.
    """

    title: str = "revoke all"
    starts_together: bool = True

    def assign(self, hosts: Sequence[HostState], tasks: Collection[TaskId], config: AssignmentConfig) -> Assignment:
        """Task n of the order to host n, and its copies to the hosts after that."""
        ids = sorted(host.process_id for host in hosts)
        copies = min(config.num_standby_replicas, len(ids) - 1)
        active: dict[UUID, list[TaskId]] = {one: [] for one in ids}
        standby: dict[UUID, list[TaskId]] = {one: [] for one in ids}
        for number, task in enumerate(sorted(tasks)):
            active[ids[number % len(ids)]].append(task)
            for further in range(1, copies + 1):
                standby[ids[(number + further) % len(ids)]].append(task)
        return _at_once(active, standby)


@dataclass(frozen=True)
class ConsistentHashing:
    """Each task to the host that follows it on a ring, its copies to those after that; at once, whatever is there."""

    title: str = "consistent hashing"
    starts_together: bool = False

    def assign(self, hosts: Sequence[HostState], tasks: Collection[TaskId], config: AssignmentConfig) -> Assignment:
        """64 points a host."""
        ids = sorted(host.process_id for host in hosts)
        ring = sorted((_place(f"{one}/{point}"), one) for one in ids for point in range(_POINTS_OF_A_HOST))
        places = [place for place, _ in ring]
        wanted = min(config.num_standby_replicas + 1, len(ids))
        active: dict[UUID, list[TaskId]] = {one: [] for one in ids}
        standby: dict[UUID, list[TaskId]] = {one: [] for one in ids}
        for task in sorted(tasks):
            at, holders = bisect_right(places, _place(str(task))), []
            while len(holders) < wanted:
                one = ring[at % len(ring)][1]
                if one not in holders:
                    holders.append(one)
                at += 1
            active[holders[0]].append(task)
            for one in holders[1:]:
                standby[one].append(task)
        return _at_once(active, standby)


def _at_once(active: Mapping[UUID, list[TaskId]], standby: Mapping[UUID, list[TaskId]]) -> Assignment:
    hosts = {one: HostAssignment(tuple(active[one]), tuple(standby[one])) for one in active}
    return Assignment(hosts, is_final=True)


def _place(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


STRATEGIES: tuple[Strategy, ...] = (
    WithLearners("high availability", assign_highly_available),
    WithLearners("sticky", assign_sticky),
    RevokeAll(),
    ConsistentHashing(),
)
