"""The end of the input, sealed: operators let go what they hold, as if stream time went on for ever.

Nodes are sealed in *waves*: first those that hold results and have none such above them, all at once; what they let go
passes through the nodes below like any other records; then the next ones. So everything that could still change a
result has reached it before it leaves.

What is held for the sake of leeway alone (`statelib.topology.leeway`) is let go in the same way.

What is let go is ordered by the stream time at which it would have left, which is its order time as well: tasks behind
a repartition topic take it up after what the slice had before, and meet what all upstreams let go in the order of event
time. No clock is moved: what comes out is late further down only where it would be as the input goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from statelib.operators.base import HoldingOperator
from statelib.records.batch import NO_OFFSET, Batch, Uptake, concat_in_order
from statelib.topology import Processor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from statelib.documents.plans import Leeway
    from statelib.operators.base import Operator
    from statelib.task.graph import Graph
    from statelib.task.merge import TaskClock
    from statelib.task.source_records import Records
    from statelib.topology import Node


@dataclass(frozen=True, slots=True)
class SealedRecords:
    """What reached one sink.

    Attributes:
        batch: The records, in order.
        order_time: int64, ascending: when each would have left the node that held it, ms.
    """

    batch: Batch
    order_time: NDArray[np.int64]


def seal(
    graph: Graph,
    nothing: Sequence[Records],
    clock: TaskClock,
    *,
    partition: int,
    order_time: int,
    leeway: Leeway | None = None,
) -> dict[str, SealedRecords]:
    """Seals every node of a task that has taken up all its input.

    Args:
        graph: The running nodes.
        nothing: No records, of the types of each source.
        clock: Numbers what is let go.
        partition: The task's.
        order_time: That of the last record that was taken up, ms: what is let go comes after it.
        leeway: What is held for its sake is let go, and nothing is sealed; None: everything is.

    Returns:
        By sink node.
    """
    arrived: dict[str, list[Batch]] = {}
    due = [np.empty(0, dtype=np.int64)]
    first = clock.next_sequence
    for wave in waves(graph.nodes, graph.operators):
        held = graph.seal(wave, nothing, leeway=leeway)
        if not held:
            continue
        times, ranks = _in_turn([batch.sequence for batch in held.values()])
        uptake = _uptake(times, clock, partition)
        sealed = {
            name: replace(batch, sequence=uptake.first_sequence + rank)
            for (name, batch), rank in zip(held.items(), ranks, strict=True)
        }
        for sink, batch in graph.process(nothing, [times[:0]] * len(nothing), uptake, sealed).items():
            arrived.setdefault(sink, []).append(batch)
        due.append(times)
    order_times = np.maximum(np.concatenate(due), order_time)
    return {sink: _in_order(batches, order_times, first) for sink, batches in arrived.items()}


def waves(nodes: Sequence[Node], operators: Mapping[str, Operator]) -> list[list[str]]:
    """The nodes that may hold records, by how many of them are at most on the way from a source."""
    depth: dict[str, int] = {}
    found: dict[int, list[str]] = {}
    for node in nodes:
        above = max((depth[parent] for parent in node.parents), default=0)
        holds = isinstance(node, Processor) and isinstance(operators[node.name], HoldingOperator)
        if holds:
            found.setdefault(above, []).append(node.name)
        depth[node.name] = above + holds
    return [found[n] for n in sorted(found)]


def _in_turn(times: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]]:
    """All times, ascending, and the place of each: what is let go goes on one by one, of equal times node by node."""
    together = np.concatenate(times)
    order = np.argsort(together, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return together[order], np.split(rank, np.cumsum([len(of) for of in times])[:-1])


def _uptake(times: NDArray[np.int64], clock: TaskClock, partition: int) -> Uptake:
    """One row for each of ``times``: records that come from no topic, and do not move the task's stream time."""
    count, first = len(times), clock.next_sequence
    clock.next_sequence += count
    return Uptake(
        first,
        np.full(count, clock.stream_time),
        np.zeros(count, dtype=np.int16),
        np.full(count, partition, dtype=np.int32),
        np.full(count, NO_OFFSET),
    )


def _in_order(batches: Sequence[Batch], order_times: NDArray[np.int64], first_sequence: int) -> SealedRecords:
    """All records of one sink by order time; of equal ones those of an earlier wave come first."""
    filled = [batch for batch in batches if len(batch)] or batches[:1]
    merged = concat_in_order(filled)[0]
    times = order_times[merged.sequence - first_sequence]
    order = np.argsort(times, kind="stable")
    return SealedRecords(merged.take(order), times[order])
