"""A topology as text, exactly as Kafka Streams' ``TopologyDescription.toString()`` lays it out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.topology.nodes import Node, Processor, Sink, Source, senders

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from statelib.topology.topology import Topology


def describe(topology: Topology) -> str:
    """One paragraph a sub-topology; arrows to children (``-->``) and from parents (``<--``).

    Nodes come in Kafka's order: those first from which most others are reached, then by name; parents then as they were
    declared, since Kafka counts what is below one of them before it sorts in the next. Global tables come last: the
    numbers before are those of tasks.
    """
    paragraphs = [
        f"Sub-topology: {sub.index}\n{_nodes([node for node in sub.nodes if node.name not in sub.global_nodes])}\n"
        for sub in topology.sub_topologies
    ]
    for number, nodes in enumerate(topology.global_stores, start=len(paragraphs)):
        paragraphs.append(f"Sub-topology: {number} for global store (will not generate tasks)\n{_nodes(nodes)}")
    return "Topologies:\n " + "".join(f"  {paragraph}" for paragraph in paragraphs)


def _nodes(nodes: Sequence[Node]) -> str:
    children: dict[str, list[str]] = {node.name: [] for node in nodes}
    for node in nodes:
        for parent in senders(node):
            children[parent].append(node.name)
    reach: dict[str, int] = {}
    for node in reversed(nodes):
        reach[node.name] = 1 + sum(reach[child] for child in children[node.name])
    return "".join(
        f"    {_text(node, _listed(sorted(children[node.name]), reach), _listed(senders(node), reach))}\n"
        for node in sorted(nodes, key=lambda node: (-reach[node.name], node.name))
    )


def _listed(names: Iterable[str], reach: Mapping[str, int]) -> str:
    return ", ".join(sorted(dict.fromkeys(names), key=lambda name: -reach[name])) or "none"


def _text(node: Node, children: str, parents: str) -> str:
    match node:
        case Source():
            return f"Source: {node.name} (topics: [{node.topic}])\n      --> {children}"
        case Processor():
            stores = ", ".join(node.stores)
            return f"Processor: {node.name} (stores: [{stores}])\n      --> {children}\n      <-- {parents}"
        case Sink():
            return f"Sink: {node.name} (topic: {node.topic})\n      <-- {parents}"
