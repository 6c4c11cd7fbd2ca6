"""What the DSL has described so far, in the order in which Kafka Streams writes it to the topology.

Kafka's ``InternalStreamsBuilder`` keeps a graph of what has been described and writes it when it builds: always the
node next that was added first of those whose parents are written. That is the order of description, unless a node was
added a second time, as the repartition topic is that a named grouping shares; it then comes with the last of its users.
By this order sub-topologies are numbered, and a record visits the children of a node.

What is optimised is changed in this graph before it is written: see `statelib.dsl.optimization`.
"""

from __future__ import annotations

import dataclasses
import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from statelib.errors.user_lines import calling_line, place_of_call
from statelib.topology.nodes import Processor, name_taken, senders

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from statelib.topology import Node

Role = Literal[
    "key-changing", "value-changing", "process", "process-values", "merge", "repartition", "table-source", "stream-join"
]
"""What Kafka's optimiser looks for: what changes keys, or values alone; processors, which may do so; a merge; a
repartition that an operator needs (and nobody has asked for); a topic's table; the join of two streams."""


@dataclass(slots=True, eq=False)
class GraphNode:
    """What is written at once (Kafka's ``GraphNode``): a join has several nodes, a repartition topic two.

    Attributes:
        names: Of its nodes; the last one forwards what others get.
        priority: When it was added; counts up.
        role: See `Role`; None: none of them.
        parents: Those of Kafka's graph, in the order in which they were added; values do not matter.
        children: The same downwards.
        looked_into: Those with the tables that it only looks into. Kafka's graph has no line from these.
    """

    names: tuple[str, ...]
    priority: int
    role: Role | None = None
    parents: dict[GraphNode, None] = field(default_factory=dict)
    children: dict[GraphNode, None] = field(default_factory=dict)
    looked_into: tuple[GraphNode, ...] = ()

    @property
    def output(self) -> str:
        """The node that forwards what the children get."""
        return self.names[-1]

    def add_child(self, child: GraphNode) -> None:
        """Adds a line to ``child``."""
        self.children[child] = None
        child.parents[self] = None

    def remove_child(self, child: GraphNode) -> None:
        """Removes the line to ``child``, if there is one."""
        self.children.pop(child, None)
        child.parents.pop(self, None)


