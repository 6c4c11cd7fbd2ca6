"""Numbers the visits to a node in the order in which Kafka Streams would make them.

A task numbers source records (`Batch.sequence`). That is order enough as long as a node gets one record's results on
one path. Where paths part and meet again (`statelib.topology.paths`), visits are numbered anew: where they part, each
result by itself; where they meet, the visits of all paths in one order. A visit's *place* is a row of columns that
compares as Kafka Streams goes, depth first and result by result::

    source record | place of the child | result | place of the child | result | ...

The columns go on at each parting: which child of the node above, and the number of the node's result. What is not
there is -1, so that a node comes before what is below it, and what it puts into a table before all that its children
do. Of a table that is not what its node forwards, changes have places behind the result that they come behind, and all
that this causes. Behind everything that a source record causes comes a row of its own, the record's *end*: to it
belongs what a processor forwards when it is called by stream time.

A numbering has its own `Uptake`, so operators know nothing of all this.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from statelib.columns.merge_places import merge_places
from statelib.records.batch import UptakeOfVisits
from statelib.topology.paths import LOOKED_INTO

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.operators.base import Told
    from statelib.records.batch import Batch, Uptake

_NOTHING = -1
_END = 1 << 62
"""Behind all children and results."""


@dataclass(frozen=True, slots=True)
class Numbering:
    """Numbers of visits, ascending; see the module's docstring.

    Attributes:
        uptake: What the task knew at each: row ``i`` is of the number ``uptake.first_sequence + i``.
        places: int64, a row by number, two columns or more. The first one is the source record's row in the task's
            uptake. None: the numbers are those of source records.
    """

    uptake: Uptake
    places: NDArray[np.int64] | None = None

    def places_of(self, batch: Batch) -> NDArray[np.int64]:
        """The places of the visits that have caused the records."""
        rows = batch.sequence - self.uptake.first_sequence
        return rows[:, np.newaxis] if self.places is None else self.places[rows]


@dataclass(frozen=True, slots=True)
class Passing:
    """What a node forwards, or gets.

    Attributes:
        batch: The records; their sequences are numbers of ``numbering``.
        numbering: See `Numbering`.
        child: The place, among the children of the node at which that numbering began, of the one on whose way this is;
            `LOOKED_INTO` before the paths part.
        told: What those get that look into the node's table, where that is not what it forwards; None: it is.
    """

    batch: Batch
    numbering: Numbering
    child: int = LOOKED_INTO
    told: Passing | None = None

    def is_comparable(self, other: Passing) -> bool:
        """Whether the numbers of both say which visit comes first."""
        return self.numbering is other.numbering and self.child == other.child

    @property
    def visits(self) -> NDArray[np.int64]:
        """The places of the visits that the records make: a column more than that of those that caused them."""
        above = self.numbering.places_of(self.batch)
        made = np.empty((len(above), above.shape[1] + 1), np.int64)
        made[:, :-1] = above
        made[:, -1] = self.child
        return made


def parted(passing: Passing, task: Uptake, node: int, told: Told | None = None) -> Passing:
    """Gives each record a number of its own.

    Args:
        passing: What a node forwards.
        task: The task's own uptake.
        node: The node's place in the order of declaration.
        told: What those are told that look into its table, if that is something else.
    """
    batch = passing.batch
    is_source = passing.numbering.places is None and passing.child == LOOKED_INTO
    if told is None and is_source and (np.diff(batch.sequence) > 0).all():
        return Passing(batch, Numbering(passing.numbering.uptake))  # each has its own already
    numbering, numbers = _each_by_itself(passing.visits, task, node)
    made = Passing(replace(batch, sequence=numbers), numbering)
    if told is None:
        return made
    above = replace(passing, batch=told.changes).visits
    is_behind = np.where(told.behind < 0, _NOTHING, _END)
    places = np.column_stack([above, told.behind, is_behind])
    numbering, (numbers,) = _numbered([places], [np.arange(len(places))], task, node)
    return replace(made, told=Passing(replace(told.changes, sequence=numbers), numbering))


def results_numbered(
    rows: NDArray[np.int64], numbering: Numbering, task: Uptake, node: int
) -> tuple[Numbering, NDArray[np.int64]]:
    """Gives each result of nodes that take a turn together a number of its own.

    Args:
        rows: int64, by result, in order: the row in ``numbering`` of the visit that has caused it.
        numbering: That of the visits.
        task: The task's own uptake.
        node: The place, in the order of declaration, of the first of the nodes.

    Returns:
        The numbering, and the number of each result.
    """
    above = rows[:, np.newaxis] if numbering.places is None else numbering.places[rows]
    return _each_by_itself(np.column_stack([above, np.full(len(rows), LOOKED_INTO)]), task, node)


def _each_by_itself(above: NDArray[np.int64], task: Uptake, node: int) -> tuple[Numbering, NDArray[np.int64]]:
    results = np.arange(len(above))
    numbering, (numbers,) = _numbered([np.column_stack([above, results])], [results], task, node)
    return numbering, numbers


def met(inputs: Sequence[Passing], task: Uptake, node: int) -> list[Passing]:
    """Numbers what comes to a node on all its paths in one order.

    Args:
        inputs: What comes, by parent.
        task: The task's own uptake.
        node: The node's place in the order of declaration.
    """
    places = _as_wide([passing.visits for passing in inputs])
    bounds = np.cumsum([0, *(len(of) for of in places)])
    rank = np.empty(bounds[-1], np.int64)
    merge_places(np.concatenate(places).ravel(), places[0].shape[1], bounds[1:], bounds[:-1].copy(), rank)
    ranks = [rank[start:end] for start, end in pairwise(bounds)]
    numbering, numbers = _numbered(places, ranks, task, node)
    return [
        Passing(replace(passing.batch, sequence=of), numbering) for passing, of in zip(inputs, numbers, strict=True)
    ]


def in_task(passing: Passing) -> Batch:
    """The records with the sequences of the source records that caused them."""
    return replace(passing.batch, sequence=passing.numbering.uptake.causes_of(passing.batch))


def _as_wide(places: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """All with as many columns as the one that has the most."""
    width = max(of.shape[1] for of in places)
    return [np.pad(of, ((0, 0), (0, width - of.shape[1])), constant_values=_NOTHING) for of in places]


def _numbered(
    places: Sequence[NDArray[np.int64]], ranks: Sequence[NDArray[np.int64]], task: Uptake, node: int
) -> tuple[Numbering, list[NDArray[np.int64]]]:
    """One numbering of visits, with the end of each source record behind its last one; and the number of each visit.

    Args:
        places: By input, of its visits; all as wide.
        ranks: By input, int64: the place of each of its visits among those of all.
        task: The task's own uptake.
        node: The place, in the order of declaration, of the node at which the numbering begins.
    """
    numbers = [rank + of[:, 0] for of, rank in zip(places, ranks, strict=True)]  # behind so many ends
    visits = np.sum([np.bincount(of[:, 0], minlength=len(task)) for of in places], axis=0)
    ends = np.cumsum(visits + 1) - 1
    numbered = np.full((len(task) + sum(map(len, places)), places[0].shape[1]), _NOTHING, np.int64)
    numbered[ends, 0] = np.arange(len(task))
    numbered[ends, 1] = _END + node
    for of, number in zip(places, numbers, strict=True):
        numbered[number] = of
    return Numbering(UptakeOfVisits(task, np.ascontiguousarray(numbered[:, 0]), ends), numbered), numbers
