"""The order in which Kafka Streams passes one record through the nodes: depth first, children as they were declared."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from statelib.topology.nodes import senders

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelib.topology.nodes import Node


class Visit(NamedTuple):
    """When a record comes to a node, and when all nodes below that have had their turn; both in one count."""

    begins: int
    ends: int


def passing_order(nodes: Sequence[Node]) -> dict[str, Visit]:
    """By name, the first visit to each node if all sources took up a record, one after the other.

    Of what a single record reaches on several ways this is the order in which the ways come. An operator that looks
    into tables needs to know it where both sides change for one cause.

    Args:
        nodes: Parents before children.
    """
    children: dict[str, list[str]] = {node.name: [] for node in nodes}
    for node in nodes:
        for parent in senders(node):
            children[parent].append(node.name)
    begins: dict[str, int] = {}
    visits: dict[str, Visit] = {}
    count = 0
    for root in (node.name for node in nodes if not node.parents):
        path = [(root, iter(children[root]))]
        begins[root] = count = count + 1
        while path:
            name, below = path[-1]
            child = next((child for child in below if child not in begins), None)
            count += 1
            if child is None:
                visits[name] = Visit(begins[name], count)
                path.pop()
            else:
                begins[child] = count
                path.append((child, iter(children[child])))
    return visits
