"""Joins of a stream with itself that have one store (Kafka's ``single.store.self.join``, KIP-862).

As in Kafka Streams, left and outer joins among them: each record meets itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statelib.errors.kinds import InternalError
from statelib.operators.joins.stream_stream.operator import StreamStreamJoin
from statelib.operators.joins.stream_stream.self_join import StreamSelfJoin
from statelib.topology.nodes import Processor

if TYPE_CHECKING:
    from statelib.dsl.graph import DslGraph


def keep_one_store_of_self_joins(graph: DslGraph) -> None:
    """Gives each join of a stream with itself one store (``rewriteSingleStoreSelfJoin``)."""
    by_name = {graph_node.output: graph_node for graph_node in graph.graph_nodes}
    for graph_node in graph.graph_nodes:
        if graph_node.role != "stream-join" or len(graph_node.parents) > 1:
            continue
        this, other, join = (graph.node(name) for name in graph_node.names)
        if not isinstance(join, Processor) or not isinstance(join.spec, StreamStreamJoin):
            raise InternalError("this is no join of streams", node=join.name)
        graph.remove(by_name[other.parents[0]])
        spec = StreamSelfJoin.of(join.spec)
        graph.become(graph_node, Processor(join.name, this.parents, spec, (spec.store,), line=join.line))
