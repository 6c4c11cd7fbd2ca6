"""Topics' tables whose changelog is the topic itself (Kafka's ``reuse.ktable.source.topics``, KIP-295).

The topology's text stays as it is. What is different is that a live application has no changelog topic for the store:
it restores it from the topic, up to the offset to which it has read that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from statelib.topology.nodes import Processor, Source

if TYPE_CHECKING:
    from statelib.dsl.graph import DslGraph


def reuse_source_topics(graph: DslGraph) -> None:
    """Lets each topic's table that has a store say that the topic is its changelog."""
    for graph_node in graph.graph_nodes:
        table = graph.node(graph_node.output)
        if graph_node.role == "table-source" and isinstance(table, Processor) and table.spec.state_stores():
            source = graph.node(table.parents[0])
            if isinstance(source, Source):
                graph.replace(replace(table, changelog_topic=source.topic))
