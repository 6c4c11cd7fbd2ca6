"""What the DSL has described so far, in the order in which Kafka Streams writes it to the topology.

Kafka's ``InternalStreamsBuilder`` keeps a graph of what has been described and writes it when it builds: always the
node next that was added first of those whose parents are written. That is the order of description, unless a node was
added a second time, as the repartition topic is that a named grouping shares; it then comes with the last of its users.
By this order sub-topologies are numbered, and a record visits the children of a node.
"""

from __future__ import annotations

import dataclasses
import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from statelib.errors.user_lines import calling_line
from statelib.topology.nodes import name_taken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.topology import Node


@dataclass(slots=True, eq=False)
class _GraphNode:
    """What is written at once (Kafka's ``GraphNode``): a join has several nodes, a repartition topic two.

    Attributes:
        nodes: Their names.
        priority: When it was added; counts up.
        waits_for: How many others have to be written before.
        children: Those which wait for this one.
    """

    nodes: list[str]
    priority: int
    waits_for: int = 0
    children: list[_GraphNode] = field(default_factory=list)


class DslGraph:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._graph_nodes: list[_GraphNode] = []
        self._of_node: dict[str, _GraphNode] = {}
        self._added = 0

    @property
    def nodes(self) -> tuple[Node, ...]:
        """In the order of description."""
        return tuple(self._nodes.values())

    def add(self, *nodes: Node) -> None:
        """Adds nodes that are written together, parents before their children.

        Raises:
            ConfigurationError: Another node has the name of one.
        """
        graph_node = _GraphNode([node.name for node in nodes], self._next())
        self._graph_nodes.append(graph_node)
        line = calling_line()
        for node in nodes:
            if node.name in self._nodes:
                raise name_taken(node.name)
            for parent in dict.fromkeys(node.parents):
                above = self._of_node.get(parent)
                if above is not None and above is not graph_node:
                    above.children.append(graph_node)
                    graph_node.waits_for += 1
            self._nodes[node.name] = dataclasses.replace(node, line=line)
            self._of_node[node.name] = graph_node

    def add_again(self, node: str) -> None:
        """Kafka adds a shared repartition topic once more with each of its users."""
        self._of_node[node].priority = self._next()

    def node(self, name: str) -> Node:
        """The node of a name."""
        return self._nodes[name]

    def replace(self, node: Node) -> None:
        """Puts a node in the place of the one of its name."""
        self._nodes[node.name] = node

    def written(self) -> Sequence[Node]:
        """All nodes in the order in which Kafka Streams writes them."""
        waiting = {id(graph_node): graph_node.waits_for for graph_node in self._graph_nodes}
        ready = [(graph_node.priority, graph_node.nodes, graph_node) for graph_node in self._graph_nodes]
        ready = [entry for entry in ready if not entry[2].waits_for]
        heapq.heapify(ready)
        written: list[Node] = []
        while ready:
            _, names, graph_node = heapq.heappop(ready)
            written += [self._nodes[name] for name in names]
            for child in graph_node.children:
                waiting[id(child)] -= 1
                if not waiting[id(child)]:
                    heapq.heappush(ready, (child.priority, child.nodes, child))
        return written

    def _next(self) -> int:
        self._added += 1
        return self._added
