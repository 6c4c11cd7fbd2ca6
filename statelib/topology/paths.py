"""Where the paths of one record part and meet again (Kafka Streams takes them one after the other, depth first).

A record goes from a node to its children in the order in which they were declared, result by result, and through all
that is below one child before the next one gets it. A node that *looks into* a table does not get its records, but
finds what the table's node has put until then, which it does before it forwards.

Nodes that take a turn together (`statelib.topology.turns`) are one place, at which the ways into them meet.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from statelib.operators.processors.process import Process
from statelib.operators.stateless.merge import Merge
from statelib.topology.nodes import Processor, senders
from statelib.topology.turns import is_shared, turns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from statelib.topology.nodes import Node
    from statelib.topology.turns import Turn

LOOKED_INTO = -1
"""The place among a node's children of one that only looks into it: what the node has put is there before any child."""


class _Edge(NamedTuple):
    child: str
    is_look: bool


@dataclass(frozen=True)
class Paths:
    """The paths through the nodes of a sub-topology.

    Attributes:
        number: By node, its place in the order of declaration.
        children: By node, its children, without those that only look into it, in the order of declaration.
        partings: The nodes from which one record, or several results of one, come to some node on two paths or more:
            among its parents' records, or in what it finds in a table that it looks into.
        calls: The nodes that forward of themselves when a record has taken all its paths (punctuation), to where
            others' records come as well.
    """

    number: Mapping[str, int]
    children: Mapping[str, tuple[str, ...]]
    partings: frozenset[str]
    calls: frozenset[str]

    def place(self, parent: str, child: Node, slot: int) -> int:
        """The place of ``child`` among the children of ``parent``, or `LOOKED_INTO`, for one of the child's parents.

        Args:
            parent: A parent's name.
            child: The child.
            slot: Which of the child's parents it is.
        """
        return self.children[parent].index(child.name) if slot < len(senders(child)) else LOOKED_INTO


def paths_through(nodes: Sequence[Node]) -> Paths:
    """The paths through ``nodes``: parents before children."""
    number = {node.name: number for number, node in enumerate(nodes)}
    nodes = tuple(_places(turns(nodes)))
    edges: dict[str, list[_Edge]] = {node.name: [] for node in nodes}
    for node in nodes:
        sending = senders(node)
        for parent in dict.fromkeys(sending):
            edges[parent].append(_Edge(node.name, is_look=False))
        for parent in node.parents[len(sending) :]:
            edges[parent].append(_Edge(node.name, is_look=True))
    visited: dict[str, frozenset[str]] = {}  # by node, those that get something of what it forwards
    looking: dict[str, frozenset[str]] = {}  # those that look into it or into one of these
    partings, calls = set(), set()
    meeting = {node.name for node in nodes if len(node.parents) > 1}
    for node in reversed(nodes):
        below = [_reached(edge, visited, looking) for edge in edges[node.name]]
        visited[node.name] = frozenset[str]().union(*(gets for gets, _ in below))
        looking[node.name] = frozenset[str]().union(*(looks for _, looks in below))
        if any(
            gets & (others | looks)
            for at, (gets, _) in enumerate(below)
            for other, (others, looks) in enumerate(below)
            if other != at
        ):
            partings.add(node.name)
        if isinstance(node, Processor) and isinstance(node.spec, Process) and meeting & visited[node.name]:
            calls.add(node.name)
    return Paths(
        number,
        {
            name: tuple(sorted((edge.child for edge in of if not edge.is_look), key=lambda child: number.get(child, 0)))
            for name, of in edges.items()
        },
        frozenset(partings),
        frozenset(calls),
    )


def _reached(
    edge: _Edge, visited: Mapping[str, frozenset[str]], looking: Mapping[str, frozenset[str]]
) -> tuple[frozenset[str], frozenset[str]]:
    """The nodes that get something by an edge, and those that look into what changes by it."""
    if edge.is_look:
        return frozenset(), frozenset([edge.child])
    return visited[edge.child] | {edge.child}, looking[edge.child]


def _places(in_order: Sequence[Turn]) -> Iterator[Node]:
    """The nodes, and for those with one turn, a node for each into which a way leads from outside, and one for all."""
    place_of: dict[str, str] = {}
    for turn in in_order:
        first = turn[0]
        if not is_shared(turn):
            yield replace(first, parents=tuple(place_of.get(parent, parent) for parent in first.parents))
            continue
        names = {node.name for node in turn}
        entries = []
        for node in turn:
            if outside := tuple(place_of.get(parent, parent) for parent in node.parents if parent not in names):
                yield Processor(node.name, outside, Merge())
                entries.append(node.name)
        all_of_them = f"{first.name} and others"
        yield Processor(all_of_them, tuple(entries), Merge())
        place_of |= dict.fromkeys(names, all_of_them)
