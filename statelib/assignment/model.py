"""Tasks, what hosts report of them, and what they get."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from statelib.errors.counted import counted
from statelib.errors.kinds import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from uuid import UUID

AssignorName = Literal["sticky", "high-availability"]

RUNNING = -2
"""The lag of the task that a host has just run: there is nothing newer (Kafka's ``Task.LATEST_OFFSET``)."""

NOTHING_HELD = (1 << 63) - 1
"""The lag of a task of which a host holds nothing."""


class TaskId(NamedTuple):
    """A partition of a sub-topology; ordered as Kafka orders its ``TaskId``."""

    sub_topology: int
    partition: int

    @classmethod
    def parse(cls, text: str) -> TaskId:
        """``0_3``: sub-topology 0, partition 3.

        Raises:
            ConfigurationError: It is written otherwise.
        """
        sub_topology, _, partition = text.partition("_")
        if not (sub_topology.isdecimal() and partition.isdecimal()):
            raise ConfigurationError(f"{text!r} is no task", next_step="write sub-topology and partition, such as 0_3")
        return cls(int(sub_topology), int(partition))

    def __str__(self) -> str:
        return f"{self.sub_topology}_{self.partition}"


@dataclass(frozen=True, slots=True)
class HostState:
    """What a host reports (Kafka's subscription, KIP-441's lags).

    Attributes:
        process_id: Whose state directory it is.
        consumers: How many tasks it runs at a time.
        previous_active: The tasks that it has run. One whose state it was still restoring is a previous standby.
        previous_standby: Those of which it holds a copy of some commit.
        previous_learning: Those among the copies that it was given in order to run the task later.
        lags: What each copy lacks of the task's newest state, 0 and more, in one unit for all; `RUNNING` for what it
            has run last. A task that is not there is one of which it holds nothing.
        rack: What may be lost at once with it; None: not known.
    """

    process_id: UUID
    consumers: int
    previous_active: frozenset[TaskId] = frozenset()
    previous_standby: frozenset[TaskId] = frozenset()
    previous_learning: frozenset[TaskId] = frozenset()
    lags: Mapping[TaskId, int] = field(default_factory=dict)
    rack: str | None = None

    def __post_init__(self) -> None:
        if self.consumers < 1:
            raise ConfigurationError(
                f"host {self.process_id} has {counted(self.consumers, 'consumer')}, not one or more"
            )

    def lag(self, task: TaskId) -> int:
        """What its copy of ``task`` lacks."""
        return self.lags.get(task, NOTHING_HELD)


@dataclass(frozen=True, slots=True)
class AssignmentConfig:
    """Under Kafka's names.

    Attributes:
        num_standby_replicas: Copies of each task's state beside that of its owner.
        max_warmup_replicas: Copies at a time, over all hosts, that are made so that a task or a standby can move.
        acceptable_recovery_lag: A copy that lacks at most this much is caught up.
    """

    num_standby_replicas: int = 0
    max_warmup_replicas: int = 2
    acceptable_recovery_lag: int = 10_000

    def __post_init__(self) -> None:
        for setting, least in (("num_standby_replicas", 0), ("max_warmup_replicas", 1), ("acceptable_recovery_lag", 0)):
            if getattr(self, setting) < least:
                what = f"{setting} is {getattr(self, setting)}"
                raise ConfigurationError(what, setting=setting, next_step=f"make it {least} or more")


@dataclass(frozen=True, slots=True)
class HostAssignment:
    """What a host gets; ascending.

    Attributes:
        active: The tasks that it runs.
        standby: Those of which it keeps a copy. While a standby is to move, both hosts have one.
        learning: Those of which it gets a copy because it is to run them later.
    """

    active: tuple[TaskId, ...] = ()
    standby: tuple[TaskId, ...] = ()
    learning: tuple[TaskId, ...] = ()


@dataclass(frozen=True, slots=True)
class Assignment:
    """Who gets what.

    Attributes:
        hosts: By process id, ascending; all that reported.
        is_final: Whether this is the target. If not, some tasks have yet to move to hosts that are not caught up, and
            a later round will bring it nearer.
    """

    hosts: Mapping[UUID, HostAssignment]
    is_final: bool

    def owners(self) -> dict[TaskId, UUID]:
        """By task, the host that runs it."""
        return {task: host for host, assigned in self.hosts.items() for task in assigned.active}


class Assignor(Protocol):
    """A rule by which tasks are given to hosts."""

    def __call__(
        self,
        hosts: Sequence[HostState],
        tasks: Collection[TaskId],
        stateful: Collection[TaskId],
        config: AssignmentConfig,
    ) -> Assignment:
        """The assignment of one round.

        Args:
            hosts: At least one, each process id once.
            tasks: All.
            stateful: Those among them that have state.
            config: See there.
        """
