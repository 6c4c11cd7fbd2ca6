"""Whether what former topologies have replayed can be replayed with the code of the present one.

Commits have the description of the topology that made them, and not its code. What leads to a sink is what
`statelib.explanation.tasks` replays: the nodes above it in all sub-topologies, and all sources of these, since they
move time. Where both descriptions say the same of it, they gave the same. What the sink itself is called does not
matter: a fork writes to topics of other names.

A node that was different does not matter either, if no store rests on it but such as were filled since: these hold what
they would if the job had always had the present topology.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.topology import Processor, Sink, Source
from statelib.topology.leading import path_to

if TYPE_CHECKING:
    from collections.abc import Collection

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
        self._nodes = {node.name: node for part in path for node in part.nodes}
        self._sinks = {sink.name for part in path for sink in part.all_sinks if not sink.internal}
        self._writers = {node.topic: node.name for node in topology.nodes if isinstance(node, Sink) and node.internal}

    def difference(self, former: TopologyDescription | None, filled: Collection[str]) -> str | None:
        """What was different in a former topology, and matters; None: nothing.

        Args:
            former: Its description.
            filled: Names of stores that were filled since.
        """
        if former is None:
            return "nobody has written down what that was"
        if self._described is None:
            return "the job has never run with the present one"
        now, then = self._described_nodes(self._described), self._described_nodes(former)
        different = {name for name in now.keys() | then.keys() if now.get(name) != then.get(name)}
        rests_on_it = self._led_to_stores_besides(filled) | (then.keys() - now.keys())
        names = sorted(different & rests_on_it)
        return f"{', '.join(names)}: not the same as now" if names else None

    def _described_nodes(self, described: TopologyDescription) -> dict[str, NodeDescription]:
        return {
            node.name: node.model_copy(update={"settings": {}}) if node.name in self._sinks else node
            for node in described.nodes
            if node.name in self._nodes
            or (node.settings.get("node") == "source" and node.sub_topology in self._sub_topologies)
        }

    def _led_to_stores_besides(self, filled: Collection[str]) -> set[str]:
        """The nodes with stores that were not filled, what leads to these, and all sources: they move time."""
        waiting = [
            name
            for name, node in self._nodes.items()
            if isinstance(node, Source)
            or (isinstance(node, Processor) and any(store.name not in filled for store in node.spec.state_stores()))
        ]
        found: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name in found or name not in self._nodes:
                continue
            found.add(name)
            node = self._nodes[name]
            waiting += node.parents
            if isinstance(node, Source) and node.topic in self._writers:
                waiting.append(self._writers[node.topic])
        return found
