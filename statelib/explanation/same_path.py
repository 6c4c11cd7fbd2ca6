"""Whether a former topology led to a sink in the same way, so that it can be replayed with the code of the present one.

Commits have the description of the topology that made them, and not its code. What leads to a sink is what
`statelib.explanation.tasks` replays: the nodes above it in all sub-topologies, and all sources of these, since they
move time. Where both descriptions say the same of it, they gave the same. What the sink itself is called does not
matter: a fork writes to topics of other names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.topology.leading import path_to

if TYPE_CHECKING:
    from statelib.documents.topologies import NodeDescription, TopologyDescription
    from statelib.topology import Topology


class SamePath:
    """What leads to a topic.

    Args:
        topology: The present topology.
        topic: The topic that it writes.
        described: Its description; None: nobody has written it down.
    """

    def __init__(self, topology: Topology, topic: str, described: TopologyDescription | None) -> None:
        path = path_to(topology, topics=[topic])
        self._described = described
        self._sub_topologies = {part.index for part in path}
        self._wanted = {node.name for part in path for node in part.nodes}
        self._sinks = {sink.name for part in path for sink in part.all_sinks if not sink.internal}

    def difference(self, former: TopologyDescription | None) -> str | None:
        """What was different in a former topology; None: nothing."""
        if self._described is None or former is None:
            return "nobody has written down what the topology was"
        now, then = self._nodes(self._described), self._nodes(former)
        names = sorted(name for name in now.keys() | then.keys() if now.get(name) != then.get(name))
        return f"{', '.join(names)}: not the same as now" if names else None

    def _nodes(self, described: TopologyDescription) -> dict[str, NodeDescription]:
        return {
            node.name: node.model_copy(update={"settings": {}}) if node.name in self._sinks else node
            for node in described.nodes
            if node.name in self._wanted
            or (node.settings.get("node") == "source" and node.sub_topology in self._sub_topologies)
        }
