"""Hosts and assignments, written short."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from statelib.assignment.model import RUNNING, HostState, TaskId

if TYPE_CHECKING:
    from collections.abc import Mapping

    from statelib.assignment.model import Assignment


def tasks(text: str) -> list[TaskId]:
    """``0_0 0_1``."""
    return [TaskId.parse(task) for task in text.split()]


def host(
    number: int,
    ran: str = "",
    holds: Mapping[str, int] | None = None,
    *,
    learns: str = "",
    consumers: int = 1,
    rack: str | None = None,
) -> HostState:
    """One that has run some tasks, and holds copies of others that lack something."""
    copies = {TaskId.parse(task): lag for task, lag in (holds or {}).items()}
    lags = copies | dict.fromkeys(tasks(ran), RUNNING)
    return HostState(
        UUID(int=number), consumers, frozenset(tasks(ran)), frozenset(copies), frozenset(tasks(learns)), lags, rack
    )


def seen(assignment: Assignment) -> dict[int, str]:
    """``active | standby | learning`` by host."""
    return {
        process_id.int: " | ".join(
            " ".join(map(str, some)) for some in (assigned.active, assigned.standby, assigned.learning)
        )
        for process_id, assigned in assignment.hosts.items()
    }
