"""Which topics a topology both writes and reads, as its description tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from statelib.documents.topologies import TopologyDescription

_REPARTITION = "-repartition"


def read_back(topology: TopologyDescription) -> tuple[str, ...]:
    """The topics that sinks write and others read, in order of nodes.

    Such a topic has a repartition before its sink (`statelib.topology.lowering`), behind which there are others, too.
    """
    kinds = {node.name: node.settings for node in topology.nodes}
    written = {node.settings["topic"] for node in topology.nodes if node.settings.get("node") == "sink"}
    children: dict[str, int] = {}
    for node in topology.nodes:
        for parent in node.parents:
            children[parent] = children.get(parent, 0) + 1
    return tuple(
        node.settings["topic"]
        for node in topology.nodes
        if kinds[node.name].get("node") == "sink"
        and f"{node.settings['topic']}{_REPARTITION}" in written
        and children[node.parents[0]] > 1
    )
