"""A topology as text, exactly as Kafka Streams' ``TopologyDescription.toString()`` lays it out."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from statelib.topology.connected import connected
from statelib.topology.java_order import TreeSet, copied_in_hash_order, in_hash_order
from statelib.topology.nodes import Described, Processor, Sink, Source, senders

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from statelib.topology.nodes import Node


def text_of(declared: Sequence[Node]) -> str:
    """One paragraph a sub-topology; arrows to children (``-->``) and from parents (``<--``).

    It has Kafka's nodes, topics and stores, and no others: where a stage of its own is needed here (before a sink whose
    keys have changed, behind a join by a foreign key), sub-topologies have other numbers than the tasks of a run.

    Nodes come in Kafka's order: those first from which most others are reached, then by name. What stands behind an
    arrow comes in the order that Kafka's sets give: see `statelib.topology.java_order`.

    Args:
        declared: The nodes of a topology as they were described, in the order in which Kafka Streams writes them.
    """
    shown = _Shown(declared)
    paragraphs = []
    for number, group in enumerate(shown.groups()):
        global_source = next((name for name in group if name in shown.global_sources), None)
        if global_source is None:
            paragraphs.append(f"  Sub-topology: {number}\n{_sub_topology(shown, group)}\n")
        else:
            paragraphs.append(f"  Sub-topology: {number} for global store (will not generate tasks)\n")
            paragraphs += _global_store(shown, global_source, group)
    return "Topologies:\n " + "".join(paragraphs)


@dataclass(slots=True)
class _ShownNode:
    """A node as it is printed.

    Attributes:
        text: Its first line.
        parents: Names.
        has_children: Whether it can have any.
    """

    text: str
    parents: tuple[str, ...]
    has_children: bool = True
    size: int = 1
    before: TreeSet = field(init=False)
    behind: TreeSet = field(init=False)


class _Shown:
    """The nodes of Kafka Streams, in the order in which it has them.

    Args:
        nodes: Those of the topology as it was described.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes: dict[str, _ShownNode] = {}
        self.global_sources: set[str] = set()
        self._stores: dict[str, tuple[str, ...]] = {}
        self._ends: dict[str, tuple[str, ...]] = {}  # by node, those of Kafka Streams that forward what it forwards
        for node in nodes:
            self._add(node)

    def _add(self, node: Node) -> None:
        match node:
            case Source():
                self.nodes[node.name] = _ShownNode(f"Source: {node.name} (topics: {_topics(node)})", ())
                self._ends[node.name] = (node.name,)
                if node.is_global:
                    self.global_sources.add(node.name)
            case Sink():
                parents = self._ends_of(senders(node))
                if node.null_key_filter is not None:
                    self._add_processor(node.null_key_filter, parents, ())
                    parents = (node.null_key_filter,)
                text = f"Sink: {node.name} ({_topic_of_sink(node)})"
                self.nodes[node.name] = _ShownNode(text, parents, has_children=False)
            case Processor(described=None):
                self._add_processor(node.name, self._ends_of(senders(node)), node.stores)
                self._ends[node.name] = (node.name,)
            case Processor(described=described):
                self._add_described(node, described or ())

    def _add_described(self, node: Processor, described: Sequence[Described]) -> None:
        for processor in described:
            self._add_processor(processor.name, self._ends_of(processor.parents), processor.stores)
            self._ends[processor.name] = (processor.name,)
        inner = {parent for processor in described for parent in processor.parents}
        ends = tuple(processor.name for processor in described if processor.name not in inner)
        self._ends[node.name] = ends or self._ends_of(senders(node))

    def _add_processor(self, name: str, parents: tuple[str, ...], stores: Iterable[str]) -> None:
        self._stores[name] = tuple(stores)
        listed = ", ".join(copied_in_hash_order(in_hash_order(stores)))
        self.nodes[name] = _ShownNode(f"Processor: {name} (stores: [{listed}])", parents)

    def _ends_of(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(end for name in names for end in self._ends[name]))

    def groups(self) -> list[list[str]]:
        """The names of nodes that hang together by an edge or a store; both in order of nodes."""
        return connected(
            {
                name: (*node.parents, *(f"store {store}" for store in self._stores.get(name, ())))
                for name, node in self.nodes.items()
            }
        )


def _topics(node: Source) -> str:
    if node.pattern is not None:
        return node.pattern.pattern
    return f"[{', '.join(in_hash_order(node.topics)) if node.more_topics else _topic(node)}]"


def _topic_of_sink(node: Sink) -> str:
    """An extractor is shown as what it is here: Kafka prints the name of a class."""
    if node.topic_extractor is None:
        return f"topic: {_topic(node)}"
    return f"extractor class: {json.dumps(node.topic_extractor.describe(), sort_keys=True)}"


def _topic(node: Source | Sink) -> str:
    """A repartition topic's name without the application's, which Kafka's description does not know."""
    return node.topic if node.topic_in_text is None else node.topic_in_text


def _sub_topology(shown: _Shown, names: Sequence[str]) -> str:
    """The lines of a sub-topology (``InternalTopologyBuilder.describeSubtopology``)."""
    nodes = {name: shown.nodes[name] for name in in_hash_order(names)}

    def compare(one: str, other: str) -> int:
        if one == other:
            return 0
        by_size = nodes[other].size - nodes[one].size
        return by_size or (-1 if one < other else 1)

    def grow(name: str, by: int) -> None:
        growing = [name]
        while growing:
            node = nodes[growing.pop()]
            node.size += by
            growing += node.before

    for node in nodes.values():
        node.size, node.before, node.behind = 1, TreeSet(compare), TreeSet(compare)
    for name, node in nodes.items():
        for parent in node.parents:
            node.before.add(parent)
            nodes[parent].behind.add(name)
            grow(parent, node.size)
    ordered = sorted(nodes, key=lambda name: (-nodes[name].size, name))
    return "".join(f"    {_text(nodes[name])}\n" for name in ordered)


def _global_store(shown: _Shown, source: str, group: Sequence[str]) -> list[str]:
    (processor,) = (name for name in group if name != source)
    return [
        f"    {shown.nodes[source].text}\n      --> {processor}\n",
        f"    {shown.nodes[processor].text}\n      --> none\n      <-- {source}\n",
    ]


def _text(node: _ShownNode) -> str:
    text = node.text
    if node.has_children:
        text += f"\n      --> {', '.join(node.behind) or 'none'}"
    if not node.text.startswith("Source"):
        text += f"\n      <-- {', '.join(node.before) or 'none'}"
    return text