class DslGraph:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._graph_nodes: list[GraphNode] = []
        self._of_node: dict[str, GraphNode] = {}
        self._added = 0

    @property
    def nodes(self) -> tuple[Node, ...]:
        """In the order of description."""
        return tuple(self._nodes.values())

    @property
    def graph_nodes(self) -> tuple[GraphNode, ...]:
        """In the order of description."""
        return tuple(self._graph_nodes)

    def add(self, *nodes: Node, role: Role | None = None, parents: Iterable[str] | None = None) -> GraphNode:
        """Adds nodes that are written together, parents before their children.

        Args:
            nodes: The nodes.
            role: See `Role`.
            parents: Of all of them in Kafka's graph; None: those from which they take records.

        Raises:
            ConfigurationError: Another node has the name of one.
        """
        added = GraphNode(tuple(node.name for node in nodes), self._next(), role)
        line = calling_line()
        above = [parent for node in nodes for parent in senders(node)] if parents is None else parents
        looked_into = [parent for node in nodes for parent in node.parents[len(senders(node)) :]]
        for parent in above:
            if parent in self._of_node:
                self._of_node[parent].add_child(added)
        added.looked_into = tuple(dict.fromkeys(self._of_node[table] for table in looked_into))
        for node in nodes:
            if node.name in self._nodes:
                raise name_taken(node.name, **place_of_call())
            self._nodes[node.name] = dataclasses.replace(node, line=line)
            self._of_node[node.name] = added
        self._graph_nodes.append(added)
        return added

    def add_again(self, node: str) -> None:
        """Kafka adds a shared repartition topic once more with each of its users."""
        self._of_node[node].priority = self._next()

    def has(self, name: str) -> bool:
        """Whether there is a node of this name."""
        return name in self._nodes

    def node(self, name: str) -> Node:
        """The node of a name."""
        return self._nodes[name]

    def replace(self, node: Node) -> None:
        """Puts a node in the place of the one of its name."""
        self._nodes[node.name] = node

    # --- what is optimised ---------------------------------------------------------------------------------------

    def copied(self) -> DslGraph:
        """A graph of the same nodes; a change of one changes nothing of the other."""
        copy = DslGraph()
        copy._nodes, copy._added = dict(self._nodes), self._added
        of = {node: GraphNode(node.names, node.priority, node.role) for node in self._graph_nodes}
        for node, copied in of.items():
            copied.parents = {of[parent]: None for parent in node.parents}
            copied.children = {of[child]: None for child in node.children}
            copied.looked_into = tuple(of[table] for table in node.looked_into)
        copy._graph_nodes = list(of.values())
        copy._of_node = {name: of[node] for name, node in self._of_node.items()}
        return copy

    def move(self, child: GraphNode, before: GraphNode, now: Iterable[GraphNode]) -> None:
        """Lets ``child`` get what ``now`` forward instead of what ``before`` does."""
        to = tuple(now)
        for parent in to:
            parent.add_child(child)
        before.remove_child(child)
        for name in child.names:
            self._nodes[name] = _reparented(self._nodes[name], before.output, tuple(parent.output for parent in to))

    def insert(self, graph_node: GraphNode, *nodes: Node) -> None:
        """Puts in what has its lines already.

        Raises:
            ConfigurationError: Another node has the name of one.
        """
        for node in nodes:
            if node.name in self._nodes:
                raise name_taken(node.name)
            self._nodes[node.name] = node
            self._of_node[node.name] = graph_node
        self._graph_nodes.append(graph_node)

    def remove(self, graph_node: GraphNode) -> None:
        """Takes out what has no children any more."""
        for parent in tuple(graph_node.parents):
            parent.remove_child(graph_node)
        self._graph_nodes.remove(graph_node)
        for name in graph_node.names:
            del self._nodes[name], self._of_node[name]

    def become(self, graph_node: GraphNode, node: Node) -> None:
        """Puts one node in the place of those of ``graph_node``, the last of which has its name."""
        for name in graph_node.names[:-1]:
            del self._nodes[name], self._of_node[name]
        graph_node.names = (node.name,)
        self._nodes[node.name] = node

    # -------------------------------------------------------------------------------------------------------------

    def written(self) -> Sequence[Node]:
        """All nodes in the order in which Kafka Streams writes them."""
        below: dict[GraphNode, list[GraphNode]] = {graph_node: [] for graph_node in self._graph_nodes}
        waiting: dict[GraphNode, int] = {}
        for graph_node in self._graph_nodes:
            above = dict.fromkeys((*graph_node.parents, *graph_node.looked_into))
            waiting[graph_node] = len(above)
            for parent in above:
                below[parent].append(graph_node)
        ready = [(of.priority, of.names, of) for of in self._graph_nodes if not waiting[of]]
        heapq.heapify(ready)
        written: list[Node] = []
        while ready:
            _, names, graph_node = heapq.heappop(ready)
            written += [self._nodes[name] for name in names]
            for child in below[graph_node]:
                waiting[child] -= 1
                if not waiting[child]:
                    heapq.heappush(ready, (child.priority, child.names, child))
        return written

    def _next(self) -> int:
        self._added += 1
        return self._added


def _reparented(node: Node, before: str, now: tuple[str, ...]) -> Node:
    def of(parents: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for parent in parents for name in (now if parent == before else (parent,))))

    if not isinstance(node, Processor):
        return dataclasses.replace(node, parents=of(node.parents))
    forward = senders(node)
    parents = (*of(forward), *node.parents[len(forward) :])
    shown = node.described
    described = shown and tuple(
        dataclasses.replace(one, parents=tuple(dict.fromkeys((*(p for p in one.parents if p != before), *now))))
        if before in one.parents
        else one
        for one in shown
    )  # new lines come last in Kafka's graph, and its text shows that
    return dataclasses.replace(node, parents=parents, described=described)
