"""What leads to nodes of a described topology, over repartitions too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from statelib.documents.topologies import NodeDescription, TopologyDescription


def lead_to(
    topology: TopologyDescription, names: Iterable[str], *, with_whole_input: bool = False
) -> list[NodeDescription]:
    """The nodes that lead to some, and these, in order of nodes.

    Args:
        topology: Of which they are.
        names: Theirs.
        with_whole_input: Whether every source of a sub-topology that has one of these nodes is one, too: a task's time
            moves with all that it takes up, so without the other sources operators drop and let go otherwise.
    """
    by_name = {node.name: node for node in topology.nodes}
    sinks: dict[Any, list[str]] = {}
    sources: dict[int, list[str]] = {}
    for node in topology.nodes:
        if node.settings["node"] == "sink":
            sinks.setdefault(node.settings["topic"], []).append(node.name)
        elif node.settings["node"] == "source":
            sources.setdefault(node.sub_topology, []).append(node.name)
    reached: set[str] = set()
    waiting = list(names)
    while waiting:
        found = by_name[waiting.pop()]
        if found.name not in reached:
            reached.add(found.name)
            waiting += found.parents
            waiting += sinks.get(found.settings["topic"], []) if found.settings["node"] == "source" else []
            waiting += sources.get(found.sub_topology, []) if with_whole_input else []
    return [node for node in topology.nodes if node.name in reached]
