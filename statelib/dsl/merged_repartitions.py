"""One repartition topic for all that is grouped and joined by a changed key (Kafka's ``merge.repartition.topics``).

Each aggregation and join behind an operator that changes keys repartitions for itself (KIP-295). If nothing between
changes values, one topic right behind the operator does for all: what was before the repartitions then comes behind
that. It has the name of the first. Where streams are merged, it comes behind the merge.

As ``InternalStreamsBuilder.mergeRepartitionTopics``, move for move: what it looks for upwards, and in which order, says
which topics there are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from statelib.dsl.graph import GraphNode
from statelib.dsl.repartitioning import repartition_nodes, stream_names
from statelib.errors.kinds import ConfigurationError, InternalError
from statelib.operators.processors.process import Process
from statelib.topology.nodes import Processor, Sink, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from statelib.dsl.graph import DslGraph, Role
    from statelib.dsl.internal_builder import InternalStreamsBuilder

_Repartitions = dict[GraphNode, None]
"""In the order of description; values do not matter."""


def merge_repartition_topics(graph: DslGraph, builder: InternalStreamsBuilder, *, knows_processors: bool) -> None:
    """Merges the repartition topics of a graph.

    Args:
        graph: Is changed.
        builder: Counts the names of the new nodes.
        knows_processors: See `Optimizations`.

    Raises:
        ConfigurationError: Kafka Streams fails at it.
    """
    key_changing: set[Role | None] = {"key-changing"}
    value_changing: set[Role | None] = {"value-changing"}
    if knows_processors:
        key_changing.add("process")
        value_changing.add("process-values")
    found = _behind_key_changes(graph, key_changing, key_changing | value_changing)
    sinks = {node: _sink(graph, node) for node in graph.graph_nodes if node.role == "repartition"}
    for changing, repartitions in _behind_merges(graph, found).items():
        if repartitions:
            _merge(graph, builder, changing, {repartition: sinks[repartition] for repartition in repartitions})
    _find_keys_kept(graph)


def _behind_key_changes(
    graph: DslGraph, key_changing: Collection[Role | None], changing_any: Collection[Role | None]
) -> dict[GraphNode, _Repartitions]:
    """By what changes keys: the repartitions behind it, with nothing between that changes keys or values."""
    found: dict[GraphNode, _Repartitions] = {}
    for node in graph.graph_nodes:
        if node.role in key_changing:
            found[node] = {}
        elif node.role == "repartition":
            changing = _upwards(node, lambda above: above.role in key_changing)
            nearest = _upwards(node, lambda above: above.role in changing_any)
            if changing is not None and changing is nearest:
                found[changing][node] = None
    return found


def _behind_merges(graph: DslGraph, found: dict[GraphNode, _Repartitions]) -> dict[GraphNode, _Repartitions]:
    """The same, but those behind a merge belong to that."""
    merges = [node for node in graph.graph_nodes if node.role == "merge"]
    changing_of = {
        merge: [
            changing
            for changing, repartitions in found.items()
            if all(_leads_to(merge, repartition) for repartition in repartitions) and _leads_to(changing, merge)
        ]
        for merge in merges
    }
    of_merges = {
        merge: {repartition: None for changing in above for repartition in found[changing]}
        for merge, above in changing_of.items()
    }
    replaced = {changing for above in changing_of.values() for changing in above}
    return {changing: of for changing, of in found.items() if changing not in replaced} | of_merges


def _merge(
    graph: DslGraph, builder: InternalStreamsBuilder, changing: GraphNode, repartitions: dict[GraphNode, Sink]
) -> None:
    """Makes one repartition behind ``changing``; ``repartitions``: those in whose place it comes, and their sinks."""
    first = next(iter(repartitions.values()))
    names = stream_names(builder, first.topic_in_text or first.topic)
    nodes = repartition_nodes(builder, changing.output, names)
    merged = GraphNode(tuple(node.name for node in nodes), changing.priority, "repartition")
    for repartition, sink in repartitions.items():
        below = _upwards(repartition, lambda node: changing in node.parents)
        if below is None:  # or another merge has it already
            raise ConfigurationError(
                "Kafka Streams cannot merge these repartition topics: what is before them is shared",
                node=changing.output,
                topic=sink.topic,
                next_step="leave merge.repartition.topics out, as your application has to; or repartition() behind "
                f"{changing.output}",
                **({} if sink.line is None else sink.line._asdict()),
            )
        graph.move(below, changing, [merged])
        for child in tuple(repartition.children):
            graph.move(child, repartition, tuple(repartition.parents))
        graph.remove(repartition)
    changing.add_child(merged)
    graph.insert(merged, *(replace(node, line=first.line) for node in nodes))


def _find_keys_kept(graph: DslGraph) -> None:
    """Tells sinks that have come behind a repartition that records are where their keys say."""
    for graph_node in graph.graph_nodes:
        sink = graph.node(graph_node.output)
        if isinstance(sink, Sink) and not sink.key_kept and _changes_above(graph, graph_node) is None:
            graph.replace(replace(sink, key_kept=True))


def _changes_above(graph: DslGraph, start: GraphNode) -> GraphNode | None:
    """What changes keys above, and no repartition between."""

    def changes(graph_node: GraphNode) -> bool:
        node = graph.node(graph_node.output)
        of_processor = isinstance(node, Processor) and isinstance(node.spec, Process) and not node.spec.fixed_key
        return graph_node.role == "key-changing" or of_processor

    def is_repartition(graph_node: GraphNode) -> bool:
        node = graph.node(graph_node.output)
        return isinstance(node, Source) and node.internal

    return _upwards(start, changes, ends=is_repartition)


def _sink(graph: DslGraph, repartition: GraphNode) -> Sink:
    sink = graph.node(repartition.names[0])
    if not isinstance(sink, Sink):
        raise InternalError("a repartition has no sink", node=sink.name)
    return sink


def _leads_to(above: GraphNode, node: GraphNode) -> bool:
    return _upwards(node, lambda other: above in other.parents) is not None


def _upwards(
    start: GraphNode,
    fits: Callable[[GraphNode], bool],
    *,
    ends: Callable[[GraphNode], bool] = lambda _: False,
) -> GraphNode | None:
    """The first that fits, from ``start`` on, all above one parent before the next (``findParentNodeMatching``).

    Args:
        start: Where to begin.
        fits: Whether a node is looked for.
        ends: Whether nothing above a node is looked at.
    """
    waiting, seen = [start], set[GraphNode]()
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        if fits(node):
            return node
        seen.add(node)
        if not ends(node):
            waiting += reversed(node.parents)
    return None
