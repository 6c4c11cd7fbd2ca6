"""Which archived topics have to be co-partitioned with a repartition topic: those that meet one by key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.topology.nodes import Processor, Source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.topology.nodes import Node


def beside_repartitions(nodes: Sequence[Node]) -> dict[str, str]:
    """By the name of such a source, a repartition topic that it comes together with.

    A repartition places records by the bytes of their keys that belong to the type. An archive may have been placed by
    others, those of a schema registry's serde for example: equal keys would then be in two tasks. Beside a repartition
    that a partitioner has made, an archive is where the user says.

    Args:
        nodes: Of a sub-topology, parents before their children.
    """
    sources: dict[str, frozenset[Source]] = {}
    beside: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, Source):
            sources[node.name] = frozenset() if node.is_global else frozenset([node])
            continue
        sources[node.name] = frozenset[Source]().union(*(sources[parent] for parent in node.parents))
        if isinstance(node, Processor) and len(node.parents) > 1 and (node.stores or node.spec.state_stores()):
            placed_by_key = (of for of in sources[node.name] if of.internal and not of.by_partitioner)
            repartitions = sorted(source.topic for source in placed_by_key)
            for source in sources[node.name] if repartitions else ():
                if not source.internal:
                    beside.setdefault(source.name, repartitions[0])
    return beside
