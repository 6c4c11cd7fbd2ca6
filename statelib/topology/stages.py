"""In which order sub-topologies run: each after those whose repartition topics it reads, circles of them together.

Sub-topologies are in one *circle* if records of each may come back to it through repartition topics: a table that
refers to itself by a foreign key, a stream that is joined with its own aggregate under another key. Their tasks run
together, record by record (`statelib.task.circle`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet


def in_stages(reads: Sequence[AbstractSet[str]], writes: Sequence[AbstractSet[str]]) -> list[list[int]]:
    """Sub-topologies by number: the members of a circle together, each other one alone.

    Args:
        reads: By sub-topology, the repartition topics that it reads.
        writes: By sub-topology, those that it writes.

    Returns:
        Each after those that it reads from; as far as that leaves a choice, in order of number.
    """
    below = _reached(reads, writes)
    waiting = list(range(len(reads)))
    stages: list[list[int]] = []
    made: set[str] = set()
    while waiting:
        for first in waiting:
            circle = [other for other in waiting if other == first or (other in below[first] and first in below[other])]
            own = set[str]().union(*(writes[member] for member in circle))
            if all(reads[member] <= made | own for member in circle):
                break
        stages.append(circle)
        made |= own
        waiting = [other for other in waiting if other not in circle]
    return stages


def _reached(reads: Sequence[AbstractSet[str]], writes: Sequence[AbstractSet[str]]) -> Mapping[int, set[int]]:
    """By sub-topology, those to which its records may come, it itself included if they come back."""
    after = [{reader for reader, read in enumerate(reads) if written & read} for written in writes]
    reached: dict[int, set[int]] = {}
    for start in range(len(reads)):
        found, todo = set(after[start]), list(after[start])
        while todo:
            new = after[todo.pop()] - found
            found |= new
            todo += new
        reached[start] = found
    return reached
