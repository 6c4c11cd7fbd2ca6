"""Which nodes run together (Kafka's ``nodeGroups``): sub-topologies, and the global tables that they share.

A task runs the nodes that hang together by an edge or a store. A global table does not tie together what looks into it:
each sub-topology that does has the table's nodes, and each of its tasks a copy of the table. (In Kafka Streams a thread
of its own keeps one copy a host, which tasks only read.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.topology.connected import connected
from statelib.topology.nodes import Node, Processor, Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def groups(nodes: Sequence[Node]) -> list[tuple[Node, ...]]:
    """What tasks run, in order of the first node: in each the nodes of global tables first, then the others in order.

    Args:
        nodes: Of a topology, parents before children.
    """
    shared = global_nodes(nodes)
    of_tasks = _connected([node for node in nodes if node.name not in shared])
    return [_with_global_tables(group, nodes, shared) for group in of_tasks]


def global_nodes(nodes: Iterable[Node]) -> frozenset[str]:
    """The nodes that have nothing above them but global sources; ``nodes``: parents before children."""
    found: set[str] = set()
    for node in nodes:
        is_global = node.is_global if isinstance(node, Source) else found.issuperset(node.parents)
        if is_global:
            found.add(node.name)
    return frozenset(found)


def _with_global_tables(group: Sequence[Node], nodes: Sequence[Node], shared: frozenset[str]) -> tuple[Node, ...]:
    """A group, behind the nodes of the global tables that it looks into."""
    wanted = {parent for node in group for parent in node.parents if parent in shared}
    for node in reversed(nodes):
        if node.name in wanted:
            wanted.update(node.parents)
    return (*(node for node in nodes if node.name in wanted), *group)


def _connected(nodes: Sequence[Node]) -> list[list[Node]]:
    """Groups of nodes that share an edge or a store, each in node order, groups in order of their first node."""
    known = {node.name: node for node in nodes}
    ties = {
        node.name: [
            *(parent for parent in node.parents if parent in known),
            *(f"store {store}" for store in (node.stores if isinstance(node, Processor) else ())),
        ]
        for node in nodes
    }
    return [[known[name] for name in group] for group in connected(ties)]
