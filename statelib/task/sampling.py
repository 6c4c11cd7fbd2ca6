"""Leaves the records of other keys out, before the nodes that take a sample of the keys; but not those that move time.

Which nodes these are: `statelib.topology.sampled`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from statelib.columns.arrow_buffers import valid_of
from statelib.columns.stream_time import running_stream_time
from statelib.records.batch import NO_TIMESTAMP
from statelib.records.key_sample import LEFT_OUT, MOVES_TIME, TAKEN, TAKES_SAMPLE
from statelib.topology import Processor, Sink
from statelib.topology.sampled import sampled_inputs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from statelib.metrics.node_metrics import NodeMetrics
    from statelib.records.batch import Batch
    from statelib.records.key_sample import KeySample
    from statelib.task.numbering import Passing
    from statelib.topology import Node
    from statelib.topology.sampled import Movers

Edge: TypeAlias = "tuple[str, Node, int]"
"""The name of a parent, a node, and which of its parents that is."""


class Sampling:
    """What the nodes of a task take of a sample of keys.

    Args:
        sample: The sample.
        nodes: Of the task, parents before their children.
        metrics: Of each node.
    """

    def __init__(self, sample: KeySample, nodes: Sequence[Node], metrics: Mapping[str, NodeMetrics]) -> None:
        self._sample = sample
        self._metrics = metrics
        self._inputs = sampled_inputs(nodes)
        self.edges: list[Edge] = [
            (parent, node, slot)
            for node in nodes
            if isinstance(node, Processor) and node.name in self._inputs
            for slot, parent in enumerate(node.parents)
            if parent not in self._inputs
        ]
        """Where a processor that takes the sample has records of a node that takes all keys."""
        for name in self._inputs:
            metrics[name].gauges[TAKES_SAMPLE] = 1
        self._times: dict[tuple[str, int], int] = {}
        self._taken: dict[tuple[str, int], NDArray[np.bool_]] = {}

    def __contains__(self, node: str) -> bool:
        """Whether a node takes the sample."""
        return node in self._inputs

    def begin(self, given: Mapping[Edge, Passing]) -> None:
        """Chooses what is taken of a run of records, given what comes along each of `edges`."""
        along = {(node.name, slot): passing for (_, node, slot), passing in given.items()}
        chosen = {at: self._sample.has(passing.batch.keys) for at, passing in along.items()}
        causes = {at: passing.numbering.uptake.causes_of(passing.batch) for at, passing in along.items()}
        none = np.empty(0, np.int64)
        of_sample = np.unique(np.concatenate([none, *(causes[at][rows] for at, rows in chosen.items())]))
        for at, passing in along.items():
            name, slot = at
            movers = self._inputs[name][slot]
            moving = np.zeros(len(passing.batch), np.bool_)
            if movers is not None:
                moving = self._moving(at, passing.batch, movers, chosen[at], causes[at], of_sample)
            self._take(at, chosen[at], moving)

    def taken(self, node: Node, slot: int, passing: Passing) -> Passing:
        """What a node takes of what its parent with the number ``slot`` has sent to it."""
        at = node.name, slot
        if node.name not in self._inputs:
            return passing
        if isinstance(node, Sink):
            chosen = self._sample.has(passing.batch.keys)
            self._taken[at] = chosen
            if node.parents[slot] not in self._inputs:
                self._take(at, chosen, np.zeros_like(chosen))
        rows = self._taken.get(at)
        return passing if rows is None else replace(passing, batch=passing.batch.filter(rows))

    def _take(self, at: tuple[str, int], chosen: NDArray[np.bool_], moving: NDArray[np.bool_]) -> None:
        """Takes and counts records of the sample, and those that move time."""
        self._taken[at] = chosen | moving
        for counter, rows in ((TAKEN, chosen), (MOVES_TIME, moving), (LEFT_OUT, ~self._taken[at])):
            self._metrics[at[0]].count(counter, int(np.count_nonzero(rows)))

    def _moving(
        self,
        at: tuple[str, int],
        batch: Batch,
        movers: Movers,
        chosen: NDArray[np.bool_],
        causes: NDArray[np.int64],
        of_sample: NDArray[np.int64],
    ) -> NDArray[np.bool_]:
        """Which records of other keys move time; of several between two records of the sample the last one.

        Args:
            at: Where they come in.
            batch: The records.
            movers: Which records may.
            chosen: Which of them are of the sample.
            causes: int64, by record: the sequence of its source record.
            of_sample: int64, ascending: of all source records that cause records of the sample, along any edge.
        """
        may = batch.keys.valid()
        if movers == "valued":
            may = may & valid_of(batch.value)
        before = self._times.get(at, NO_TIMESTAMP)
        clock = running_stream_time(np.where(may, batch.timestamp, NO_TIMESTAMP), before)
        moves = np.diff(clock, prepend=before) > 0
        if len(clock):
            self._times[at] = int(clock[-1])
        rows = np.flatnonzero(moves & ~chosen)
        place = np.searchsorted(of_sample, causes[rows])
        with_sample = of_sample[np.minimum(place, len(of_sample) - 1)] == causes[rows] if len(of_sample) else False
        is_last = np.append(np.diff(2 * place + with_sample) > 0, True)[: len(rows)]
        moving = np.zeros(len(batch), np.bool_)
        moving[rows[is_last | with_sample]] = True
        return moving
