"""A topology as text, in the layout of Kafka Streams' ``Topology.describe()``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.topology.nodes import Node, Processor, Sink, Source

if TYPE_CHECKING:
    from statelib.topology.topology import Topology


def describe(topology: Topology) -> str:
    """One paragraph a sub-topology; arrows to children (``-->``) and from parents (``<--``)."""
    children: dict[str, list[str]] = {}
    for node in topology.nodes:
        for parent in node.parents:
            children.setdefault(parent, []).append(node.name)
    lines = ["Topologies:"]
    for sub in topology.sub_topologies:
        lines.append(f"   Sub-topology: {sub.index}")
        for node in sub.nodes:
            lines.append(f"    {_title(node)}")
            if not isinstance(node, Sink):
                lines.append(f"      --> {', '.join(children.get(node.name, ['none']))}")
            if node.parents:
                lines.append(f"      <-- {', '.join(node.parents)}")
    return "\n".join(lines) + "\n"


def _title(node: Node) -> str:
    match node:
        case Source():
            return f"Source: {node.name} (topics: [{node.topic}])"
        case Processor():
            return f"Processor: {node.name} (stores: [{', '.join(node.stores)}])"
        case Sink():
            return f"Sink: {node.name} (topic: {node.topic})"
