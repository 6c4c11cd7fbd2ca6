"""Moves tasks or copies from hosts that have too many of them to others, until none has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from statelib.assignment.model import TaskId
    from statelib.assignment.placing import Placing


def balance_active(placing: Placing) -> None:
    """Evens tasks out over consumers (KIP-441, Kafka's ``HighAvailabilityTaskAssignor``)."""

    def move(task: TaskId, source: int, destination: int) -> None:
        placing.unassign_active(source, task)
        placing.assign_active(destination, task)

    _balance(placing, placing.active, move, lambda _source, _destination: True)


def balance_standbys(placing: Placing) -> None:
    """Evens standbys out over consumers, within racks."""

    def move(task: TaskId, source: int, destination: int) -> None:
        placing.unassign_standby(source, task)
        placing.assign_standby(destination, task)

    racks = [host.rack for host in placing.hosts]
    _balance(placing, placing.standby, move, lambda source, destination: racks[source] == racks[destination])


def _balance(
    placing: Placing,
    tasks: list[set[TaskId]],
    move: Callable[[TaskId, int, int], None],
    is_allowed: Callable[[int, int], bool],
) -> None:
    has_moved = True
    while has_moved:
        has_moved = False
        for source in range(len(placing)):
            for destination in _lighter(placing, source):
                if not is_allowed(source, destination):
                    continue
                for task in sorted(tasks[source]):
                    if not _is_better(placing, source, destination):
                        break
                    if not placing.holds(destination, task):
                        move(task, source, destination)
                        has_moved = True


def _lighter(placing: Placing, source: int) -> list[int]:
    """All that come into question: hosts that one more would not make heavier than one less makes ``source``."""
    less = (placing.copies[source] - 1) / placing.consumers[source]
    return [int(host) for host in np.flatnonzero((placing.copies + 1) / placing.consumers <= less) if host != source]


def _is_better(placing: Placing, source: int, destination: int) -> bool:
    """Whether the two differ less after a move than before, and not the other way round."""
    skew = placing.load(source) - placing.load(destination)
    less = (placing.copies[source] - 1) / placing.consumers[source]
    more = (placing.copies[destination] + 1) / placing.consumers[destination]
    return bool(0 <= less - more < skew)
