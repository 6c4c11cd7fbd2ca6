"""The part of a topology that leads to some of its nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from statelib.operators.processors.process import Process
from statelib.operators.stateless.merge import Merge
from statelib.topology.nodes import Processor, Source

if TYPE_CHECKING:
    from collections.abc import Collection

    from statelib.topology.nodes import Node
    from statelib.topology.topology import SubTopology, Topology


def leading_to(sub_topology: SubTopology, names: Collection[str]) -> SubTopology:
    """A sub-topology without nodes that do not lead to some; it takes up all the same.

    A node leads to another one by what it forwards, and by what it writes to a store that the other one has as well.

    Args:
        sub_topology: The sub-topology.
        names: Those of some of its nodes.
    """
    wanted = set(names)
    stores: set[str] = set()
    while True:
        before = len(wanted)
        for node in reversed(sub_topology.nodes):
            written = _written(node) if isinstance(node, Processor) else set()
            if stores.intersection(written):
                wanted.add(node.name)
            if node.name in wanted:
                wanted.update(node.parents)
                stores.update(written)
        if len(wanted) == before:
            break
    nodes = (node for node in sub_topology.nodes if node.name in wanted or isinstance(node, Source))
    return replace(sub_topology, nodes=tuple(nodes))


def path_to(
    topology: Topology, *, stores: Collection[str] = (), topics: Collection[str] = ()
) -> tuple[SubTopology, ...]:
    """The sub-topologies that lead to stores or to sinks, upstream ones first, each without what does not lead there.

    All sources of each are there, and so is what leads to these: they move the time of its tasks.

    Args:
        topology: The topology.
        stores: Names of stores.
        topics: Names of topics that sinks write.
    """
    wanted = set(topics)
    found: list[SubTopology] = []
    for sub_topology in reversed(topology.sub_topologies):
        names = {sink.name for sink in sub_topology.all_sinks if sink.topic in wanted} | _writers(sub_topology, stores)
        if names:
            found.append(leading_to(sub_topology, names))
            wanted.update(sub_topology.repartition_sources)
    return tuple(reversed(found))


def without_topics(sub_topology: SubTopology, topics: Collection[str]) -> SubTopology | None:
    """A sub-topology as far as it needs none of some topics, of a merge the other streams. None: nothing is left.

    Args:
        sub_topology: The sub-topology.
        topics: That it reads.
    """
    kept: dict[str, Node] = {}
    for node in sub_topology.nodes:
        parents = tuple(parent for parent in node.parents if parent in kept)
        if isinstance(node, Processor) and isinstance(node.spec, Merge) and parents:
            kept[node.name] = replace(node, parents=parents)
        elif len(parents) == len(node.parents) and not (isinstance(node, Source) and node.topic in topics):
            kept[node.name] = node
    return replace(sub_topology, nodes=tuple(kept.values())) if kept else None


def _writers(sub_topology: SubTopology, stores: Collection[str]) -> set[str]:
    """The nodes that write to some stores."""
    return {node.name for node in sub_topology.processors if not _written(node).isdisjoint(stores)}


def _written(node: Processor) -> set[str]:
    """The stores that a node may write to: a custom processor to any that it is connected with."""
    own = {store.name for store in node.spec.state_stores()}
    return own.union(node.stores) if isinstance(node.spec, Process) else own
