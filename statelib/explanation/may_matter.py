"""Which source records may have mattered to a result, over all tasks that lead to it, from the last one up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from statelib.explanation.alone import History
from statelib.explanation.earlier import RestsOnEarlierError, latest_before
from statelib.explanation.needed import Needs
from statelib.explanation.rows import Watch, look_away

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from statelib.explanation.alone import Cause, RecordId
    from statelib.explanation.needed import Deduplicated, Wanted
    from statelib.explanation.replayed import Ended, ReplayedTask, TakenUp, TaskPlace
    from statelib.explanation.rows import Id
    from statelib.explanation.tasks import Tasks
    from statelib.settings.semantics import EndOfInput
    from statelib.topology import SubTopology

MOST_RECORDS = 2_000
"""More are not replayed alone: a count of so many says little more by its parts."""

EVERYTHING = -1

RECENCY = (2, 16, 256, None, EVERYTHING)
"""How many of the last records of a key to look at, until the result is reproduced; None: all of them; in the end all
records of all keys: a buffer that is full lets a record go whatever its key is."""


@dataclass
class MayMatter:
    """What was found.

    Attributes:
        history: Of the tasks that lead to the result.
        made: The records of topics that may have made it, in order.
        dropped: Those that may have been dropped on the way, some of ``made`` among them.
    """

    history: History
    made: list[RecordId]
    dropped: set[RecordId]


@dataclass
class _Asked:
    """Rows that a task's sinks got, and what is found of them: for what made the result, and for what was dropped."""

    made: set[Wanted] = field(default_factory=set)
    dropped: set[Wanted] = field(default_factory=set)

    @property
    def all(self) -> set[Wanted]:
        return self.made | self.dropped


class Search:
    """Looks for the records, by replaying tasks.

    Args:
        tasks: The tasks that lead to the sink.
        end_of_input: Of the last slice.
    """

    def __init__(self, tasks: Tasks, end_of_input: EndOfInput) -> None:
        self._tasks = tasks
        self._end_of_input = end_of_input
        self.records = 0
        """How many have been replayed."""

    def found(self, task: TaskPlace, wanted: Wanted, recency: int | None) -> MayMatter:
        """What may have mattered to a row that reached a sink of a task; ``recency``: see `RECENCY`.

        Raises:
            RestsOnEarlierError: Some of it may be before the commit at which the replay begins.
        """
        work = self._tasks.work(task)
        taken_up: dict[TaskPlace, list[TakenUp]] = {}
        causes: dict[RecordId, Cause] = {}
        ends: dict[TaskPlace, Ended] = {}
        history = History(
            self._tasks.path,
            taken_up,
            causes,
            ends,
            work.partitions,
            work.settings.semantics,
            self._end_of_input,
            sets_aside=work.settings.on_processing_error == "quarantine",
        )
        result = MayMatter(history, [], set())
        asked = {task: _Asked({wanted}, {wanted})}
        for sub_topology in reversed(self._tasks.path):
            for at in sorted(place for place in asked if place[0] == sub_topology.index):
                made, dropped = self._needed(sub_topology, at, asked[at], recency)
                taken_up[at] = []
                replayed = self._tasks.replayed(at, look_away)
                ends[at] = self.replay(replayed, np.array(sorted(made | dropped), np.int64), taken_up[at])
                sources = sub_topology.all_sources
                sent = [record for record in taken_up[at] if sources[record.source].internal]
                own = {record.sequence for record in taken_up[at]} - {record.sequence for record in sent}
                result.made += [(at, sequence) for sequence in sorted(made & own)]
                result.dropped |= {(at, sequence) for sequence in dropped & own}
                for record in sent:
                    cause, row = self._tasks.cause(sources[record.source].topic, at, record.offset)
                    causes[at, record.sequence] = cause
                    upstream = asked.setdefault(cause.task, _Asked())
                    if record.sequence in made:
                        upstream.made.add(row)
                    if record.sequence in dropped:
                        upstream.dropped.add(row)
        result.made.sort()
        return result

    def replay(self, task: ReplayedTask, sequences: NDArray[np.int64], taken: list[TakenUp]) -> Ended:
        """Replays a task and counts its records; ``taken``: gets those of ``sequences``."""
        ended = task.run(sequences, taken.append, one_by_one=len(sequences) <= MOST_RECORDS)
        self.records += ended.next_sequence
        return ended

    def _needed(
        self, sub_topology: SubTopology, task: TaskPlace, asked: _Asked, recency: int | None
    ) -> tuple[set[int], set[int]]:
        """The sequences of what may have made the rows that were asked for, and of what may have been dropped besides.

        It goes on until all is there that is looked for: which keys and ids these are, their rows tell.
        """
        sequences = {sequence for _, sequence, _ in asked.all}
        restored = self._tasks.work(task).restore
        earlier = latest_before(sub_topology, restored)
        if recency == EVERYTHING:
            if restored is not None:
                raise RestsOnEarlierError
            return set(range(max(sequences) + 1)), set()
        keys = {key for _, _, (key, _) in asked.all}
        ids: dict[str, Deduplicated] = {}
        while True:
            watch = Watch(keys, np.array(sorted(sequences), np.int64), ids)
            self.replay(self._tasks.replayed(task, watch), np.empty(0, np.int64), [])
            made = Needs(sub_topology, watch.rows, recency=recency, earlier=earlier)
            dropped = Needs(sub_topology, watch.rows, recency=recency, earlier=earlier, also_dropped=True)
            found = made.follow(asked.made), dropped.follow(asked.dropped)
            before = len(keys), len(sequences), _count(ids)
            keys = keys | made.keys | dropped.keys
            sequences = sequences | made.sequences | dropped.sequences
            ids = _together([ids, made.ids, dropped.ids])
            if before == (len(keys), len(sequences), _count(ids)):
                return found


def _together(some: Sequence[dict[str, Deduplicated]]) -> dict[str, Deduplicated]:
    found: dict[str, Deduplicated] = {}
    for one in some:
        for parent, (node, spec, ids) in one.items():
            known: set[Id] = found[parent][2] if parent in found else set()
            found[parent] = node, spec, known | ids
    return found


def _count(ids: dict[str, Deduplicated]) -> int:
    return sum(len(of) for _, _, of in ids.values())
