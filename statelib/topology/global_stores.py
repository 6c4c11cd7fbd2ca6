"""Stores of which every task has all (Kafka's ``addGlobalStore``): who reads them looks into the node that writes them.

In Kafka Streams any processor may read any of them, without being connected. Here a task has a copy of those that its
processors ask for when they begin.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from statelib.operators.processors.process import Process
from statelib.topology.node_groups import global_nodes
from statelib.topology.nodes import Processor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.topology.nodes import Node


def with_global_stores(nodes: Sequence[Node]) -> list[Node]:
    """The nodes, global ones first if processors read the stores of some.

    Args:
        nodes: Parents before their children.
    """
    of_globals = global_nodes(nodes)
    writers = {
        builder.name: (node.name, builder)
        for node in nodes
        if node.name in of_globals and isinstance(node, Processor) and isinstance(node.spec, Process)
        for builder in node.spec.stores
    }
    if not writers:
        return list(nodes)
    builders = [builder for _, builder in writers.values()]
    found: list[Node] = [node for node in nodes if node.name in of_globals]
    for node in nodes:
        if node.name in of_globals:
            continue
        if isinstance(node, Processor) and isinstance(node.spec, Process):
            asked = node.spec.asks_for(builders)
            looks = dict.fromkeys(writers[store.name][0] for store in asked)
            new = [name for name in looks if name not in node.parents]
            found.append(
                replace(
                    node,
                    parents=(*node.parents, *new),
                    looks_into=node.looks_into + len(new),
                    spec=replace(node.spec, of_all=asked),
                )
            )
        else:
            found.append(node)
    return found
